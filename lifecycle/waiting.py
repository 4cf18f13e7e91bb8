"""Waiting for a condition with a deadline: the only sleep in the project."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

_T = TypeVar("_T")

POLL = timedelta(seconds=0.2)
"""Five looks a second: what a person calls at once, and next to nothing for tmux and SQLite."""


class Clock(Protocol):
    """Where time comes from. Dates are aware UTC; ages are taken from the monotonic clock."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    def sleep(self, span: timedelta) -> None: ...


class SystemClock:
    """The host's own clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, span: timedelta) -> None:
        time.sleep(span.total_seconds())


class DeadlinePassed(Exception):
    """The condition did not come true in time. Callers turn it into an error that says what was waited for."""


def wait_until(
    probe: Callable[[], _T | None],
    within: timedelta,
    clock: Clock,
    every: timedelta = POLL,
) -> _T:
    """Return the first value of *probe* that is neither None nor False; it is asked at least once.

    Raises:
        DeadlinePassed: *within* went by on the monotonic clock.
    """
    deadline = clock.monotonic() + within.total_seconds()
    while True:
        value = probe()
        if value is not None and value is not False:
            return value
        left = deadline - clock.monotonic()
        if left <= 0:
            raise DeadlinePassed
        clock.sleep(min(every, timedelta(seconds=left)))
