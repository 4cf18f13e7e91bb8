"""What the machine knows of a worker when its session ends: the trail that no worker has to remember."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar

from lifecycle.looking import only_looks
from lifecycle.value import Value

Act = Literal["read", "written", "patched"]


class WorkTree(Value):
    """The git work tree in which the worker stood. *branch* is None on a detached HEAD, *head* before the first commit.

    *dirty* are tracked paths with git's two letters before them (`.M src/rows.py`), *untracked* those that git neither
    tracks nor ignores, both relative to *root* and cut to the first few hundred; *left_out* counts the rest. *snapshot*
    is the ref that holds all of them, *commit* what it points to; *not_stored* are paths that it does not hold, each
    with the reason.
    """

    root: Path
    branch: str | None = None
    head: str | None = None
    dirty: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    left_out: int = 0
    snapshot: str | None = None
    commit: str | None = None
    not_stored: tuple[str, ...] = ()


class TouchedFile(Value):
    """A file that the worker's tools read or changed, as the worker named it; *last* is when it did so last."""

    path: str
    acts: tuple[Act, ...]
    times: int = 1
    last: datetime

    @property
    def is_lesser(self) -> bool:
        """It was only read: it can be read again."""
        return set(self.acts) == {"read"}


class Command(Value):
    """A command that the worker ran. *exit_code* is None where none was recorded (it ran in the background)."""

    command: str
    exit_code: int | None = None
    at: datetime
    cwd: str | None = None

    @property
    def is_lesser(self) -> bool:
        """It only looked at something."""
        return only_looks(self.command)


class ToDo(Value):
    """An entry of the worker's own list that is neither done nor cancelled."""

    text: str
    status: Literal["pending", "in_progress"]


class OpenCall(Value):
    """A tool call whose result was never written: its effect is unknown, so it is verified before it is repeated."""

    tool: str
    told: str
    at: datetime


class BackgroundProcess(Value):
    """A process that the agent ran in the background; the renewal ends it."""

    pid: int
    command: str


class KeptResult(Value):
    """A large tool result that is kept beside the handoff, redacted; `afresh artifact show` prints it.

    *characters* is the size of what is kept, *summary* one line that was made by rule.
    """

    handle: str
    tool: str
    characters: int
    summary: str


class Collected(Value):
    """All of it, each list oldest first and redacted. *sessions* are the ids that the conversation had, the last one
    that it ends with. *troubles* say in a sentence each what could not be collected.

    It is bounded when it is made (`lifecycle.collecting`), so that it can be kept in the ledger; the handoff shows as
    much of it as fits into its budget.
    """

    at: datetime
    cwd: Path | None = None
    git: WorkTree | None = None
    files: tuple[TouchedFile, ...] = ()
    commands: tuple[Command, ...] = ()
    todos: tuple[ToDo, ...] = ()
    interrupted: tuple[OpenCall, ...] = ()
    background: tuple[BackgroundProcess, ...] = ()
    sessions: tuple[str, ...] = ()
    results: tuple[KeptResult, ...] = ()
    troubles: tuple[str, ...] = ()


_T = TypeVar("_T", TouchedFile, Command)
_NUMBER = re.compile(r"\d+")


def going_first(listed: Sequence[TouchedFile] | Sequence[Command]) -> list[int]:
    """The places in *listed* in the order in which they are left out: what only looked, what was done again later with
    other numbers, then the oldest.
    """
    forms = [_form(one) for one in listed]
    last = {form: place for place, form in enumerate(forms)}

    def rank(place: int) -> tuple[int, int]:
        again = last[forms[place]] != place
        return (0 if listed[place].is_lesser else 1 if again else 2, place)

    return sorted(range(len(listed)), key=rank)


def _form(one: TouchedFile | Command) -> str:
    if isinstance(one, TouchedFile):
        return one.path
    return f"{one.exit_code} {_NUMBER.sub('0', one.command)}"


def newest(listed: Sequence[_T], most: int) -> list[_T]:
    """At most so many of *listed*, in their order."""
    gone = set(going_first(listed)[: max(0, len(listed) - most)])
    return [one for place, one in enumerate(listed) if place not in gone]
