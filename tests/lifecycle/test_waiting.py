from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from lifecycle.waiting import POLL, DeadlinePassed, SystemClock, wait_until

SECOND = timedelta(seconds=1)


class FakeClock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.slept: list[timedelta] = []

    def now(self) -> datetime:
        return datetime(2026, 5, 4, tzinfo=UTC) + sum(self.slept, timedelta(0))

    def monotonic(self) -> float:
        return sum(self.slept, timedelta(0)).total_seconds()

    def sleep(self, span: timedelta) -> None:
        assert span > timedelta(0)
        self.slept.append(span)


def after(clock: FakeClock, span: timedelta) -> Callable[[], bool]:
    return lambda: clock.monotonic() >= span.total_seconds()


def test_what_is_there_already_is_not_waited_for() -> None:
    clock = FakeClock()
    assert wait_until(lambda: "pane", SECOND, clock) == "pane"
    assert clock.slept == []


def test_a_condition_is_watched_until_it_comes_true() -> None:
    clock = FakeClock()
    assert wait_until(after(clock, SECOND), 10 * SECOND, clock)
    assert timedelta(0) <= sum(clock.slept, timedelta(0)) - SECOND <= POLL


@pytest.mark.parametrize("nothing", [None, False])
def test_a_condition_that_never_comes_true_passes_its_deadline(nothing: bool | None) -> None:
    clock = FakeClock()
    with pytest.raises(DeadlinePassed):
        wait_until(lambda: nothing, 10 * SECOND, clock)
    assert sum(clock.slept, timedelta(0)) == pytest.approx(10 * SECOND, abs=timedelta(milliseconds=1))


@pytest.mark.parametrize("found", [0, "", ()])
def test_an_empty_value_is_a_value(found: object) -> None:
    assert wait_until(lambda: found, SECOND, FakeClock()) == found


def test_a_deadline_that_has_passed_already_still_allows_one_look() -> None:
    assert wait_until(lambda: 42, timedelta(0), FakeClock()) == 42


def test_a_condition_is_looked_at_once_more_at_the_deadline() -> None:
    clock = FakeClock()
    assert wait_until(after(clock, SECOND), SECOND, clock, every=timedelta(seconds=0.7))
    assert sum(clock.slept, timedelta(0)) == pytest.approx(SECOND, abs=timedelta(milliseconds=1))


def test_the_hosts_clock_gives_aware_dates_and_a_monotonic_age() -> None:
    clock = SystemClock()
    began = clock.monotonic()
    clock.sleep(timedelta(milliseconds=5))
    assert clock.monotonic() - began >= 0.005
    assert clock.now().tzinfo is UTC
