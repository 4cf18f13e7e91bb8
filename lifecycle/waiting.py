"""Waiting for a condition with a deadline: the only sleep in the project."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

_T = TypeVar("_T")

POLL = timedelta(seconds=0.2)
"""Five looks a second: what a person calls at once, and next to nothing for tmux and SQLite."""


GLANCE = timedelta(seconds=0.02)
"""How often a wait that can tell at next to no cost whether anything is new asks for that between two looks."""

_INSTANT = 1e-6
"""Seconds: a shorter span is none."""

UNCHANGED = 1.5 * POLL
"""How long such a wait goes without a look where nothing seems to be new: stamps of files may miss a change."""


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
    *,
    stamp: Callable[[], object] | None = None,
    at_once: bool = True,
) -> _T:
    """Return the first value of *probe* that is neither None nor False; it is asked at least once.

    *stamp*, which must cost next to nothing, is another one as soon as there may be something new: then *probe* is
    asked when it has stood still for a moment, `POLL` after the last time at the earliest and *every* at the latest.
    Where the value cannot be there yet, the first time need not be *at_once*.

    Raises:
        DeadlinePassed: *within* went by on the monotonic clock.
    """
    began, pause, poll = clock.monotonic(), every.total_seconds(), POLL.total_seconds()
    deadline = began + within.total_seconds()
    if stamp is not None and not at_once:
        _rest(clock, began, min(began + pause, deadline), stamp, stamp())
    while True:
        # Taken before the look, so that a change during it leads to another one.
        before = stamp() if stamp is not None else None
        value = probe()
        if value is not None and value is not False:
            return value
        now = clock.monotonic()
        if now >= deadline:
            raise DeadlinePassed
        _rest(clock, now + poll, min(now + pause, deadline), stamp, before)


def _rest(clock: Clock, earliest: float, latest: float, stamp: Callable[[], object] | None, before: object) -> None:
    """Sleep until *latest* on the monotonic clock, or from *earliest* on until the stamp is another one and stands.

    Who writes one thing mostly writes a second one: a look between the two would be wasted.
    """
    seen = before
    early = min(earliest, latest) - clock.monotonic() - 2 * GLANCE.total_seconds()
    if stamp is not None and early > _INSTANT:
        clock.sleep(timedelta(seconds=early))
    while (left := latest - clock.monotonic()) > _INSTANT:
        clock.sleep(timedelta(seconds=left if stamp is None else min(GLANCE.total_seconds(), left)))
        if stamp is None:
            continue
        last, seen = seen, stamp()
        if before != seen == last and clock.monotonic() >= earliest:
            return
