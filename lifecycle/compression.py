"""What came of telling a worker to compact its own context: judged by its database alone. Pure.

A compaction that frees little costs a summary for nothing, and two such in a row are followed by a third: two strikes
in one conversation, and the worker is renewed instead. The figures are those of Hermes Agent's own guard against
thrashing, and of reports on compactions in a circle (hermes-agent #53008, #57771).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from lifecycle.reading import ContextReading
from lifecycle.transcript import TurnState
from lifecycle.value import Value

STRIKES = 2
"""Compactions without use in one conversation, after which it is renewed instead."""

LEAST_SAVED = 0.10
"""The share of the tokens that a compaction must free, else it was of no use."""

APART = timedelta(minutes=30)
"""The least time between two."""

GROWTH = 0.25
"""How much the context must have grown since the last one."""

AFTER_HANDOFF = timedelta(minutes=10)
"""How long after a handoff nothing is compacted: it would take away what the handoff was read against."""

DONE_WITHIN = timedelta(minutes=10)
"""A compaction of which nothing shows after so long did not take place. A real one takes up to three minutes."""


class Compression(Value):
    """The compactions that were asked for in one conversation: a session, and those it was rotated into.

    *tokens* and *compactions* are the reading before the last one, *after* the one that judged it, None until then.
    *happened* counts those that took place, *strikes* those without use.
    """

    conversation: str
    asked_at: datetime
    tokens: int
    compactions: int
    after: int | None = None
    happened: int = 0
    strikes: int = 0

    @property
    def is_judged(self) -> bool:
        return self.after is not None

    def happened_by(self, reading: ContextReading) -> int:
        """How many of the compactions that *reading* counts were asked for by Afresh."""
        if reading.conversation != self.conversation:
            return 0
        return self.happened + int(not self.is_judged and reading.compactions > self.compactions)


def asked(before: Compression | None, reading: ContextReading, now: datetime) -> Compression:
    """The memory of one more request, written before it is typed."""
    known = before if before is not None and before.conversation == reading.conversation else None
    return Compression(
        conversation=reading.conversation or "",
        asked_at=now,
        tokens=reading.tokens or 0,
        compactions=reading.compactions,
        happened=known.happened if known else 0,
        strikes=known.strikes if known else 0,
    )


def judged(
    before: Compression | None,
    reading: ContextReading,
    turn: TurnState | None,
    now: datetime,
    *,
    within: timedelta = DONE_WITHIN,
) -> Compression | None:
    """The same with what *reading* shows of the last one; as it was while that cannot be told.

    One of which nothing shows *within* that time was none, and is a strike; so is one whose summary failed.
    """
    if before is None or before.is_judged or before.conversation != reading.conversation or reading.tokens is None:
        return before
    if turn is None or turn.compacting:
        return before
    took_place = reading.compactions > before.compactions
    if not took_place and now - before.asked_at < within:
        return before
    is_smaller = before.tokens - reading.tokens >= LEAST_SAVED * before.tokens
    is_of_use = took_place and is_smaller and not turn.failed_summaries
    return before.model_copy(
        update={
            "after": reading.tokens,
            "happened": before.happened + int(took_place),
            "strikes": before.strikes + int(not is_of_use),
        }
    )


def is_spent(memory: Compression | None, reading: ContextReading) -> bool:
    """Whether asking once more would bring nothing: the worker is renewed instead."""
    return memory is not None and memory.conversation == reading.conversation and memory.strikes >= STRIKES


def not_now(
    memory: Compression | None,
    reading: ContextReading,
    turn: TurnState | None,
    last_handoff_at: datetime | None,
    now: datetime,
) -> str:
    """Why a worker that is idle is not told to compact its context now; empty where it is."""
    if turn is None or not turn.answered:
        return "its last turn has no answer"
    if turn.compaction_rests_until is not None and turn.compaction_rests_until > now:
        return f"a compaction failed, and the agent rests from it until {turn.compaction_rests_until:%H:%M} UTC"
    if last_handoff_at is not None and now - last_handoff_at < AFTER_HANDOFF:
        return "it has just written a handoff"
    if memory is None or memory.conversation != reading.conversation:
        return ""
    if not memory.is_judged:
        return "it was told to compact its context, and that is not over"
    if now - memory.asked_at < APART:
        return f"it compacted its context at {memory.asked_at:%H:%M} UTC"
    if memory.after is not None and (reading.tokens or 0) < memory.after * (1 + GROWTH):
        return f"it has hardly grown since its last compaction, which left {memory.after:,} tokens"
    return ""
