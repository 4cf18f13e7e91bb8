"""Holding INT and TERM back while a worker is down, so that nobody's Ctrl-C leaves one dead."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

log = logging.getLogger(__name__)

HELD = (signal.SIGINT, signal.SIGTERM)


class _Down:
    """How many workers of this process are down, and the signal that waits for them. Handlers are the process's too.

    The lock may be taken again by its own thread: a signal handler runs between any two steps of the main thread.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._workers = 0
        self._was_told = False
        self._due: int | None = None

    def enter(self) -> None:
        with self._lock:
            self._workers += 1

    def leave(self) -> int | None:
        """The signal that is to be honoured now, if the last worker is back and one waits."""
        with self._lock:
            self._workers -= 1
            if self._workers:
                return None
            due, self._due, self._was_told = self._due, None, False
            return due

    def holds_back(self, number: int) -> bool:
        """Whether the signal waits: the first one does while a worker is down. A second takes the first one's place."""
        with self._lock:
            if not self._workers or self._was_told:
                self._due = None
                return False
            self._was_told, self._due = True, number
            return True


_down = _Down()


@contextmanager
def bringing_back_first() -> Iterator[None]:
    """Inside, the first INT or TERM is answered in words and honoured afterwards; a second one is honoured at once.

    Afterwards means when the last such block of the process has ended, well or not. In a thread other than the
    main one it relies on `signals_heard` around the threads.
    """
    due: int | None = None
    try:
        with signals_heard():
            _down.enter()
            try:
                yield
            finally:
                due = _down.leave()
    finally:
        if due is not None:
            log.warning("%s was held back while a worker was down, and is honoured now", signal.Signals(due).name)
            # To the main thread itself, where handlers run: a signal to the process may be given to any thread, and
            # the main one, waiting for the others, would sleep on.
            signal.pthread_kill(threading.main_thread().ident or 0, due)


@contextmanager
def signals_heard() -> Iterator[None]:
    """Install the handlers, in the main thread only, and put back what was there before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: handler for number in HELD if (handler := signal.getsignal(number)) is not None}

    def answer(number: int, frame: FrameType | None) -> None:
        if _down.holds_back(number):
            # Not by a logger: the thread that was interrupted may be in the middle of one.
            with suppress(OSError):
                os.write(2, f"{signal.Signals(number).name}: bringing the worker back first\n".encode())
            return
        previous = before[signal.Signals(number)]
        if callable(previous):
            previous(number, frame)
        elif previous is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    try:
        for number in before:
            signal.signal(number, answer)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
