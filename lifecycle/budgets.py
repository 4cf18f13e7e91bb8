"""How many tokens what crosses a renewal may have."""

from __future__ import annotations

from pydantic import Field, model_validator

from lifecycle.value import Value

LEAST_TOKENS = 1_500
"""Under this not even orders and next action have room."""

LEAST_FOR_HANDOFF = 0.3
"""The share of the pack that the handoff itself keeps at least."""


class PackSettings(Value):
    """The resume pack: its tokens, and of them the share of each section. What one leaves over goes to the handoff."""

    tokens: int = Field(6_000, ge=LEAST_TOKENS)
    orders: float = Field(0.20, ge=0.0, le=1.0)
    next: float = Field(0.15, ge=0.0, le=1.0)
    hits: float = Field(0.15, ge=0.0, le=1.0)
    handles: float = Field(0.05, ge=0.0, le=1.0)

    @model_validator(mode="after")
    def _leave_room_for_the_handoff(self) -> PackSettings:
        taken = self.orders + self.next + self.hits + self.handles
        if taken > 1 - LEAST_FOR_HANDOFF:
            msg = f"the shares come to {taken:.2f}, and the handoff needs {LEAST_FOR_HANDOFF:.2f}: lower one of them"
            raise ValueError(msg)
        return self


class SynthesisSettings(Value):
    """A handoff that nobody wrote: its tokens."""

    tokens: int = Field(6_000, ge=LEAST_TOKENS)
