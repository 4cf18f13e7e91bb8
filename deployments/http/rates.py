"""So many requests of one kind a minute from one address."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from datetime import timedelta

SPAN = timedelta(minutes=1)
MOST_ADDRESSES = 1000
"""Beyond these the one that was quiet longest is forgotten: the memory is bounded."""


class Rate:
    """Counts over the last minute. *now* is monotonic seconds."""

    def __init__(self, per_minute: int, now: Callable[[], float]) -> None:
        self._most, self._now = per_minute, now
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def wait(self, address: str) -> int:
        """Whole seconds until the address may ask again; 0 where it may now. Nothing is counted."""
        times = self._recent(address)
        return 0 if len(times) < self._most else max(1, round(times[0] + SPAN.total_seconds() - self._now()))

    def count(self, address: str) -> None:
        times = self._recent(address)
        times.append(self._now())
        self._times[address] = times
        self._times.move_to_end(address)
        while len(self._times) > MOST_ADDRESSES:
            self._times.popitem(last=False)

    def _recent(self, address: str) -> deque[float]:
        times = self._times.get(address, deque())
        while times and times[0] <= self._now() - SPAN.total_seconds():
            times.popleft()
        return times
