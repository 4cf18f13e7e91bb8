"""What a session's rows tell of what the worker did, as its agent's adapter reads it."""

from __future__ import annotations

from datetime import datetime

from lifecycle.collected import Command, OpenCall, ToDo, TouchedFile
from lifecycle.value import Value


class LargeResult(Value):
    """A tool result too large to be carried over. *text* is readable as it stands, *size* its length as recorded.

    *told* is the command, or what the call was given, on one line.
    """

    tool: str
    told: str
    text: str
    size: int
    exit_code: int | None = None
    at: datetime


class LargeRule(Value):
    """Which results count as large: the *most* largest of more than *over* characters, none of a *protected* tool's."""

    over: int
    most: int
    protected: tuple[str, ...] = ()


class Trail(Value):
    """One conversation from its first row, also what a compaction archived; what a person undid is not in it.

    Every list is whole and oldest first; nothing is redacted yet. *sessions* are the ids that the conversation had.
    """

    cwd: str | None = None
    sessions: tuple[str, ...] = ()
    files: tuple[TouchedFile, ...] = ()
    commands: tuple[Command, ...] = ()
    todos: tuple[ToDo, ...] = ()
    interrupted: tuple[OpenCall, ...] = ()
    large: tuple[LargeResult, ...] = ()
