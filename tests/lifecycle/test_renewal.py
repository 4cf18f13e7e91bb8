from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pydantic import ValidationError

from lifecycle.checkpoint import Checkpoint, State
from lifecycle.errors import HandoffTimeout, NotReady
from lifecycle.launch import LaunchSpec
from lifecycle.processes import ProcessId
from lifecycle.renewal import (
    Acknowledgement,
    Delivery,
    End,
    HandoffRequest,
    IllegalTransition,
    ParsedHandoff,
    Phase,
    Quality,
    Renewal,
    ResumePrompt,
    RunningSession,
    SavedHandoff,
    StoppedSession,
    block_of,
)
from lifecycle.transcript import SentRow
from lifecycle.value import Value

BEGAN = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
ROW = SentRow(session_id="s1", row_id=7, at=BEGAN)
CHECKPOINT = Checkpoint(
    state=State.HANDOFF, files_changed="a.py", commands_run="make", result="done", blocker="none", next_action="go on"
)
LAUNCH = LaunchSpec(command=("hermes", "chat"), cwd=Path("/repo"), source="configured")

PROOFS: dict[Phase, tuple[str, Value]] = {
    Phase.REQUESTED: (
        "request",
        HandoffRequest(renewal_id="r1", text="CONTEXT_HANDOFF_REQUIRED", draft=Path("/draft.md"), row=ROW),
    ),
    Phase.PARSED: ("parsed", ParsedHandoff(renewal_id="r1", checkpoint=CHECKPOINT, reply_row=8, session_id="s1")),
    Phase.SAVED: (
        "saved",
        SavedHandoff(
            renewal_id="r1",
            archive=Path("/archive/r1.md"),
            sha256="0" * 64,
            quality=Quality.WRITTEN,
            next_action="go on",
            summary="half of it is done",
            state="HANDOFF",
            answered_row=8,
        ),
    ),
    Phase.STOPPED: (
        "stopped",
        StoppedSession(
            renewal_id="r1",
            tmux_session="swarm-builder",
            pane_id="%1",
            session_id="s1",
            processes=(ProcessId(pid=2, started=1.0),),
            launch=LAUNCH,
            stopped_at=BEGAN,
        ),
    ),
    Phase.RESPAWNED: (
        "running",
        RunningSession(
            renewal_id="r1",
            pane_id="%1",
            agent=ProcessId(pid=3, started=2.0),
            generation=2,
            started_at=BEGAN,
            old_session_id="s1",
        ),
    ),
    Phase.RESUMED: ("resume", ResumePrompt(renewal_id="r1", row=ROW, text="RESUME_AFTER_HANDOFF")),
    Phase.PROVED: (
        "acknowledgement",
        Acknowledgement(renewal_id="r1", checkpoint=CHECKPOINT, row=ROW, reply_row=9, session_id="s2", baseline=31_000),
    ),
}
"""What each phase stands for. `stopping` stands on the saved handoff."""

ORDER = list(Phase)


def opened() -> Renewal:
    return Renewal(renewal_id="r1", worker_id="builder", generation=1, opened_at=BEGAN, updated_at=BEGAN)


def advanced_to(phase: Phase) -> Renewal:
    renewal = opened()
    for step in ORDER[1 : phase.rank + 1]:
        renewal = renewal.advanced(step, BEGAN, **dict([PROOFS[step]] if step in PROOFS else []))
    return renewal


class ARenewal(RuleBasedStateMachine):
    """Any order of attempts, with and without proofs, in any run, at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.renewal = opened()
        self.now = BEGAN
        self.visited = [Phase.OPENED]

    @rule(phase=st.sampled_from(ORDER), with_proof=st.booleans())
    def advance(self, phase: Phase, *, with_proof: bool) -> None:
        self.now += timedelta(seconds=1)
        before = self.renewal
        proofs = dict([PROOFS[phase]] if with_proof and phase in PROOFS else [])
        proved = with_proof or phase is Phase.STOPPING or (phase is Phase.REQUESTED and before.substitute is not None)
        may = before.is_open and ORDER.index(phase) == len(self.visited) and proved
        try:
            after = before.advanced(phase, self.now, **proofs)
        except IllegalTransition:
            assert not may
            return
        assert may
        self.visited.append(phase)
        self.renewal = after

    @rule()
    @precondition(lambda self: self.renewal.is_open)
    def take_the_next_step(self) -> None:
        if len(self.visited) < len(ORDER):
            self.advance(ORDER[len(self.visited)], with_proof=True)

    @rule(how=st.sampled_from(["synthesize", "text"]))
    def speak_for_the_worker(self, how: Literal["synthesize", "text"]) -> None:
        self.renewal = self.renewal.model_copy(update={"substitute": how})

    @rule(end=st.sampled_from(End))
    @precondition(lambda self: self.renewal.phase.reached(Phase.SAVED))
    def end(self, end: End) -> None:
        self.renewal = self.renewal.model_copy(update={"end": end})

    @rule()
    def be_cut_off_and_recalled(self) -> None:
        self.renewal = Renewal.recall(self.renewal.model_dump_json())

    @invariant()
    def phases_only_move_forward_one_by_one(self) -> None:
        assert self.visited == ORDER[: self.renewal.phase.rank + 1]
        assert list(self.renewal.phase_times) == [phase.value for phase in self.visited[1:]]

    @invariant()
    def nothing_is_stopped_before_a_handoff_is_saved(self) -> None:
        if self.renewal.has_stopped_worker or self.renewal.stopped is not None:
            assert self.renewal.saved is not None

    @invariant()
    def nothing_is_called_proved_without_an_answer(self) -> None:
        if self.renewal.phase is Phase.PROVED:
            assert self.renewal.acknowledgement is not None

    @invariant()
    def every_phase_that_was_reached_has_its_proof(self) -> None:
        for phase, (name, _) in PROOFS.items():
            spoken_for = phase is Phase.REQUESTED and self.renewal.substitute is not None
            if self.renewal.phase.reached(phase) and not spoken_for:
                assert getattr(self.renewal, name) is not None


test_a_renewal_keeps_its_promises_in_any_order_of_attempts = ARenewal.TestCase


@pytest.mark.parametrize("phase", list(PROOFS))
def test_no_phase_is_reached_without_its_proof(phase: Phase) -> None:
    with pytest.raises(IllegalTransition, match=f"without {PROOFS[phase][0]}"):
        advanced_to(ORDER[phase.rank - 1]).advanced(phase, BEGAN)


@pytest.mark.parametrize("phase", ORDER)
def test_every_phase_is_reached_with_its_proofs(phase: Phase) -> None:
    assert advanced_to(phase).phase is phase


def test_a_worker_that_a_human_speaks_for_needs_no_request_and_yet_a_saved_handoff() -> None:
    spoken_for = opened().model_copy(update={"substitute": "synthesize"}).advanced(Phase.REQUESTED, BEGAN)
    with pytest.raises(IllegalTransition):
        spoken_for.advanced(Phase.STOPPING, BEGAN)


def test_an_ended_renewal_goes_nowhere() -> None:
    ended = advanced_to(Phase.SAVED).model_copy(update={"end": End.DISMISSED})
    with pytest.raises(IllegalTransition):
        ended.advanced(Phase.STOPPING, BEGAN)


@pytest.mark.parametrize(
    ("phase", "down"),
    [
        (Phase.REQUESTED, False),
        (Phase.SAVED, False),
        (Phase.STOPPING, True),
        (Phase.STOPPED, True),
        (Phase.RESPAWNED, False),
        (Phase.RESUMED, False),
    ],
)
def test_a_block_says_whether_the_worker_is_down(phase: Phase, *, down: bool) -> None:
    block = block_of(NotReady("no input line", evidence="$"), advanced_to(phase), BEGAN)
    assert (block.worker_down, block.phase, block.reason, block.evidence) == (down, phase, "not_ready", "$")


def test_a_human_may_speak_for_the_worker_only_until_a_handoff_is_saved() -> None:
    error = HandoffTimeout("no answer")
    assert {"synthesize", "use-text"} < set(block_of(error, advanced_to(Phase.REQUESTED), BEGAN).choices)
    assert not {"synthesize", "use-text"} & set(block_of(error, advanced_to(Phase.SAVED), BEGAN).choices)


def test_only_blocks_that_wait_for_a_proof_can_clear_themselves() -> None:
    asked = Delivery(kind="handoff", text="where do you stand?", after_row=0, began_at=BEGAN)
    entered = asked.model_copy(update={"entered_at": BEGAN})

    def waits(reason: str, delivery: Delivery | None = None) -> bool:
        renewal = opened().model_copy(update={"delivery": delivery})
        block = block_of(HandoffTimeout("x", reason=reason), renewal, BEGAN)
        return renewal.model_copy(update={"block": block}).waits_for_proof

    assert all(map(waits, ["handoff_timeout", "not_ready", "resume_unanswered"]))
    assert not any(map(waits, ["handoff_outdated", "baseline_too_large", "checkpoint_stale"]))
    for reason in ("not_delivered", "interfered", "busy_too_long"):
        assert [waits(reason, delivery) for delivery in (None, asked, entered)] == [False, False, True], reason


def test_a_renewal_of_a_newer_release_is_read_leniently() -> None:
    text = advanced_to(Phase.SAVED).model_dump_json()
    newer = text.replace('"renewal_id"', '"invented_later":{"a":1},"renewal_id"')
    assert newer.count("invented_later") > 1
    assert Renewal.recall(newer) == advanced_to(Phase.SAVED)


def test_a_renewal_without_what_this_release_needs_is_not_guessed() -> None:
    with pytest.raises(ValidationError):
        Renewal.recall('{"renewal_id": "r1", "worker_id": "builder"}')


NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def test_no_secret_stands_in_an_error_or_in_the_block_that_it_makes() -> None:
    secret = "sk-abcdef0123456789abcd"
    error = NotReady(f"starts with API_KEY={secret}", worker_id="swarm1", evidence=f"$ export API_KEY={secret}")
    error.evidence += f" {secret}"
    renewal = Renewal(renewal_id="r1", worker_id="swarm1", generation=1, opened_at=NOON, updated_at=NOON)
    placed = block_of(error, renewal, NOON)
    assert secret not in str(error)
    assert secret not in placed.model_dump_json()
