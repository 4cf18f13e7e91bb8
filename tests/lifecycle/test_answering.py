"""What a human's answer to a block changes, with a scripted agent and the steps themselves, without flows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lifecycle.answering import Answered, answer
from lifecycle.choice import Choice
from lifecycle.ending import block, close, find_proof
from lifecycle.errors import LifecycleError, Misuse, NotReady, Stuck
from lifecycle.host import Host
from lifecycle.renewal import Block, Blocked, End, OpenedRenewal, Phase, Quality, Renewal, Renewed
from lifecycle.steps.detecting import detect_context_pressure
from lifecycle.steps.parsing import parse_handoff
from lifecycle.steps.persisting import persist_handoff
from lifecycle.steps.proving import mark_healthy
from lifecycle.steps.requesting import request_handoff
from lifecycle.steps.respawning import respawn_worker
from lifecycle.steps.resuming import send_resume_prompt
from lifecycle.steps.stopping import stop_worker
from tests.agents.deadlines import DEADLINES
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of


@pytest.fixture
def host(stage: Stage) -> Iterator[Host]:
    stage.fill(70_000)
    with host_of(stage) as host:
        yield host


def renew(host: Host) -> Renewed | Blocked:
    """The eight steps, from where the renewal stands."""
    worker = host.worker("swarm1")
    try:
        opened = detect_context_pressure(host, worker, by_hand=True)
        assert isinstance(opened, OpenedRenewal), opened
        saved = persist_handoff(host, worker, parse_handoff(host, worker, request_handoff(host, worker, opened)))
        running = respawn_worker(host, worker, stop_worker(host, worker, saved))
        return mark_healthy(host, worker, send_resume_prompt(host, worker, running, saved))
    except LifecycleError as error:
        return block(host, worker, the_open(host), error)


def blocked(host: Host, stage: Stage, **manners: object) -> Block:
    stage.behave(**manners)
    outcome = renew(host)
    assert isinstance(outcome, Blocked), outcome
    if outcome.renewal.released:
        stage.wait_ready()  # it was told to carry on: while it says so, a handoff that is given for it is outdated
    return outcome.block


def blocked_in_time(stage: Stage, **manners: object) -> Block:
    """The same by a process that waits 3 s for an answer: what comes behind it is given the time that it needs."""
    with host_of(stage, deadlines={**DEADLINES, "handoff_answer": 3, "resume_answer": 3}) as hasty:
        return blocked(hasty, stage, **manners)


def the_open(host: Host) -> Renewal:
    found = host.ledger.record("swarm1").open_renewal
    assert found is not None
    return found


def newest(host: Host) -> Renewal:
    return host.ledger.renewals_of("swarm1", limit=1)[0]


def told(stage: Stage) -> tuple[str, bool, bool]:
    """What runtime.json says: the state, whether the worker takes work, whether it needs a human."""
    found = json.loads(stage.paths.runtime_json.read_text())
    return found["state"], found["acceptingWork"], found["needsHuman"]


def decide(host: Host, choice: Choice, **more: str) -> Answered:
    return answer(host, host.worker("swarm1"), choice, who="alex", **more)


def test_nothing_is_answered_where_nothing_is_blocked(host: Host) -> None:
    for choice in Choice:
        with pytest.raises(Misuse, match="no block that waits"):
            decide(host, choice, text="words")
    assert host.ledger.events("swarm1") == []


def test_retry_goes_on_with_the_same_renewal_and_asks_again(host: Host, stage: Stage) -> None:
    placed = blocked(host, stage, handoff="partial")
    assert (placed.reason, placed.phase) == ("checkpoint_incomplete", Phase.REQUESTED)
    before = the_open(host)
    stage.behave(handoff="good")

    answered = decide(host, Choice.RETRY)

    assert (answered.goes_on, answered.renewal_id) == (True, before.renewal_id)
    assert (the_open(host).block, the_open(host).phase) == (None, Phase.REQUESTED)
    assert isinstance(renew(host), Renewed)
    assert (newest(host).renewal_id, newest(host).end) == (before.renewal_id, End.RENEWED)


def test_retry_after_a_silent_timeout_asks_again(host: Host, stage: Stage) -> None:
    placed = blocked_in_time(stage, handoff="mute")
    assert (placed.reason, placed.detail) == (
        "handoff_timeout",
        "swarm1: no answer to the handoff request within 3 s",
    )
    stage.behave(handoff="good")

    decide(host, Choice.RETRY)

    assert isinstance(renew(host), Renewed)


def test_retry_of_an_unanswered_resume_reminds_the_new_session(host: Host, stage: Stage) -> None:
    placed = blocked_in_time(stage, resume="mute")
    assert (placed.reason, placed.phase) == ("resume_unanswered", Phase.RESUMED)
    assert "within 3 s" in placed.detail
    stage.behave(resume="good")

    decide(host, Choice.RETRY)

    assert isinstance(renew(host), Renewed)
    assert len(stage.starts()) == 2, "nobody restarts a session that only has to be asked again"


def test_retry_after_a_failed_start_starts_again(host: Host, stage: Stage) -> None:
    placed = blocked(host, stage, failed_starts=9)
    assert (placed.reason, placed.worker_down) == ("not_ready", True)
    assert placed.choices == ("retry", "dismiss", "hold")
    stage.behave(failed_starts=0)

    decide(host, Choice.RETRY)

    assert isinstance(renew(host), Renewed)


def test_synthesize_goes_on_with_a_handoff_that_is_marked_so(host: Host, stage: Stage) -> None:
    blocked(host, stage, handoff="partial")

    assert decide(host, Choice.SYNTHESIZE).goes_on

    assert isinstance(renew(host), Renewed)
    (stored,) = host.ledger.handoffs_of("swarm1")
    assert stored.quality is Quality.SYNTHESIZED


def test_use_text_goes_on_with_the_humans_words(host: Host, stage: Stage) -> None:
    blocked(host, stage, handoff="partial")
    text = "## Objective\nFinish the inventory of the north depot.\n\n## Exact next action\nCount aisle 14.\n"

    assert decide(host, Choice.USE_TEXT, text=text).goes_on

    assert isinstance(renew(host), Renewed)
    (stored,) = host.ledger.handoffs_of("swarm1")
    words, intact = host.stored_text(stored)
    assert intact
    assert "Finish the inventory of the north depot." in words


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_use_text_needs_words(host: Host, stage: Stage, text: str | None) -> None:
    placed = blocked(host, stage, handoff="partial")

    with pytest.raises(Misuse, match="not empty"):
        answer(host, host.worker("swarm1"), Choice.USE_TEXT, who="alex", text=text)
    assert the_open(host).block == placed


def test_force_goes_on_without_the_worker(host: Host, stage: Stage) -> None:
    blocked(host, stage, handoff="partial")

    assert decide(host, Choice.FORCE).goes_on

    assert (the_open(host).forced, the_open(host).substitute, the_open(host).block) == (True, "synthesize", None)
    assert isinstance(renew(host), Renewed)


def test_force_stops_a_worker_that_worked_on_after_its_handoff(host: Host, stage: Stage) -> None:
    placed = blocked(host, stage, handoff="works_on")
    assert "force" in placed.choices

    decide(host, Choice.FORCE)

    assert isinstance(renew(host), Renewed)


def test_retry_of_a_worker_that_was_told_to_carry_on_asks_for_a_fresh_handoff(host: Host, stage: Stage) -> None:
    blocked(host, stage, handoff="works_on")
    stage.behave(handoff="good")
    old = the_open(host).renewal_id

    answered = decide(host, Choice.RETRY)

    assert answered.goes_on
    assert isinstance(renew(host), Renewed)
    assert newest(host).renewal_id != old
    assert host.ledger.renewal(old).end is End.DISMISSED


def test_a_saved_handoff_is_not_replaced(host: Host, stage: Stage) -> None:
    placed = blocked(host, stage, handoff="works_on")
    assert (placed.reason, placed.phase) == ("handoff_outdated", Phase.SAVED)
    assert not {"synthesize", "use-text"} & set(placed.choices)

    for choice in (Choice.SYNTHESIZE, Choice.USE_TEXT):
        with pytest.raises(Misuse, match="saved already"):
            decide(host, choice, text="words")
    assert the_open(host).block == placed


def test_dismiss_closes_the_renewal_and_leaves_the_worker_to_its_work(host: Host, stage: Stage) -> None:
    blocked(host, stage, handoff="partial")
    pid = stage.pane_pid

    answered = decide(host, Choice.DISMISS, why="false alarm")

    assert answered.goes_on is False
    assert (newest(host).end, newest(host).end_reason, newest(host).block) == (End.DISMISSED, "false alarm", None)
    record = host.ledger.record("swarm1")
    assert record.open_renewal is None
    assert record.cooldown_until is not None
    assert record.cooldown_until > host.now()
    assert not record.is_held
    assert stage.pane_pid == pid
    assert told(stage) == ("idle", False, False), "it is over its handoff limit as before"


def test_hold_closes_the_renewal_and_keeps_hands_off(host: Host, stage: Stage) -> None:
    blocked(host, stage, handoff="partial")

    decide(host, Choice.HOLD, why="I look at it myself")

    record = host.ledger.record("swarm1")
    assert (newest(host).end, record.open_renewal, record.is_held) == (End.HELD, None, True)
    assert record.held_why == "I look at it myself"
    assert told(stage) == ("idle", False, False)


@pytest.mark.parametrize("choice", [Choice.DISMISS, Choice.HOLD])
def test_a_stopped_worker_is_brought_back_before_the_renewal_is_closed(
    host: Host, stage: Stage, choice: Choice
) -> None:
    assert blocked(host, stage, failed_starts=9).worker_down
    stage.behave(failed_starts=0)

    answered = decide(host, choice)

    assert answered.message.endswith("is closed; the worker was started again")
    assert stage.is_ready()


def test_a_stopped_worker_that_cannot_be_brought_back_is_said_to_be_down(host: Host, stage: Stage) -> None:
    blocked(host, stage, failed_starts=99)

    answered = decide(host, Choice.DISMISS)

    assert "the worker is DOWN" in answered.message
    assert "`afresh start swarm1`" in answered.message
    assert newest(host).end is End.DISMISSED
    assert told(stage) == ("offline", False, True)


def test_an_answer_is_recorded_with_who_and_why(host: Host, stage: Stage) -> None:
    blocked(host, stage, handoff="partial")

    decide(host, Choice.DISMISS, why="false alarm")

    (recorded,) = [event for event in host.ledger.events("swarm1") if event.kind == "answered"]
    assert recorded.detail == {"choice": "dismiss", "who": "alex", "why": "false alarm"}
    assert recorded.renewal_id == newest(host).renewal_id


def test_a_handoff_that_was_given_and_could_not_be_saved_is_not_replaced(host: Host, stage: Stage) -> None:
    in_the_way = stage.paths.archive
    in_the_way.parent.mkdir(parents=True, exist_ok=True)
    opened = detect_context_pressure(host, host.worker("swarm1"), by_hand=True)
    assert isinstance(opened, OpenedRenewal)
    in_the_way.rmdir()
    in_the_way.write_text("no folder")
    placed = blocked(host, stage)
    assert (placed.reason, placed.phase) == ("handoff_not_saved", Phase.PARSED)
    assert placed.choices == ("retry", "force", "dismiss", "hold")

    for choice in (Choice.SYNTHESIZE, Choice.USE_TEXT):
        with pytest.raises(Misuse, match="given already"):
            decide(host, choice, text="words")
    assert the_open(host).block == placed


def test_a_proof_that_is_found_clears_the_block_and_says_so(host: Host, stage: Stage) -> None:
    blocked(host, stage, failed_starts=9)
    assert not find_proof(host, host.worker("swarm1"), the_open(host))
    stage.behave(failed_starts=0)
    stage.ground.tmux("respawn-pane", "-k", "-t", f"={stage.session}:")
    stage.wait_ready()

    assert find_proof(host, host.worker("swarm1"), the_open(host))

    assert (the_open(host).block, the_open(host).phase) == (None, Phase.STOPPED)
    assert "block.cleared" in [event.kind for event in host.ledger.events("swarm1")]


def test_a_proof_does_not_undo_what_a_human_answered_meanwhile(host: Host, stage: Stage) -> None:
    blocked(host, stage, failed_starts=9)
    stale = the_open(host)
    stage.behave(failed_starts=0)
    decide(host, Choice.DISMISS)

    assert stage.is_ready(), "the proof is there"
    assert not find_proof(host, host.worker("swarm1"), stale)
    assert newest(host).end is End.DISMISSED


def runtime(stage: Stage) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stage.paths.runtime_json.read_text())
    return found


@pytest.mark.parametrize("choice", [Choice.DISMISS, Choice.HOLD])
@pytest.mark.parametrize(
    "before",
    [
        {"state": "executing", "phase": "dispatched", "checkpointStatus": "in_progress"},
        {
            "state": "waiting",
            "phase": "needs_input",
            "checkpointStatus": "needs_input",
            "needsHuman": True,
            "blockedReason": "which branch?",
        },
    ],
)
def test_what_a_block_wrote_over_is_written_back_when_it_is_closed(
    host: Host, stage: Stage, choice: Choice, before: dict[str, Any]
) -> None:
    stage.paths.runtime_json.write_text(json.dumps(before))
    blocked(host, stage, handoff="partial")
    assert (runtime(stage)["state"], runtime(stage)["checkpointStatus"]) == ("blocked", "blocked")

    decide(host, choice)

    after = runtime(stage)
    assert {key: after[key] for key in before} == before
    assert after["acceptingWork"] is False


def test_what_the_swarm_wrote_since_a_block_is_kept_when_it_is_closed(host: Host, stage: Stage) -> None:
    blocked(host, stage, handoff="partial")
    stage.paths.runtime_json.write_text(json.dumps({**runtime(stage), "state": "executing", "phase": "dispatched"}))

    decide(host, Choice.DISMISS)

    assert (runtime(stage)["state"], runtime(stage)["phase"]) == ("executing", "dispatched")


def test_a_renewal_that_ends_without_a_block_says_only_whether_the_worker_takes_work(host: Host, stage: Stage) -> None:
    before = {"state": "executing", "phase": "dispatched", "checkpointStatus": "in_progress"}
    stage.paths.runtime_json.write_text(json.dumps(before))
    worker = host.worker("swarm1")
    opened = detect_context_pressure(host, worker, by_hand=True)
    assert isinstance(opened, OpenedRenewal)

    close(host, worker, the_open(host), End.SPARED, "not now")

    after = runtime(stage)
    assert {key: after[key] for key in before} == before
    assert after["acceptingWork"] is False


@pytest.mark.parametrize("choice", [Choice.DISMISS, Choice.HOLD])
def test_a_new_session_counts_as_a_generation_also_where_its_renewal_was_closed(
    host: Host, stage: Stage, choice: Choice
) -> None:
    assert blocked_in_time(stage, resume="silent").phase is Phase.RESUMED

    decide(host, choice)

    record = host.ledger.record("swarm1")
    assert record.generation == 2
    assert len(record.renewals) == 1
    assert record.baseline_session == record.session_id == newest(host).resume.row.session_id  # type: ignore[union-attr]
    assert record.baseline is not None


def test_a_block_of_a_start_that_is_not_clean_offers_no_retry(host: Host) -> None:
    error = NotReady("it resumed the old conversation", worker_id="swarm1", reason="not_fresh")
    worker = host.worker("swarm1")
    assert isinstance(detect_context_pressure(host, worker, by_hand=True), OpenedRenewal)

    assert "retry" not in block(host, worker, the_open(host), error).block.choices
    with pytest.raises(Misuse, match="another try would end the same; answer"):
        decide(host, Choice.RETRY)


def test_a_renewal_that_three_runs_left_at_one_phase_is_stuck(host: Host) -> None:
    worker = host.worker("swarm1")
    for number in range(4):
        assert isinstance(
            detect_context_pressure(host, worker, by_hand=True, flow_run_id=f"run-{number}"), OpenedRenewal
        )
    with pytest.raises(Stuck) as stuck:
        detect_context_pressure(host, worker, by_hand=True, flow_run_id="run-4")
    assert block(host, worker, the_open(host), stuck.value).block.reason == "stuck"

    decide(host, Choice.RETRY)

    assert isinstance(detect_context_pressure(host, worker, by_hand=True, flow_run_id="run-5"), OpenedRenewal)


def test_a_renewal_that_comes_on_from_run_to_run_is_not_stuck(host: Host) -> None:
    worker = host.worker("swarm1")
    for number, phase in enumerate((None, None, Phase.REQUESTED, None, None)):
        opened = detect_context_pressure(host, worker, by_hand=True, flow_run_id=f"run-{number}")
        assert isinstance(opened, OpenedRenewal)
        if phase is Phase.REQUESTED:
            request_handoff(host, worker, opened)
    assert the_open(host).take_ups == 2
