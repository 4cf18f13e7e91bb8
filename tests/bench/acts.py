"""What the agent does in a renewal and when, so that its time can be told from ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from lifecycle import processes
from lifecycle.host import Host
from lifecycle.renewal import Phase, Renewal
from lifecycle.screen import PaneState
from lifecycle.steps import stopping
from lifecycle.terminal import Terminal


class Acts:
    """Notes our acts on the agent and our looks at it, from the patch on.

    The agent's time ends with its act, as far as a look proves that it had not happened yet: what passes between
    that look and the next one counts as ours.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.entered: list[float] = []
        self.told_to_end: list[float] = []
        self.alive: list[float] = []
        self.started: list[float] = []
        self.not_ready: list[float] = []
        self._note(patch, Terminal, "press_enter", lambda _: self.entered.append(time.time()))
        self._note(patch, stopping, "ask_to_exit", lambda _: self.told_to_end.append(time.time()))
        self._note(patch, processes, "is_alive", self._seen_alive)
        self._note(patch, Terminal, "spawn", lambda _: self.started.append(time.time()))
        self._note(patch, Host, "look_with_process", self._seen)

    def exit(self, renewal: Renewal) -> float:
        """From the TERM to the last look that saw a process of the agent."""
        begun = self._last(self.told_to_end, renewal, Phase.STOPPED)
        return max(self._last(self.alive, renewal, Phase.STOPPED) - begun, 0.0)

    def start(self, renewal: Renewal) -> float:
        """From the start of the program to the last look that saw no input line."""
        begun = self._last(self.started, renewal, Phase.RESPAWNED)
        return max(self._last(self.not_ready, renewal, Phase.RESPAWNED) - begun, 0.0)

    def answer(self, asked_at: datetime, answered_at: float) -> float:
        """From the Enter behind our text to the row of the agent's answer."""
        enters = [at for at in self.entered if at < answered_at]
        return answered_at - min(enters[-1], asked_at.timestamp())

    def turn_end(self, answered_at: float, until: float) -> float:
        """From an answer to the last look that saw its turn still going on. This counts as ours."""
        return max((at - answered_at for at in self.not_ready if answered_at < at < until), default=0.0)

    def next_enter(self, after: float) -> float:
        return next((at for at in self.entered if at > after), after)

    @staticmethod
    def _last(times: list[float], renewal: Renewal, phase: Phase) -> float:
        until = renewal.phase_times[phase].timestamp()
        return max(at for at in times if at < until)

    @staticmethod
    def _note(patch: pytest.MonkeyPatch, owner: Any, name: str, note: Callable[[Any], object]) -> None:
        act = getattr(owner, name)

        def noted(*args: Any, **kwargs: Any) -> Any:
            done = act(*args, **kwargs)
            note(done)
            return done

        patch.setattr(owner, name, noted)

    def _seen_alive(self, is_alive: bool) -> None:
        if is_alive:
            self.alive.append(time.time())

    def _seen(self, found: tuple[Any, Any]) -> None:
        if found[0].state is not PaneState.READY:
            self.not_ready.append(time.time())
