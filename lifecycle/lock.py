"""Locks that the kernel frees when their holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from lifecycle.durable import make_private
from lifecycle.errors import RenewalInProgress
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until

_PROBED = timedelta(seconds=0.02)
"""`is_held` itself holds a free lock for a moment: nobody is told that someone is at work because of that."""


@contextmanager
def held(path: Path, *, worker_id: str = "") -> Iterator[None]:
    """Hold *path* for this caller alone, also against other threads. The file names the holder's pid, for people.

    The lock is never inherited by a program that is started meanwhile: a tmux server would keep it for life.

    Raises:
        RenewalInProgress: someone else holds it.
        OSError: the file cannot be opened or made.
    """
    make_private(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            wait_until(
                lambda: _locks(descriptor, fcntl.LOCK_EX), _PROBED, SystemClock(), every=timedelta(seconds=0.002)
            )
        except DeadlinePassed as error:
            msg = f"{worker_id or path.stem}: another process is at work on it"
            raise RenewalInProgress(msg, worker_id=worker_id) from error
        with suppress(OSError):  # the disk is full: the lock holds all the same
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether someone holds *path* now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _locks(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


@contextmanager
def one_of(folder: Path, places: int) -> Iterator[bool]:
    """Take one of *places* in *folder*; yields False, and takes none, when all are taken."""
    with ExitStack() as taken:
        for place in range(places):
            try:
                taken.enter_context(held(folder / f"place-{place}.lock"))
            except RenewalInProgress:
                continue
            yield True
            return
        yield False


def _locks(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
