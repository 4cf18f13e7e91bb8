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
