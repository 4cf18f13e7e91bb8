"""A regular expression over a text, with an end: some expressions take longer than the age of the universe."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType

from lifecycle.errors import Misuse

LONGEST_PATTERN = 500
LONGEST_LINE = 10_000
"""Characters of a line that are searched."""


def matching(text: str, pattern: str, *, within: timedelta) -> list[tuple[int, str]]:
    """The lines that *pattern* matches, with their numbers from 1. Only in the main thread of a process.

    Raises:
        Misuse: it is no pattern, or it was not done in time.
    """
    if len(pattern) > LONGEST_PATTERN:
        msg = f"the pattern has {len(pattern):,} characters; at most {LONGEST_PATTERN} are searched for"
        raise Misuse(msg)
    try:
        searched = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        msg = f"{pattern!r} is no regular expression: {error}"
        raise Misuse(msg) from error
    lines = text.splitlines()
    with _ended_after(within, f"the pattern {pattern!r} was not done after {within.total_seconds():g} s"):
        return [(number, line) for number, line in enumerate(lines, 1) if searched.search(line[:LONGEST_LINE])]


@contextmanager
def _ended_after(span: timedelta, words: str) -> Iterator[None]:
    """Python's own engine looks for signals while it matches, so a timer can end it."""

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise Misuse(words)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, span.total_seconds())
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
