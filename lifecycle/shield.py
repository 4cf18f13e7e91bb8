"""Holding INT and TERM back while a worker is down, so that nobody's Ctrl-C leaves one dead."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

log = logging.getLogger(__name__)

HELD = (signal.SIGINT, signal.SIGTERM)

_lock = threading.Lock()
_down = 0
_waiting: list[int] = []


@contextmanager
def bringing_back_first() -> Iterator[None]:
    """Inside, the first INT or TERM is answered in words and honoured afterwards; a second one is honoured at once.

    In a thread other than the main one it relies on `signals_heard` around the threads.
    """
    global _down  # noqa: PLW0603 - one process has one set of signal handlers
    with _lock:
        _down += 1
    try:
        with signals_heard():
            yield
    finally:
        with _lock:
            _down -= 1
            due = _waiting.pop() if _waiting and _down == 0 else None
        if due is not None:
            os.kill(os.getpid(), due)


@contextmanager
def signals_heard() -> Iterator[None]:
    """Install the handlers, in the main thread only, and put back what was there before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in HELD}

    def answer(number: int, frame: FrameType | None) -> None:
        with _lock:
            hold = _down > 0 and not _waiting
            if hold:
                _waiting.append(number)
        if hold:
            log.warning("%s: bringing the worker back first", signal.Signals(number).name)
            return
        previous = before[signal.Signals(number)]
        if callable(previous):
            previous(number, frame)
        elif previous is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for number in HELD:
        signal.signal(number, answer)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
