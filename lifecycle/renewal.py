"""A renewal: its phases, which may follow which, and the proofs that its steps hand on. Pure."""

from __future__ import annotations

import secrets
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from lifecycle.collected import Collected
from lifecycle.errors import LifecycleError
from lifecycle.launch import LaunchSpec
from lifecycle.orders import Orders
from lifecycle.processes import ProcessId
from lifecycle.proofs import (
    Acknowledgement,
    HandoffRequest,
    ParsedHandoff,
    Quality,
    ResumeFit,
    ResumePrompt,
    RunningSession,
    SavedHandoff,
    StoppedSession,
    Unasked,
)
from lifecycle.reading import ContextReading
from lifecycle.redaction import redact
from lifecycle.rules import Rule
from lifecycle.value import Value


class Phase(StrEnum):
    """How far a renewal has come. It only moves forward; what is done is not done again."""

    OPENED = "opened"
    REQUESTED = "requested"
    PARSED = "parsed"
    SAVED = "saved"
    STOPPING = "stopping"
    STOPPED = "stopped"
    RESPAWNED = "respawned"
    RESUMED = "resumed"
    PROVED = "proved"

    @property
    def rank(self) -> int:
        return list(Phase).index(self)

    def reached(self, other: Phase) -> bool:
        return self.rank >= other.rank


class End(StrEnum):
    """How a renewal is closed."""

    RENEWED = "renewed"
    SPARED = "spared"
    DISMISSED = "dismissed"
    HELD = "held"


class IllegalTransition(Exception):
    """A bug, not a condition: never caught."""


class Block(Value):
    """What waits for a human. Sticky until answered, or until the proof it waited for turns up."""

    reason: str
    detail: str
    evidence: str = ""
    phase: Phase
    at: datetime
    worker_down: bool = False
    choices: tuple[str, ...] = ()


WAITING_FOR_PROOF = frozenset({"handoff_timeout", "not_ready", "resume_unanswered"})
"""Blocks that the next sweep clears when it finds the proof."""

WAITING_FOR_ROW = frozenset({"not_delivered", "interfered", "busy_too_long"})
"""The same, where the text was entered: an agent that queued it writes its row when its turn ends."""


class ToldBefore(Value):
    """What runtime.json said of the worker before a block was written over it."""

    state: str | None = None
    phase: str | None = None
    checkpoint_status: str | None = None
    blocked_reason: str | None = None
    needs_human: bool = False


class Renewal(Value):
    """One passage of one worker through the eight steps, as the ledger holds it."""

    renewal_id: str
    worker_id: str
    generation: int
    """The generation that ends; the new session is the next one."""
    phase: Phase = Phase.OPENED
    opened_at: datetime
    updated_at: datetime
    forced: bool = False
    purpose: Literal["renew", "handoff"] = "renew"
    """`handoff` is only stored: nothing is ever stopped for it."""
    by_hand: bool = False
    """An operator ordered it, so it needs no `automatic`."""
    why: str = ""
    end: End | None = None
    end_reason: str = ""
    block: Block | None = None
    flow_run_id: str | None = None
    taken_up_by: tuple[str, ...] = ()
    """The flow runs that went on with it: none of them begins another one when it is run again."""
    phase_times: dict[str, datetime] = {}
    reading: ContextReading | None = None
    launch: LaunchSpec | None = None
    delivery: Delivery | None = None
    request: HandoffRequest | None = None
    parsed: ParsedHandoff | None = None
    collected: Collected | None = None
    """Made once, right before the handoff is composed: one that is saved again is the same to the byte."""
    orders: Orders | None = None
    """Gathered once, right before the handoff is composed, as are the rules that only the worker's document knows."""
    claimed: tuple[Rule, ...] = ()
    saved: SavedHandoff | None = None
    stopping: tuple[ProcessId, ...] = ()
    stopped: StoppedSession | None = None
    running: RunningSession | None = None
    resume: ResumePrompt | None = None
    acknowledgement: Acknowledgement | None = None
    weak_asked: bool = False
    """A human had the new session asked again because its first answer did not fit the handoff."""
    correction: HandoffRequest | None = None
    reminder: ResumePrompt | None = None
    substitute: Literal["synthesize", "text", "reboot"] | None = None
    given_text: str | None = None
    respawns: int = 0
    released: bool = False
    ask_again: bool = False
    parks: int = 0
    """How often in a row the answer that is waited for did not come because the agent's provider failed."""
    take_ups: int = 0
    """How many flow runs in a row took it up at the phase where it stands, and ended without a word."""
    told_before: ToldBefore | None = None
    mission_id: str | None = None
    assignment_id: str | None = None

    @property
    def is_open(self) -> bool:
        return self.end is None

    @property
    def has_entered_text(self) -> bool:
        """Whether Enter was pressed below a text whose row has not been seen."""
        return self.delivery is not None and self.delivery.entered_at is not None

    @property
    def waits_for_proof(self) -> bool:
        """Whether its block is cleared when the proof turns up."""
        if self.block is None:
            return False
        waits_for_row = self.block.reason in WAITING_FOR_ROW and self.has_entered_text
        return waits_for_row or self.block.reason in WAITING_FOR_PROOF

    @property
    def has_stopped_worker(self) -> bool:
        return self.phase.reached(Phase.STOPPING)

    @property
    def leaves_worker_down(self) -> bool:
        """Whether the worker is down where the renewal stands: stopped by it, or by a reboot before it began."""
        begun_down = self.has_stopped_worker or self.substitute == "reboot"
        return begun_down and not self.phase.reached(Phase.RESPAWNED)

    def advanced(self, phase: Phase, now: datetime, **proofs: object) -> Renewal:
        """Return the renewal one phase further.

        Raises:
            IllegalTransition: *phase* skips a step or goes back, or the renewal has ended, or the proof that
                the phase stands for is missing.
        """
        if not self.is_open or phase.rank != self.phase.rank + 1:
            msg = f"{self.renewal_id}: {self.phase} → {phase}"
            raise IllegalTransition(msg)
        times = {**self.phase_times, phase.value: now}
        moved = self.model_copy(
            update={**proofs, "phase": phase, "updated_at": now, "phase_times": times, "take_ups": 0}
        )
        needed = _PROOF.get(phase)
        spoken_for = needed == "request" and self.substitute is not None
        if needed and getattr(moved, needed) is None and not spoken_for:
            msg = f"{self.renewal_id}: {phase} without {needed}"
            raise IllegalTransition(msg)
        return moved


_PROOF = {
    Phase.REQUESTED: "request",
    Phase.PARSED: "parsed",
    Phase.SAVED: "saved",
    Phase.STOPPING: "saved",
    Phase.STOPPED: "stopped",
    Phase.RESPAWNED: "running",
    Phase.RESUMED: "resume",
    Phase.PROVED: "acknowledgement",
}


class Delivery(Value):
    """The intent to type a text: written before a key is sent, so that it is never typed twice.

    *entered_at* is written before the first Enter: from then on the agent may hold the text where nobody sees it.
    """

    kind: str
    text: str
    after_row: int
    began_at: datetime
    entered_at: datetime | None = None


class Renewed(Value):
    kind: Literal["renewed"] = "renewed"
    renewal: Renewal


class Stored(Value):
    """The handoff was asked for and saved; the worker works on."""

    kind: Literal["stored"] = "stored"
    renewal: Renewal


class Spared(Value):
    """Ended with nothing done because it was no longer needed or allowed."""

    kind: Literal["spared"] = "spared"
    worker_id: str
    reason: str


class Blocked(Value):
    kind: Literal["blocked"] = "blocked"
    renewal: Renewal
    block: Block


class Parked(Value):
    """The renewal stays open and goes on by itself: at *until*, or when the trouble of its account is over."""

    kind: Literal["parked"] = "parked"
    worker_id: str
    until: datetime | None
    why: str


Outcome = Annotated[Renewed | Stored | Spared | Blocked | Parked, Field(discriminator="kind")]


class OpenedRenewal(Value):
    """Proof that the ledger holds an open renewal and that all that brings the worker back exists."""

    renewal_id: str
    worker_id: str
    reading: ContextReading


def new_renewal_id(now: datetime) -> str:
    """An id that sorts by time and cannot be guessed: it is the nonce of everything that is asked and answered."""
    return f"r{now:%y%m%d%H%M%S}-{secrets.token_hex(3)}"


def block_of(error: LifecycleError, renewal: Renewal, now: datetime) -> Block:
    """The block that *error* puts on *renewal*, with the answers that make sense in its phase."""
    down = renewal.leaves_worker_down
    given = renewal.phase.reached(Phase.PARSED)
    # What is stopped has no turn left to end; a handoff that was taken is not replaced.
    force = () if renewal.has_stopped_worker or down else ("force",)
    other_words = () if given else ("synthesize", "use-text")
    # Where the start itself is not clean, another look at the same session finds the same.
    retry = () if error.reason == "not_fresh" else ("retry",)
    choices = (*retry, *force, *other_words, "dismiss", "hold")
    return Block(
        reason=error.reason,
        detail=redact(error.detail),
        evidence=redact(error.evidence),
        phase=renewal.phase,
        at=now,
        worker_down=down,
        choices=choices,
    )


Renewal.model_rebuild()

__all__ = [
    "WAITING_FOR_PROOF",
    "WAITING_FOR_ROW",
    "Acknowledgement",
    "Block",
    "Blocked",
    "Delivery",
    "End",
    "HandoffRequest",
    "IllegalTransition",
    "OpenedRenewal",
    "Outcome",
    "Parked",
    "ParsedHandoff",
    "Phase",
    "Quality",
    "Renewal",
    "Renewed",
    "ResumeFit",
    "ResumePrompt",
    "RunningSession",
    "SavedHandoff",
    "Spared",
    "StoppedSession",
    "Stored",
    "ToldBefore",
    "Unasked",
    "block_of",
    "new_renewal_id",
]
