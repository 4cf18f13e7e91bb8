"""One worker through the eight steps, with the scripted agent in a real pane."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psutil
import pytest
from prefect import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import TaskRun

from flows.renewal import renew_worker
from lifecycle.renewal import End, Phase, Quality
from tests.agents.ground import has_ended
from tests.flows.conftest import Scene


@contextmanager
def _agents_sampled(scene: Scene) -> Iterator[list[set[int]]]:
    """Every few milliseconds the living agents that were ever started on the profile."""
    seen: list[set[int]] = []
    over = threading.Event()

    def sample() -> None:
        while not over.is_set():
            seen.append({pid for pid in scene.stage.starts() if not has_ended(pid)})
            over.wait(0.01)

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield seen
    finally:
        over.set()
        sampler.join(10)


STEPS = [
    "detect pressure of swarm1",
    "request handoff of swarm1",
    "parse checkpoint of swarm1",
    "persist handoff of swarm1",
    "stop swarm1",
    "respawn swarm1",
    "send resume prompt to swarm1",
    "mark swarm1 healthy",
]


def test_a_full_worker_is_renewed_and_works_again(scene: Scene) -> None:
    old_pid, old_sessions = scene.stage.pane_pid, {row.session_id for row in scene.stage.rows()}

    state = scene.renew(asked_by="sweep")

    assert (state.name, state.type.value) == ("Renewed", "COMPLETED")
    renewal = scene.renewal
    assert (renewal.phase, renewal.end) == (Phase.PROVED, End.RENEWED)
    assert renewal.acknowledgement is not None
    assert renewal.acknowledgement.session_id not in old_sessions
    assert not psutil.pid_exists(old_pid)
    scene.stage.wait(scene.stage.ledger, 60, "an act of the mission in the new session")
    assert scene.user_texts()[-1].startswith(f"CONTINUE {renewal.renewal_id}: ")


def test_the_handoff_is_saved_and_named_in_the_resume_prompt(scene: Scene) -> None:
    scene.renew()

    saved = scene.renewal.saved
    assert saved is not None
    assert saved.quality is Quality.WRITTEN
    assert (
        scene.stage.paths.shared_latest.read_text() == saved.archive.read_text() == scene.stage.paths.latest.read_text()
    )
    resume = next(text for text in scene.user_texts() if text.startswith("RESUME_AFTER_HANDOFF"))
    assert str(saved.archive) in resume
    assert saved.sha256 in resume
    assert resume.splitlines()[-1] == f"NEXT_ACTION: {saved.next_action}"


async def _task_runs(run_id: object) -> list[TaskRun]:
    async with get_client() as client:
        return await client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run_id])))


def test_the_run_shows_eight_tasks_that_carry_the_worker(scene: Scene) -> None:
    state = scene.renew()

    def shown() -> bool:
        runs = asyncio.run(_task_runs(state.state_details.flow_run_id))
        return sorted(run.name for run in runs) == sorted(STEPS)

    scene.stage.wait(shown, 60, "the eight task runs")


@pytest.mark.parametrize(
    ("manner", "reason"),
    [
        ("partial", "checkpoint_incomplete"),
        ("old_id", "checkpoint_wrong_renewal"),
        ("template", "checkpoint_template"),
    ],
)
def test_a_handoff_that_cannot_be_used_blocks_and_releases_the_worker(scene: Scene, manner: str, reason: str) -> None:
    scene.stage.behave(handoff=manner)
    pid = scene.stage.pane_pid

    state = scene.renew(asked_by="sweep")

    assert (state.name, state.type.value) == ("Blocked", "FAILED")
    assert (scene.block.reason, scene.block.phase, scene.block.worker_down) == (reason, Phase.REQUESTED, False)
    assert scene.stage.pane_pid == pid
    texts = scene.user_texts()
    assert texts[-1] == f"RENEWAL_CANCELLED {scene.renewal.renewal_id}: carry on with your task"
    assert sum(text.startswith("CONTEXT_HANDOFF_REQUIRED") for text in texts) == 2, "one request, one correction"
    assert [subject for subject in scene.notices() if "blocked" in subject] == [f"swarm1: blocked: {reason}"]


def test_a_silent_worker_blocks_as_handoff_timeout(scene: Scene) -> None:
    scene.configure(deadlines={"handoff_answer": 3})
    scene.stage.behave(handoff="silent")

    state = scene.renew(asked_by="sweep")

    assert state.name == "Blocked"
    assert scene.block.reason == "handoff_timeout"
    assert scene.renewal.stopped is None


def test_a_bad_answer_is_corrected_once(scene: Scene) -> None:
    scene.stage.behave(handoff="bad_then_good")

    assert scene.renew(asked_by="sweep").name == "Renewed"
    assert scene.renewal.correction is not None


def test_a_thin_handoff_is_corrected_once_and_never_a_block(scene: Scene) -> None:
    scene.stage.behave(handoff="no_file")

    assert scene.renew(asked_by="sweep").name == "Renewed"
    saved = scene.renewal.saved
    assert saved is not None
    assert saved.quality is Quality.CHECKPOINT


def test_nothing_is_typed_into_a_dialog_that_opens_instead_of_an_answer(scene: Scene) -> None:
    scene.configure(deadlines={"handoff_answer": 3})
    scene.stage.behave(handoff="dialog")

    state = scene.renew(asked_by="sweep")

    assert state.name == "Blocked"
    assert sum(text.startswith("RENEWAL_CANCELLED") for text in scene.user_texts()) == 0
    assert "Allow once" in scene.stage.screen()


def test_a_worker_that_works_on_after_its_handoff_is_not_stopped(scene: Scene) -> None:
    scene.stage.behave(handoff="works_on")
    pid = scene.stage.pane_pid

    state = scene.renew(asked_by="sweep")

    assert state.name == "Blocked"
    assert scene.block.reason == "handoff_outdated"
    assert scene.stage.pane_pid == pid


def test_an_agent_that_dies_while_it_is_asked_blocks(scene: Scene) -> None:
    scene.stage.behave(handoff="die")

    state = scene.renew(asked_by="sweep")

    assert state.name == "Blocked"
    assert scene.block.reason == "agent_gone"


def test_a_first_start_that_fails_is_tried_once_more(scene: Scene) -> None:
    scene.stage.behave(failed_starts=len(scene.stage.starts()) + 1)

    assert scene.renew(asked_by="sweep").name == "Renewed"
    assert scene.renewal.respawns == 2


def test_an_agent_that_never_starts_again_is_a_block_that_says_the_worker_is_down(scene: Scene) -> None:
    scene.stage.behave(failed_starts=99)

    state = scene.renew(asked_by="sweep")

    assert state.name == "Blocked"
    assert (scene.block.reason, scene.block.worker_down) == ("not_ready", True)


def test_a_lost_enter_is_pressed_again_and_the_text_arrives_once(scene: Scene) -> None:
    scene.stage.behave(lost_enters=1)

    assert scene.renew(asked_by="sweep").name == "Renewed"
    requests = [text for text in scene.user_texts() if text.startswith("CONTEXT_HANDOFF_REQUIRED")]
    assert len(requests) == 1


def test_a_silent_new_session_is_not_typed_at_and_blocks(scene: Scene) -> None:
    scene.configure(deadlines={"resume_answer": 3})
    scene.stage.behave(resume="silent")

    assert scene.renew(asked_by="sweep").name == "Blocked"
    assert (scene.block.reason, scene.block.worker_down) == ("resume_unanswered", False)
    assert scene.renewal.acknowledgement is None
    assert scene.user_texts()[-1].startswith("RESUME_AFTER_HANDOFF"), "its turn runs on: nothing is typed behind it"


def test_an_idle_new_session_without_an_answer_is_reminded_once_and_then_blocks(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lifecycle.steps.proving.REMIND_AFTER", timedelta(seconds=1))
    scene.configure(deadlines={"resume_answer": 12})
    scene.stage.behave(resume="mute")

    assert scene.renew(asked_by="sweep").name == "Blocked"
    assert scene.block.reason == "resume_unanswered"
    prompt, reminder = scene.renewal.resume, scene.renewal.reminder
    assert prompt is not None
    assert reminder is not None
    assert scene.user_texts()[-2:] == [prompt.text, reminder.text]


def test_a_new_session_that_answers_badly_is_reminded_once(scene: Scene) -> None:
    scene.stage.behave(resume="bad_then_good")

    assert scene.renew(asked_by="sweep").name == "Renewed"
    assert scene.renewal.reminder is not None


def test_limits_below_what_a_fresh_session_starts_with_are_named_as_the_cause(scene: Scene) -> None:
    scene.stage.behave(baseline=65_000)

    assert scene.renew(asked_by="sweep").name == "Blocked"
    assert scene.block.reason == "limits_below_floor"


def test_where_the_policy_says_so_a_missing_handoff_is_synthesized(scene: Scene) -> None:
    scene.configure(policy={"on_missing_handoff": "synthesize"})
    scene.stage.behave(handoff="die")

    assert scene.renew(asked_by="sweep").name == "Renewed"
    saved = scene.renewal.saved
    assert saved is not None
    assert saved.quality is Quality.SYNTHESIZED


def test_an_answer_for_another_renewal_does_not_make_a_worker_healthy(scene: Scene) -> None:
    scene.stage.behave(resume="wrong_id")

    state = scene.renew(asked_by="sweep")

    assert state.name == "Blocked"
    assert scene.block.reason == "resume_refused"


def test_an_answer_without_a_renewal_id_is_taken(scene: Scene) -> None:
    scene.stage.behave(resume="no_id")

    assert scene.renew(asked_by="sweep").name == "Renewed"


def test_a_done_worker_is_renewed_and_not_told_to_go_on(scene: Scene) -> None:
    scene.stage.behave(resume="done")

    assert scene.renew(asked_by="sweep").name == "Renewed"
    assert not any(text.startswith("CONTINUE") for text in scene.user_texts())


def test_a_baseline_over_the_soft_limit_blocks(scene: Scene) -> None:
    scene.stage.behave(baseline=40_000)

    state = scene.renew(asked_by="sweep")

    assert state.name == "Blocked"
    assert scene.block.reason == "baseline_too_large"


def test_processes_that_ignore_signals_are_killed_and_no_second_agent_starts_before(scene: Scene) -> None:
    scene.configure(deadlines={"exit": 2, "term": 1})
    scene.stage.behave(ignore_signals=True)
    old = scene.stage.pane_pid

    with _agents_sampled(scene) as alive:
        assert scene.renew(asked_by="sweep").name == "Renewed"

    assert not psutil.pid_exists(old)
    assert {old} in alive
    assert any(agents and old not in agents for agents in alive), "the new one was seen"
    assert max(len(agents) for agents in alive) == 1, "never two of one worker"


def test_a_tool_that_outlives_its_agent_is_ended_right_behind_it(scene: Scene) -> None:
    scene.stage.stop()
    scene.stage.start(child="stray")
    scene.stage.wait_ready()
    scene.stage.fill(70_000)
    tool = int((scene.stage.profile / "child.pid").read_text())
    scene.configure(deadlines={"exit": 90})
    scene.stage.behave(child="none")

    assert scene.renew().name == "Renewed"

    times = scene.renewal.phase_times
    assert has_ended(tool)
    assert (times["stopped"] - times["stopping"]).total_seconds() < 60


def test_a_second_window_survives_the_renewal(scene: Scene) -> None:
    scene.stage.ground.tmux("new-window", "-t", f"={scene.stage.session}:", "-n", "notes", "sleep 600")
    assert scene.stage.format("#{window_name}") == "notes", "it is in front"

    assert scene.renew(asked_by="sweep").name == "Renewed"
    windows = scene.stage.ground.tmux("list-windows", "-t", f"={scene.stage.session}", "-F", "#{window_name}").split()
    assert "notes" in windows
    assert len(windows) == 2
    notes = scene.stage.ground.tmux("list-panes", "-t", f"={scene.stage.session}:notes", "-F", "#{pane_dead}")
    assert notes.split() == ["0"]


def test_a_worker_whose_automatic_renewal_is_off_is_only_reported(scene: Scene) -> None:
    scene.configure(automatic=False)
    before = scene.user_texts()

    state = scene.renew(asked_by="sweep")

    assert state.name == "Spared"
    assert scene.user_texts() == before


def test_a_renewal_by_hand_needs_neither_pressure_nor_automatic(scene: Scene) -> None:
    scene.configure(automatic=False, policy={"soft": 100_000, "handoff": 110_000, "hard": 115_000})

    assert scene.renew().name == "Renewed"


def test_force_ends_a_busy_turn_after_a_synthesized_handoff(scene: Scene) -> None:
    scene.stage.behave(turn_seconds=120)
    scene.stage.paste("a long turn")
    scene.stage.press("Enter")
    scene.stage.wait_busy()
    scene.stage.behave(turn_seconds=0.1)

    assert scene.renew(force=True).name == "Renewed"
    saved = scene.renewal.saved
    assert saved is not None
    assert saved.quality is Quality.SYNTHESIZED


@pytest.mark.usefixtures("scene")
def test_an_unknown_worker_is_refused() -> None:
    state = renew_worker("nobody", return_state=True)

    assert (state.name, state.type.value) == ("Refused", "FAILED")
    assert "nobody" in (state.message or "")
