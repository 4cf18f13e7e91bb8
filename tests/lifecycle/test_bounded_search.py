from __future__ import annotations

import signal
from datetime import timedelta

import pytest

from lifecycle.bounded_search import LONGEST_PATTERN, matching
from lifecycle.errors import Misuse

LONG = timedelta(seconds=60)


def test_matching_lines_come_with_their_numbers() -> None:
    assert matching("one\ntwo\nthree", "t[wh]", within=LONG) == [(2, "two"), (3, "three")]
    assert matching("one", "x", within=LONG) == []


def test_a_pattern_without_end_is_ended_and_the_timer_is_gone() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(Misuse, match=r"was not done after 0\.2 s"):
        matching("a" * 60 + "!", "(a+)+$", within=timedelta(seconds=0.2))
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before


@pytest.mark.parametrize("pattern", ["(", "*", "a" * (LONGEST_PATTERN + 1), "(?P<a"])
def test_what_is_no_pattern_is_refused_in_one_line(pattern: str) -> None:
    with pytest.raises(Misuse) as refused:
        matching("text", pattern, within=LONG)
    assert "\n" not in refused.value.detail
