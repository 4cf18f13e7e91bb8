"""A wait of a step as a progress artifact: how much of its deadline is used, and what it waits for."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from lifecycle.host import Host
from lifecycle.prompts import one_line
from lifecycle.redaction import redact
from tasks.artifact import show, show_progress, shown_only

SHOWN_AFTER = timedelta(seconds=3)
"""A shorter wait is over before anyone looks."""

SHOWN_EVERY = timedelta(seconds=10)

LAST_WORD_WITHIN = timedelta(seconds=2)
"""How long the end of a step may wait for its last update: a server that does not answer holds no step up."""


@contextmanager
def wait_shown(host: Host, key: str, within: timedelta) -> Iterator[None]:
    """Inside, what `host.progress` is told is shown, from a thread of its own, until the block ends.

    The artifact belongs to the task run that calls. *within* is the deadline of its wait.
    """
    shown, told = _Shown(key, within, host.clock.monotonic), host.progress

    def progress(worker_id: str, words: str) -> None:
        told(worker_id, words)
        shown.words = words

    thread = threading.Thread(target=contextvars.copy_context().run, args=(shown.keep,), name=key, daemon=True)
    host.progress = progress
    thread.start()
    try:
        yield
    finally:
        host.progress = told
        shown.over.set()
        thread.join(LAST_WORD_WITHIN.total_seconds())


class _Shown:
    """One wait, from the first word to the end of its step."""

    def __init__(self, key: str, within: timedelta, monotonic: Callable[[], float]) -> None:
        self.words, self.over = "", threading.Event()
        self._key, self._within, self._monotonic = key, within, monotonic
        self._began = monotonic()

    def keep(self) -> None:
        """Create the artifact once the wait is long enough to be seen, and keep it true until the wait is over."""
        if self.over.wait(SHOWN_AFTER.total_seconds()):
            return
        with shown_only():
            artifact = show("progress", self._key, self._share(), self._told())
            while not self.over.wait(SHOWN_EVERY.total_seconds()):
                show_progress(artifact, self._share(), self._told())
            show_progress(artifact, 100.0, f"over after {self._seconds():.0f} s")

    def _seconds(self) -> float:
        return self._monotonic() - self._began

    def _share(self) -> float:
        return min(100.0 * self._seconds() / max(self._within.total_seconds(), 1.0), 99.0)

    def _told(self) -> str:
        words = one_line(redact(self.words)) or "at work"
        return f"`{words.replace('`', '')}` for {self._seconds():.0f} s of at most {self._within.total_seconds():.0f} s"
