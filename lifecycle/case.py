"""The facts of one decision, and what its rows ask of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lifecycle.breaker import Breaker
from lifecycle.policy import Policy
from lifecycle.reading import ContextReading, ContextState
from lifecycle.record import WorkerRecord
from lifecycle.screen import PaneLook, PaneState
from lifecycle.transcript import TurnState
from lifecycle.worker import Worker

JUST_TYPED = timedelta(minutes=2)

HINDERING = {
    PaneState.TYPED: "text stands in its input line",
    PaneState.COPY_MODE: "its pane is in copy mode",
    PaneState.COMPACTING: "its context is being compacted",
    PaneState.STARTING: "the agent is starting",
    PaneState.UNKNOWN: "its pane shows nothing that Afresh knows",
}


def may_queue(reading: ContextReading | None, policy: Policy, *, queues: bool, by_hand: bool) -> bool:
    """Whether a worker is asked behind its turn: where that is kept, over the hard limit or at a human's word."""
    return queues and (by_hand or (reading is not None and reading.is_over_hard(policy)))


@dataclass(frozen=True)
class Case:
    """The arguments of `decide`, and what several rows ask of them."""

    worker: Worker
    reading: ContextReading
    record: WorkerRecord
    pane: PaneLook
    turn: TurnState | None
    now: datetime
    queues: bool
    by_hand: bool
    assignment_open: bool
    rebooted: bool = False
    breaker: Breaker | None = None

    @property
    def policy(self) -> Policy:
        return self.worker.policy

    @property
    def state(self) -> ContextState:
        return self.reading.state(self.policy)

    @property
    def is_urgent(self) -> bool:
        """Over the hard limit by tokens: many compactions alone wait for idle like handoff_required."""
        return self.state is ContextState.RENEW_REQUIRED and self.reading.is_over_hard(self.policy)

    @property
    def may_queue(self) -> bool:
        return may_queue(self.reading, self.policy, queues=self.queues, by_hand=self.by_hand)

    @property
    def figures(self) -> str:
        """The reading in words, with the limit that it is over."""
        figure = self.reading.pressure(self.policy) or 0
        limits = self.reading.limits(self.policy)
        if figure >= limits.hard:
            return f"{figure:,} tokens, over the hard limit of {limits.hard:,}"
        if self.reading.own_compactions > self.policy.max_compactions:
            return f"{self.reading.own_compactions} compactions in one session, more than {self.policy.max_compactions}"
        if figure >= limits.handoff:
            return f"{figure:,} tokens, over the handoff limit of {limits.handoff:,}"
        if figure >= limits.soft:
            return f"{figure:,} tokens, over the soft limit of {limits.soft:,}"
        return f"{figure:,} tokens, under the soft limit of {limits.soft:,}"

    @property
    def hindrance(self) -> str:
        """Why nothing may be typed although no dialog is open; empty where the pane is idle or just busy."""
        turn = self.turn
        if self.pane.unseen:
            return f"its pane cannot be seen: {self.pane.unseen}"
        if self.pane.state in HINDERING:
            return HINDERING[self.pane.state]
        if self.pane.typed:
            return HINDERING[PaneState.TYPED]
        if self.pane.was_typed_in_since(self.now, JUST_TYPED) and not self.by_hand:
            return "someone typed in its session in the last two minutes"
        if self.pane.background or (turn is not None and turn.delegating):
            return "a delegate or background turn is running"
        if turn is not None and turn.compacting:
            return "its context is being compacted"
        return ""

    @property
    def is_cut_off(self) -> bool:
        """The host went down under the worker, and it has not come back."""
        return self.rebooted and self.pane.state in (PaneState.ABSENT, PaneState.EXITED)

    @property
    def still_for(self) -> timedelta:
        """How long a turn has neither written a row nor changed its screen."""
        since = self.record.still_since
        return self.now - since if since is not None and self.pane.state is PaneState.BUSY else timedelta(0)

    @property
    def busy_for(self) -> timedelta:
        since = self.record.busy_since
        return self.now - since if since is not None else timedelta(0)

    @property
    def is_busy_at_a_humans_word(self) -> bool:
        """Whether a human has closed the block that this very run of busy looks led to."""
        dismissed, since = self.record.dismissal("busy_too_long"), self.record.busy_since
        return dismissed is not None and since is not None and dismissed.at >= since
