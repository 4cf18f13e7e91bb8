"""The state of a checkpoint: its five values, and how one is read from a worker's words."""

from __future__ import annotations

import re
from enum import StrEnum

from lifecycle.checkpoint_lines import with_closed_fences


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

_NAME = r"(?:DONE|BLOCKED|NEEDS\\?[ _-]INPUT|HANDOFF|IN\\?[ _-]PROGRESS)(?![^\W_]|[_-][^\W_])"
_STATE = re.compile(rf"[\W_]{{0,40}}+(?P<name>{_NAME})(?!\?|[ \t]+not\b)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_OR = r"(?:[|/,;&+→]|->|\b(?i:or|and|then)\b)"
_NEXT_WORD = re.compile(rf"[\W_]{{0,40}}+{_NAME}")
_NEXT_LISTED = re.compile(rf"[*_`\s)\]]{{0,20}}+{_OR}[*_`\s(\[]{{0,20}}+{_NAME}", re.IGNORECASE)
_LATER_LISTED = re.compile(rf"{_OR}[*_`\s(\[]{{0,20}}+{_NAME}")
_NOTE_EDGE = " \t\n*_`-–—:,;.!"
_SAYS_SOMETHING = re.compile(r"[^\s*_`\"')\]}.!,;:-]")


def state_in(words: str) -> tuple[State, str] | None:
    """Return the one state that *words* begin with and the note after it; None if there is none, or more than one.

    A second state is one that is listed (`DONE | BLOCKED`, `handoff or done`) or follows in capitals; a lower-case
    word in a note (`HANDOFF - blocked by lock`) is a note.
    """
    found = _STATE.match(words)
    if not found:
        return None
    rest = found["rest"]
    if _NEXT_WORD.match(rest) or _NEXT_LISTED.match(rest) or _LATER_LISTED.search(rest):
        return None
    name = re.sub(r"[ -]", "_", found["name"].replace("\\", "").upper())
    return State(name), _note(rest)


def _note(rest: str) -> str:
    note = rest.lstrip(_NOTE_EDGE)
    while note.startswith("(") and note.endswith(")") and "(" not in note[1:]:
        note = note[1:-1].strip()
    return with_closed_fences(note) if _SAYS_SOMETHING.search(note) else ""
