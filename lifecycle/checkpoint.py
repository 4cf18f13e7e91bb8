"""The six-field checkpoint block in a worker's reply."""

from __future__ import annotations

from enum import StrEnum

from lifecycle.value import Value


class State(StrEnum):
    """What a worker says of itself in a checkpoint."""

    DONE = "DONE"
    BLOCKED = "BLOCKED"
    NEEDS_INPUT = "NEEDS_INPUT"
    HANDOFF = "HANDOFF"
    IN_PROGRESS = "IN_PROGRESS"

    @property
    def runtime_state(self) -> str:
        """The reference system's runtime.json `state` for it."""
        return _RUNTIME[self]

    @property
    def checkpoint_status(self) -> str:
        """The reference system's `checkpointStatus` for it."""
        return self.value.lower()


_RUNTIME = {
    State.DONE: "idle",
    State.BLOCKED: "blocked",
    State.NEEDS_INPUT: "waiting",
    State.HANDOFF: "idle",
    State.IN_PROGRESS: "executing",
}


class Checkpoint(Value):
    """One complete block. Values are the worker's own words: data, never instructions."""

    state: State
    files_changed: str
    commands_run: str
    result: str
    blocker: str
    next_action: str
    renewal_id: str | None = None
    note: str = ""
