"""The judges find what they are there to find."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.agents.stage import Row, Stage
from tests.faults import observer
from tests.faults.observer import Watch
from tests.faults.play import Play, staged
from tests.faults.verdict import judged


@pytest.fixture
def play() -> Iterator[Play]:
    with staged(Stage()) as play:
        play.set_up()
        yield play


@contextmanager
def _decoy(stage: Stage) -> Iterator[int]:
    """A process that looks like another agent of the profile."""
    command = [sys.executable, "-c", "import time; time.sleep(60)", "/decoy/hermes", "chat"]
    decoy = subprocess.Popen(command, env={**os.environ, "HERMES_HOME": str(stage.profile)})
    try:
        yield decoy.pid
    finally:
        decoy.kill()
        decoy.wait()


def test_two_agents_of_one_profile_at_once_are_seen(stage: Stage) -> None:
    with Watch([stage], stage.root) as watch, _decoy(stage) as pid:
        watch.sample()
        assert watch.doubled(stage) == {tuple(sorted((stage.pane_pid, pid)))}


def test_an_agent_that_follows_another_is_not_two_at_once(stage: Stage) -> None:
    with Watch([stage], stage.root) as watch:
        stage.stop()
        stage.start()
        stage.wait_ready()
        assert len(watch.living(stage)) == 1
        assert watch.doubled(stage) == set()


def test_an_agent_that_ends_before_a_handoff_is_on_disk_is_seen(stage: Stage) -> None:
    archive = stage.root / "archive"
    archive.mkdir()
    with Watch([stage], archive) as watch:
        first = stage.pane_pid
        stage.stop()
        watch.sample()
        (archive / "handoff.md").touch()
        stage.start()
        stage.wait_ready()
        watch.sample()
        stage.stop()
        watch.sample()
        assert [seen.pid for seen in watch.gone_unsaved(stage)] == [first]


def test_a_worker_left_dead_without_a_block_is_silent_lost_and_wrongly_killed(play: Play) -> None:
    os.kill(play.first_pid, signal.SIGKILL)
    play.stage.wait(lambda: not play.watch.living(play.stage), 60, "the end of the agent")

    assert {"silent", "lost", "wrong_kill"} <= judged(play).wrongs.keys()


def test_text_for_the_neighbour_and_for_the_second_window_is_false_typing(play: Play) -> None:
    play.bystander.paste("for another")
    play.bystander.wait(lambda: not play.bystander.is_ready(), 60, "the text")
    assert "input line" in judged(play).wrongs["false_typing"]
    play.bystander.press("Enter")
    play.bystander.wait(lambda: len(play.bystander.rows()) > len(play.neighbour_rows), 60, "the row")
    assert "transcript" in judged(play).wrongs["false_typing"]
    play.bystander.wait_ready()
    play.neighbour_rows = play.bystander.rows()
    assert "false_typing" not in judged(play).wrongs
    play.stage.ground.tmux("send-keys", "-t", play.window_pane, "lost", "Enter")
    play.stage.wait(lambda: play.sink.exists() and play.sink.read_text(), 60, "the line")
    assert "second window" in judged(play).wrongs["false_typing"]


def test_a_neighbour_that_is_gone_is_a_wrong_kill(play: Play) -> None:
    play.bystander.stop()

    assert "neighbour" in judged(play).wrongs["wrong_kill"]


def _row(number: int, role: str, content: str, session: str = "new") -> Row:
    return Row(number, session, role, content, None)


def test_a_text_that_was_delivered_twice_is_named() -> None:
    asked = "CONTEXT_HANDOFF_REQUIRED\nRENEWAL_ID: r1"
    rows = [_row(1, "user", asked), _row(2, "user", asked), _row(3, "user", "hello"), _row(4, "user", "hello")]

    assert observer.our_texts_twice(rows) == ["CONTEXT_HANDOFF_REQUIRED"]
    assert observer.our_texts_twice(rows[1:]) == []


@pytest.mark.parametrize(
    ("rows", "sessions"),
    [
        ([_row(1, "user", "RESUME_AFTER_HANDOFF\n"), _row(2, "assistant", "STATE: IN_PROGRESS")], ["new"]),
        ([_row(1, "user", "RESUME_AFTER_HANDOFF\n"), _row(2, "assistant", "Hello!")], []),
        ([_row(1, "assistant", "STATE: DONE"), _row(2, "user", "RESUME_AFTER_HANDOFF\n")], []),
        ([_row(1, "user", "RESUME_AFTER_HANDOFF\n", "old"), _row(2, "assistant", "STATE: DONE", "old")], []),
    ],
)
def test_only_a_checkpoint_behind_our_prompt_in_a_new_session_counts_as_resumed(
    rows: list[Row], sessions: list[str]
) -> None:
    assert observer.answered_sessions(rows, {"old"}) == sessions
