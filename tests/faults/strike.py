"""Where and how a fault strikes in a flow process. Pure: `weaving` carries it out."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Step = Literal["detect", "request", "parse", "persist", "stop", "respawn", "resume", "prove"]
STEPS: tuple[Step, ...] = ("detect", "request", "parse", "persist", "stop", "respawn", "resume", "prove")

Where = Literal["before", "inside", "after", "begun", "looked"]
"""*inside*: right behind the step's side effect and before its proof is written. *begun*: in the middle of it.
*looked*: behind its first look at the worker."""

WHERE: tuple[Where, ...] = ("before", "inside", "after")

Act = Literal[
    "KILL",  # the signal, from the process to itself
    "INT",
    "TERM",
    "run",  # a program, with the text as its arguments for a shell
    "full",  # no file of this process may grow from now on, as on a full disk
    "clock",  # the wall clock jumps by so many seconds
    "nap",  # both clocks jump by so many seconds, as for a process that did not run meanwhile
]


@dataclass(frozen=True)
class Strike:
    """One act at one place of one step. It happens once in the life of the process."""

    act: Act
    where: Where
    step: Step
    text: str = ""

    def __str__(self) -> str:
        words = {"KILL": "kill -9", "INT": "INT", "TERM": "TERM"}.get(self.act, f"{self.act} {self.text}".strip())
        return f"{words} {self.where} {self.step}"


PROGRAM = f"cd {Path(__file__).parents[2]} && {sys.executable} -m tests.faults."
"""How a shell starts one of the small programs here."""


def run_at(where: Where, step: Step, command: str) -> Strike:
    """A program that runs while the flow process waits for it."""
    return Strike("run", where, step, command)
