from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from lifecycle.waiting import GLANCE, POLL, UNCHANGED, DeadlinePassed, SystemClock, wait_until

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


class Stirred:
    """Something that is new at the given times on *clock*, and counts how often it is looked at."""

    def __init__(self, clock: FakeClock, *times: float) -> None:
        self._clock, self._times, self.seen = clock, times, list[float]()

    def stamp(self) -> int:
        return sum(at <= self._clock.monotonic() for at in self._times)

    def look(self) -> bool:
        self.seen.append(self._clock.monotonic())
        return False


def test_what_is_new_is_looked_at_at_once_and_what_is_not_seldom() -> None:
    clock = FakeClock()
    file = Stirred(clock, 5.03)
    with pytest.raises(DeadlinePassed):
        wait_until(file.look, 10 * SECOND, clock, SECOND, stamp=file.stamp)
    assert any(5.03 <= at <= 5.03 + 2 * GLANCE.total_seconds() for at in file.seen)
    assert len(file.seen) <= 12


def test_what_is_new_all_the_time_is_looked_at_no_more_often_than_five_times_a_second() -> None:
    clock = FakeClock()
    file = Stirred(clock, *(number / 100 for number in range(1000, 2000, 4)))
    with pytest.raises(DeadlinePassed):
        wait_until(file.look, 20 * SECOND, clock, SECOND, stamp=file.stamp)
    writing = [at for at in file.seen if at >= 10]
    assert len(writing) <= 10 / POLL.total_seconds() + 3
    assert max(later - earlier for earlier, later in pairwise(writing)) <= 2 * POLL.total_seconds()


def test_what_is_written_piece_by_piece_is_looked_at_when_it_is_whole() -> None:
    clock = FakeClock()
    file = Stirred(clock, *(5.03 + number / 100 for number in range(8)))
    with pytest.raises(DeadlinePassed):
        wait_until(file.look, 10 * SECOND, clock, SECOND, stamp=file.stamp)
    assert [at for at in file.seen if 5.02 <= at <= 5.4] == pytest.approx([5.1 + 2 * GLANCE.total_seconds()], abs=0.021)


def test_what_becomes_new_during_a_look_is_looked_at_again_at_once() -> None:
    clock = FakeClock()
    file = Stirred(clock, 0.05)

    def slow_look() -> bool:
        clock.sleep(timedelta(seconds=0.1))
        return file.look()

    with pytest.raises(DeadlinePassed):
        wait_until(slow_look, SECOND, clock, SECOND, stamp=file.stamp)
    assert file.seen[:2] == pytest.approx([0.1, 0.2 + 2 * GLANCE.total_seconds()])


def test_a_change_that_no_stamp_shows_is_seen_all_the_same() -> None:
    clock = FakeClock()
    assert wait_until(after(clock, SECOND), 10 * SECOND, clock, UNCHANGED, stamp=lambda: "the same")
    assert timedelta(0) <= sum(clock.slept, timedelta(0)) - SECOND <= UNCHANGED
