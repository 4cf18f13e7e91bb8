"""When a worker is asked, when it is renewed, and how long each step may take."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field, model_validator

from lifecycle.value import Value

CAPS = (0.60, 0.80, 0.95)
"""Soft, handoff and hard as shares of the point where the agent compacts by itself."""

CAPS_UNCOMPACTED = (0.60, 0.75, 0.85)
"""The same as shares of the usable window where the agent never compacts, so that the handoff turn still fits."""


class Limits(Value):
    """Token limits in force; a reading equal to a limit is over it."""

    soft: int
    handoff: int
    hard: int


class Policy(Value):
    """What the operator wants for a worker. Token limits are capped by the agent's own compaction point.

    The defaults are the reference system's 250,000 / 400,000 / 500,000 tokens.
    """

    signal: Literal["occupancy", "session_total"] = "occupancy"
    soft: int = Field(250_000, ge=1)
    handoff: int = Field(400_000, ge=1)
    hard: int = Field(500_000, ge=1)
    uncapped: bool = False
    max_compactions: int = Field(3, ge=0)
    renew_on_handoff: bool = True
    at_watch: Literal["checkpoint", "compress", "nothing"] = "checkpoint"
    on_stale: Literal["notify", "renew"] = "notify"
    on_missing_handoff: Literal["block", "synthesize"] = "block"
    after_resume: Literal["continue", "wait"] = "continue"
    release_on_block: bool = True
    cooldown: timedelta = timedelta(minutes=15)
    stale_after: timedelta = timedelta(minutes=30)
    busy_notice: timedelta = timedelta(hours=2)
    busy_block: timedelta = timedelta(minutes=60)

    @model_validator(mode="after")
    def _limits_rise(self) -> Policy:
        for lower, upper in (("soft", "handoff"), ("handoff", "hard")):
            below, above = getattr(self, lower), getattr(self, upper)
            if below >= above:
                msg = f"limits must rise: {lower} = {below:,} is not below {upper} = {above:,}"
                raise ValueError(msg)
        return self

    def limits(self, *, window: int | None, compaction_point: int | None) -> Limits:
        """The limits in force for a model with this usable *window* and *compaction_point*, both in tokens.

        Unknown figures cap nothing. The signal `session_total` is a bill, not an occupancy: nothing caps it.
        """
        wanted = (self.soft, self.handoff, self.hard)
        if self.uncapped or self.signal == "session_total":
            return Limits(soft=self.soft, handoff=self.handoff, hard=self.hard)
        if compaction_point is not None:
            tops = [int(compaction_point * share) for share in CAPS]
        elif window is not None:
            tops = [int(window * share) for share in CAPS_UNCOMPACTED]
        else:
            tops = list(wanted)
        soft, handoff, hard = (min(want, top) for want, top in zip(wanted, tops, strict=True))
        return Limits(soft=soft, handoff=handoff, hard=hard)


class Deadlines(Value):
    """How long each step of a renewal may take."""

    delivery: timedelta = timedelta(seconds=15)
    handoff_answer: timedelta = timedelta(minutes=20)
    idle_before_stop: timedelta = timedelta(seconds=60)
    exit: timedelta = timedelta(seconds=15)
    term: timedelta = timedelta(seconds=5)
    ready: timedelta = timedelta(seconds=120)
    resume_answer: timedelta = timedelta(minutes=20)
