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
    file = Stirred(clock, 5.43)
    with pytest.raises(DeadlinePassed):
        wait_until(file.look, 10 * SECOND, clock, SECOND, stamp=file.stamp)
    assert any(5.43 <= at <= 5.43 + 2 * GLANCE.total_seconds() for at in file.seen)
    assert len(file.seen) <= 12


def test_what_is_new_all_the_time_is_looked_at_no_more_often_than_five_times_a_second() -> None:
    clock = FakeClock()
    file = Stirred(clock, *(number / 100 for number in range(1000, 2000, 4)))
    with pytest.raises(DeadlinePassed):
        wait_until(file.look, 20 * SECOND, clock, SECOND, stamp=file.stamp)
    writing = [at for at in file.seen if at >= 10]
    assert len(writing) > 20
    assert min(later - earlier for earlier, later in pairwise(file.seen[:-1])) >= POLL.total_seconds() - 1e-6
    assert max(later - earlier for earlier, later in pairwise(writing)) <= 2 * POLL.total_seconds()


def test_what_is_written_piece_by_piece_is_looked_at_when_it_is_whole() -> None:
    clock = FakeClock()
    file = Stirred(clock, *(5.43 + number / 100 for number in range(8)))
    with pytest.raises(DeadlinePassed):
        wait_until(file.look, 10 * SECOND, clock, SECOND, stamp=file.stamp)
    assert [at for at in file.seen if 5.42 <= at <= 5.8] == pytest.approx([5.5 + 2 * GLANCE.total_seconds()], abs=0.021)


def test_what_cannot_be_there_yet_is_looked_at_when_something_is_new() -> None:
    clock = FakeClock()
    file = Stirred(clock, 0.07)
    with pytest.raises(DeadlinePassed):
        wait_until(file.look, SECOND, clock, UNCHANGED, stamp=file.stamp, at_once=False)
    assert file.seen[0] == pytest.approx(0.07, abs=2 * GLANCE.total_seconds())


def test_what_was_new_before_the_wait_is_looked_at_soon() -> None:
    clock = FakeClock()
    assert wait_until(lambda: True, SECOND, clock, UNCHANGED, stamp=lambda: "the same", at_once=False)
    assert sum(clock.slept, timedelta(0)) == pytest.approx(UNCHANGED, abs=timedelta(seconds=0.001))


def test_what_becomes_new_during_a_look_is_looked_at_again() -> None:
    clock = FakeClock()
    file = Stirred(clock, 0.05)

    def slow_look() -> bool:
        clock.sleep(timedelta(seconds=0.1))
        return file.look()

    with pytest.raises(DeadlinePassed):
        wait_until(slow_look, SECOND, clock, SECOND, stamp=file.stamp)
    assert file.seen[:2] == pytest.approx([0.1, 0.2 + POLL.total_seconds()], abs=GLANCE.total_seconds())


def test_a_change_that_no_stamp_shows_is_seen_all_the_same() -> None:
    clock = FakeClock()
    assert wait_until(after(clock, SECOND), 10 * SECOND, clock, UNCHANGED, stamp=lambda: "the same")
    assert timedelta(0) <= sum(clock.slept, timedelta(0)) - SECOND <= UNCHANGED
