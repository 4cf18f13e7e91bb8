"""The answers that a block can be given."""

from __future__ import annotations

from enum import StrEnum


class Choice(StrEnum):
    """What a human decides about a block. The first four go on with the same renewal, the others close it."""

    RETRY = "retry"
    FORCE = "force"
    SYNTHESIZE = "synthesize"
    USE_TEXT = "use-text"
    DISMISS = "dismiss"
    HOLD = "hold"

    @property
    def meaning(self) -> str:
        """What the answer does, in words."""
        return _MEANINGS[self]


_MEANINGS = {
    Choice.RETRY: "goes on with the same renewal from its phase",
    Choice.FORCE: "goes on, and ends a busy turn too, after a synthesized handoff",
    Choice.SYNTHESIZE: "goes on with a handoff made from the transcript",
    Choice.USE_TEXT: "goes on with a handoff that you give",
    Choice.DISMISS: "closes the renewal; brings a stopped worker back first",
    Choice.HOLD: "closes the renewal and keeps hands off; brings a stopped worker back first",
}
