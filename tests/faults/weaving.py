"""Weaving a strike into the steps of this process, by patching what they call."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any

from lifecycle import archive
from lifecycle.ledger import Ledger
from lifecycle.steps import detecting, parsing, persisting, proving, requesting, respawning, resuming, stopping
from lifecycle.terminal import Terminal
from lifecycle.waiting import SystemClock
from tests.faults.strike import Step, Strike

_STEPS: dict[Step, tuple[ModuleType, str]] = {
    "detect": (detecting, "detect_context_pressure"),
    "request": (requesting, "request_handoff"),
    "parse": (parsing, "parse_handoff"),
    "persist": (persisting, "persist_handoff"),
    "stop": (stopping, "stop_worker"),
    "respawn": (respawning, "respawn_worker"),
    "resume": (resuming, "send_resume_prompt"),
    "prove": (proving, "mark_healthy"),
}
_INSIDE: dict[Step, tuple[object, str]] = {
    "detect": (Ledger, "open"),
    "request": (Terminal, "press_enter"),
    "parse": (parsing, "weigh"),
    "persist": (archive, "save"),
    "stop": (stopping, "end"),
    "respawn": (Terminal, "spawn"),
    "resume": (Terminal, "press_enter"),
    "prove": (proving, "acknowledgement"),
}
"""The side effect of each step; of those that have none, the last thing before the proof is written."""

_BEGUN: dict[Step, tuple[object, str]] = {
    "request": (Terminal, "paste"),
    "persist": (archive, "_check"),
    "stop": (stopping, "ask_to_exit"),
    "resume": (Terminal, "paste"),
    "prove": (proving, "_carry_on"),
}

_LOOKED: dict[Step, tuple[object, str]] = {"stop": (stopping, "_refuse_second")}


class Loom:
    """Knows which step runs, and strikes once."""

    def __init__(self, strike: Strike) -> None:
        self.strike = strike
        self.step: Step | None = None
        self.is_done = False

    def weave(self) -> None:
        """Patch every step, to know where the process stands, and the place where the strike belongs."""
        for step, (module, name) in _STEPS.items():
            setattr(module, name, self._watched(step, getattr(module, name)))
        places = {"inside": _INSIDE, "begun": _BEGUN, "looked": _LOOKED}.get(self.strike.where)
        if places is not None:
            owner, name = places[self.strike.step]
            setattr(owner, name, self._followed(getattr(owner, name)))

    def _watched(self, step: Step, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            outer, self.step = self.step, step
            self._strike_at("before")
            try:
                result = call(*arguments, **named)
                self._strike_at("after")
                return result
            finally:
                self.step = outer

        return run

    def _followed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            result = call(*arguments, **named)
            self._strike_at(self.strike.where)
            return result

        return run

    def _strike_at(self, where: str) -> None:
        if not self.is_done and (where, self.step) == (self.strike.where, self.strike.step):
            self.is_done = True
            _ACTS[self.strike.act](self.strike.text)


def _signal_oneself(number: signal.Signals) -> Callable[[str], None]:
    return lambda _: os.kill(os.getpid(), number)


def _run(command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], check=False, timeout=60, capture_output=True)


def _fill_disk(_: str) -> None:
    """Every write that lets a file grow past some bytes fails, in the ledger, the archive and the swarm's files."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _move_clock(seconds: str) -> None:
    true, jump = SystemClock.now, timedelta(seconds=float(seconds))

    def now(clock: SystemClock) -> datetime:
        return true(clock) + jump

    setattr(SystemClock, "now", now)  # noqa: B010 - a patch, not an assignment


def _nap(seconds: str) -> None:
    _move_clock(seconds)
    true = SystemClock.monotonic
    setattr(SystemClock, "monotonic", lambda clock: true(clock) + float(seconds))  # noqa: B010


_ACTS: dict[str, Callable[[str], None]] = {
    "KILL": _signal_oneself(signal.SIGKILL),
    "INT": _signal_oneself(signal.SIGINT),
    "TERM": _signal_oneself(signal.SIGTERM),
    "run": _run,
    "full": _fill_disk,
    "clock": _move_clock,
    "nap": _nap,
}
