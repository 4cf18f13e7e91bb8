"""The scripted agent stands in for the real one in the fast tests, so its face, habits and records must be alike."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.agents.ground import has_ended
from tests.agents.stage import Stage

REQUEST = """CONTEXT_HANDOFF_REQUIRED
Your context is 400,000 tokens long.
WORKER: swarm1
MISSION: mission-seeds
RENEWAL_ID: r-1a2b
DRAFT: {draft}
Reply with these lines:
STATE: HANDOFF
FILES_CHANGED: <every file>
COMMANDS_RUN: <the commands>
RESULT: <what is finished>
BLOCKER: <what stands in the way, or none>
NEXT_ACTION: <the one exact next step>
RENEWAL_ID: r-1a2b"""
RESUME = """RESUME_AFTER_HANDOFF
RENEWAL_ID: r-1a2b
HANDOFF: {archive}
NEXT_ACTION: <the next exact action>
NEXT_ACTION: open drawer four"""


def ask(stage: Stage, text: str) -> str:
    return stage.answer_to(stage.say(text)).content


def request(stage: Stage) -> str:
    return REQUEST.format(draft=stage.paths.draft("r-1a2b"))


def session(stage: Stage) -> sqlite3.Row:
    with closing(sqlite3.connect(f"file:{stage.profile / 'state.db'}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        found: sqlite3.Row = db.execute("SELECT * FROM sessions ORDER BY started_at DESC LIMIT 1").fetchone()
        return found


def users(stage: Stage) -> list[str]:
    return [row.content for row in stage.rows() if row.role == "user"]


def test_it_gets_ready_and_has_no_session_before_its_first_message(empty_stage: Stage) -> None:
    empty_stage.start()
    empty_stage.wait_ready()
    assert empty_stage.input_line() == "swarm1 ❯"
    assert "⏲" in empty_stage.screen()
    assert session(empty_stage) is None


def test_its_command_line_is_an_agents(stage: Stage) -> None:
    process = psutil.Process(stage.pane_pid)
    assert [Path(part).name for part in process.cmdline()[1:]] == ["hermes", "chat", "--cli"]
    assert process.environ()["HERMES_HOME"] == str(stage.profile)


@pytest.mark.parametrize("lines", [3, 10, 800])
def test_a_bracketed_paste_of_many_lines_is_one_row_with_exactly_that_text(stage: Stage, lines: int) -> None:
    text = "\n".join(f"line {i}: «quotes», 中文, $HOME, `x`" for i in range(lines))
    stage.say(text)
    assert users(stage) == [text]


def test_a_long_paste_shows_as_a_placeholder_until_it_is_sent(stage: Stage) -> None:
    stage.paste("\n".join("abcdef"))
    shown = stage.wait(lambda: (stage.input_line() or "").removeprefix("swarm1 ❯ ").removeprefix("swarm1 ❯"))
    assert re.match(r"\[Pasted text #1: 6 lines → .*/pastes/paste_1_\d{6}\.txt\]", shown)


def test_a_paste_without_brackets_falls_apart_into_a_message_for_each_line(stage: Stage) -> None:
    stage.ground.tmux("load-buffer", "-b", "plain", "-", text="one\ntwo\nthree\n")
    stage.ground.tmux("paste-buffer", "-d", "-b", "plain", "-t", f"={stage.session}:")
    stage.wait(lambda: users(stage) == ["one", "two", "three"])


def test_a_turn_shows_busy_does_real_work_and_comes_back(stage: Stage) -> None:
    stage.behave(held=True)
    row = stage.say("go on")
    stage.wait(lambda: (stage.input_line() or "").startswith("⚕ ❯ msg=interrupt"))
    assert "⏱" in stage.screen()
    stage.behave(held=False)
    assert stage.answer_to(row).finish_reason == "stop"
    stage.wait_ready()
    assert [found.role for found in stage.rows()] == ["user", "assistant", "tool", "assistant"]
    assert len(stage.ledger()) == 1


def test_text_sent_while_it_is_busy_is_answered_after_the_turn(stage: Stage) -> None:
    stage.behave(held=True)
    stage.say("first")
    stage.paste("second")
    stage.wait(lambda: stage.holds("second"))
    stage.press("Enter")
    stage.wait(lambda: not stage.holds("second"))
    assert users(stage) == ["first"]
    stage.behave(held=False)
    stage.wait(lambda: len(stage.rows()) == 8)
    assert [row.role for row in stage.rows()] == ["user", "assistant", "tool", "assistant"] * 2
    assert users(stage)[-1] == "second"


def test_text_typed_before_it_is_ready_is_lost(empty_stage: Stage) -> None:
    empty_stage.start(held=True)
    empty_stage.wait(empty_stage.starts)
    empty_stage.paste("too early\n")
    empty_stage.press("Enter")
    assert empty_stage.input_line() is None, "it is not ready yet"
    empty_stage.behave(held=False)
    empty_stage.wait_ready()
    assert users(empty_stage) == []
    assert ask(empty_stage, "now")


def test_filling_it_sets_the_last_figure_of_its_log(stage: Stage) -> None:
    stage.fill(123_456)
    log = stage.paths.agent_log.read_text()
    assert re.findall(
        rf"INFO \[{session(stage)['id']}\] agent\.conversation_loop: API call #(\d+): .*? in=(\d+) ", log
    )[-1] == (
        "2",
        "123456",
    )
    assert "123.5K/200K" in stage.screen()
    ask(stage, "and on")
    assert " in=123856 " in stage.paths.agent_log.read_text()


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_closes_its_session(stage: Stage, sign: signal.Signals) -> None:
    ask(stage, "hello")
    pid = stage.pane_pid
    psutil.Process(pid).send_signal(sign)
    stage.ground.tmux("set-option", "-g", "remain-on-exit", "on")
    stage.wait(lambda: has_ended(pid))
    assert session(stage)["end_reason"] == "cli_close"
    assert session(stage)["ended_at"] > session(stage)["started_at"]
    assert json.loads((stage.profile / "runtime" / "active_sessions.json").read_text()) == {"entries": []}


def test_killing_its_session_ends_it_cleanly_even_in_a_turn(stage: Stage) -> None:
    stage.say("go on [[slow 30]]")
    stage.stop()
    assert session(stage)["end_reason"] == "cli_close"


def test_kill_leaves_its_session_open(stage: Stage) -> None:
    ask(stage, "hello")
    stage.ground.tmux("set-option", "-g", "remain-on-exit", "on")
    pid = stage.pane_pid
    psutil.Process(pid).kill()
    stage.wait(lambda: stage.format("#{pane_dead}") == "1")
    assert session(stage)["ended_at"] is None


def test_a_stubborn_one_outlives_its_terminal(empty_stage: Stage) -> None:
    empty_stage.start(ignore_signals=True)
    empty_stage.wait_ready()
    another = empty_stage.another("swarm2")  # keeps the server up
    another.start()
    pid = empty_stage.pane_pid
    empty_stage.ground.tmux("kill-session", "-t", f"={empty_stage.session}")
    psutil.Process(pid).terminate()
    time.sleep(0.6)  # as long as a polite one would have needed, four times over
    assert not has_ended(pid)


def test_a_second_one_on_the_same_profile_refuses_to_start(stage: Stage) -> None:
    ground = stage.ground
    ground.tmux("set-option", "-g", "remain-on-exit", "on")
    ground.tmux("new-session", "-d", "-s", "second", "-e", f"HERMES_HOME={stage.profile}", *stage.command)

    def refused() -> bool:
        # tmux scrolls the first line away when it writes "Pane is dead" to the last one
        return "active session limit" in ground.tmux("capture-pane", "-p", "-S", "-", "-t", "=second:")

    stage.wait(refused)
    assert stage.is_ready()


@pytest.mark.parametrize(("kind", "survives"), [("tool", False), ("background", True), ("stray", True)])
def test_its_child_ends_with_it_only_where_the_real_one_does(empty_stage: Stage, kind: str, survives: bool) -> None:
    stage = empty_stage
    stage.start(child=kind)
    stage.wait_ready()
    child = int((stage.profile / "child.pid").read_text())
    assert psutil.pid_exists(child)
    assert ("⚙ 1" in stage.screen()) == (kind == "background")
    recorded = stage.profile / "processes.json"
    assert recorded.exists() == (kind == "background")
    if recorded.exists():
        assert [entry["pid"] for entry in json.loads(recorded.read_text())] == [child]
    stage.stop()
    assert has_ended(child) != survives


def test_the_first_starts_fail_as_often_as_told(empty_stage: Stage) -> None:
    empty_stage.behave(failed_starts=1)
    empty_stage.ground.tmux("new-session", "-d", "-s", "keeper", "cat")
    empty_stage.ground.tmux("set-option", "-g", "remain-on-exit", "on")
    empty_stage.start()
    empty_stage.wait(lambda: empty_stage.format("#{pane_dead}") == "1")
    assert "ImportError" in empty_stage.screen()
    empty_stage.ground.tmux("respawn-pane", "-t", f"={empty_stage.session}:")
    empty_stage.wait_ready()
    assert len(empty_stage.starts()) == 2


def test_one_that_never_gets_ready_shows_no_input_line(empty_stage: Stage) -> None:
    empty_stage.start(never_ready=True)
    empty_stage.wait(empty_stage.starts)
    time.sleep(0.5)  # nothing can be waited for: the claim is that nothing comes
    assert empty_stage.input_line() is None


def test_it_can_swallow_an_enter(stage: Stage) -> None:
    stage.behave(lost_enters=1)
    stage.paste("hello")
    stage.wait(lambda: stage.holds("hello"))
    stage.press("Enter")
    stage.press("x", "Enter")
    stage.wait(lambda: users(stage) == ["hellox"])


def test_it_can_lose_a_paste(stage: Stage) -> None:
    stage.behave(lost_pastes=1)
    stage.paste("hello")
    stage.paste("again")
    stage.wait(lambda: stage.holds("again"))
    assert stage.input_line() == "swarm1 ❯ again"


def test_a_handoff_request_gets_a_draft_and_a_complete_checkpoint(stage: Stage) -> None:
    answer = ask(stage, request(stage))
    assert answer.splitlines()[0] == "STATE: HANDOFF"
    assert answer.splitlines()[-1] == "RENEWAL_ID: r-1a2b"
    draft = stage.paths.draft("r-1a2b").read_text()
    assert draft.count("\n## ") == 9
    assert len(draft.split()) > 150


@pytest.mark.parametrize(
    ("manner", "wanted", "unwanted"),
    [
        ("old_id", "RENEWAL_ID: r-stale000", "r-1a2b"),
        ("template", "NEXT_ACTION: <the one exact next step>", "drawer"),
        ("partial", "STATE: HANDOFF", "NEXT_ACTION"),
        ("bold", "**STATE:** HANDOFF", "\nNEXT_ACTION"),
        ("bad_then_good", "in a moment", "STATE"),
    ],
)
def test_a_bad_answer_is_bad_in_the_way_that_was_asked_for(
    stage: Stage, manner: str, wanted: str, unwanted: str
) -> None:
    stage.behave(handoff=manner)
    answer = ask(stage, request(stage))
    assert wanted in answer
    assert unwanted not in answer


def test_the_correction_of_a_bad_answer_is_answered_well(stage: Stage) -> None:
    stage.behave(handoff="bad_then_good")
    ask(stage, request(stage))
    stage.wait_ready()
    draft = stage.paths.draft("r-1a2b")
    again = f"CONTEXT_HANDOFF_REQUIRED correction\nRENEWAL_ID: r-1a2b\nDRAFT: {draft}\nThis is the end."
    assert ask(stage, again).startswith("STATE: HANDOFF")
    assert draft.exists()


def test_a_script_changed_while_it_runs_is_obeyed_in_the_next_turn(stage: Stage) -> None:
    stage.behave(handoff="no_file", next_action="open drawer nine")
    assert "NEXT_ACTION: open drawer nine" in ask(stage, request(stage))
    assert not stage.paths.draft("r-1a2b").exists()


def test_a_silent_one_stays_busy_and_a_mute_one_is_ready_without_an_answer(stage: Stage) -> None:
    stage.behave(handoff="mute")
    stage.say(request(stage))
    stage.wait_ready()
    assert [row.role for row in stage.rows()] == ["user"]
    stage.behave(handoff="silent")
    stage.say(request(stage))
    stage.wait(lambda: (stage.input_line() or "").startswith("⚕ ❯"))
    time.sleep(0.5)  # nothing can be waited for: the claim is that nothing comes
    assert (stage.input_line() or "").startswith("⚕ ❯")


def test_enter_in_a_dialog_approves_what_nobody_read(stage: Stage) -> None:
    stage.behave(handoff="dialog")
    stage.say(request(stage))
    stage.wait(lambda: stage.input_line() == "⚠ ❯")
    assert "❯ 1. Allow once" in stage.screen()
    stage.press("Enter")
    stage.wait(lambda: any("approved by the user" in row.content for row in stage.rows()))


def test_one_that_works_on_has_newer_rows_than_its_handoff(stage: Stage) -> None:
    stage.behave(handoff="works_on")
    row = stage.say(request(stage))
    answer = stage.answer_to(row)
    stage.paths.latest.parent.mkdir(parents=True, exist_ok=True)
    stage.paths.latest.write_text("it is saved")
    stage.wait(lambda: [found for found in stage.rows() if found.id > answer.id and found.role == "tool"])


def test_a_resume_reads_the_archive_and_answers_for_the_renewal(stage: Stage) -> None:
    archive = stage.root / "archive.md"
    archive.write_text("# Handoff\n")
    row = stage.say(RESUME.format(archive=archive))
    answer = stage.answer_to(row).content
    assert "STATE: IN_PROGRESS" in answer
    assert "NEXT_ACTION: open drawer four" in answer
    assert answer.endswith("RENEWAL_ID: r-1a2b")
    assert [found.content for found in stage.rows() if found.role == "tool"] == ['{"content": "# Handoff\\n"}']


@pytest.mark.parametrize(
    ("manner", "last"), [("wrong_id", "RENEWAL_ID: r-stale000"), ("no_id", "NEXT_ACTION: open drawer four")]
)
def test_a_resume_can_name_another_renewal_or_none(stage: Stage, manner: str, last: str) -> None:
    stage.behave(resume=manner)
    assert ask(stage, RESUME.format(archive="/nowhere.md")).splitlines()[-1] == last


@pytest.mark.parametrize("knob", ["handoff", "resume"])
def test_one_that_dies_leaves_an_unanswered_row_in_an_open_session(stage: Stage, knob: str) -> None:
    stage.ground.tmux("set-option", "-g", "remain-on-exit", "on")
    stage.behave(**{knob: "die"})
    stage.say(request(stage) if knob == "handoff" else RESUME.format(archive="/nowhere.md"))
    stage.wait(lambda: stage.format("#{pane_dead}") == "1")
    assert [row.role for row in stage.rows()] == ["user"]
    assert session(stage)["ended_at"] is None


def test_two_workers_share_a_ground_and_nothing_else(stage: Stage) -> None:
    other = stage.another("swarm10")
    other.start()
    other.wait_ready()
    ask(stage, "only for one")
    assert other.rows() == []


def test_nothing_of_a_stage_outlives_it() -> None:
    stage = Stage()
    stage.start(ignore_signals=True, child="stray")
    stage.wait_ready()
    pids = [stage.pane_pid, int((stage.profile / "child.pid").read_text())]
    stage.ground.clear()
    assert all(has_ended(pid) for pid in pids)
    assert not stage.root.exists()
