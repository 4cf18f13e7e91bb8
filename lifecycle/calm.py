"""Since when a worker rests, over the looks that several steps of one process take at it."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import timedelta

APART = timedelta(seconds=2)
"""Looks farther apart than this do not belong to one span of rest: nobody knows what was between them."""


class Calm:
    """Spans of rest, as they were seen. Kept in memory alone: another process begins to look anew."""

    def __init__(self) -> None:
        self._spans: dict[str, tuple[Hashable, float, float]] = {}

    def seen(self, worker_id: str, last_act: Hashable, at: float) -> timedelta:
        """How long the worker has rested by now, *at* on the monotonic clock, as far as looks tell.

        *last_act* stands for the newest thing it did: where it is another one, the worker has worked in between.
        """
        known = self._spans.get(worker_id)
        goes_on = known is not None and known[0] == last_act and at - known[2] <= APART.total_seconds()
        begun = known[1] if goes_on and known is not None else at
        self._spans[worker_id] = last_act, begun, at
        return timedelta(seconds=at - begun)

    def span(self, worker_id: str) -> timedelta:
        """How long the worker had rested when it was seen last."""
        known = self._spans.get(worker_id)
        return timedelta(seconds=known[2] - known[1]) if known is not None else timedelta()

    def broken(self, worker_id: str) -> None:
        """It was seen at work."""
        self._spans.pop(worker_id, None)
