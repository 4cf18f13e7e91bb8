"""Locks that the kernel frees when their holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lifecycle.errors import RenewalInProgress


@contextmanager
def held(path: Path, *, worker_id: str = "") -> Iterator[None]:
    """Hold *path* for this process alone. The lock is never inherited: a tmux server would keep it for life.

    Raises:
        RenewalInProgress: another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            msg = f"{worker_id or path.stem}: another process is at work on it"
            raise RenewalInProgress(msg, worker_id=worker_id) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether some process holds *path* now."""
    if not path.exists():
        return False
    try:
        with held(path):
            return False
    except RenewalInProgress:
        return True


@contextmanager
def one_of(folder: Path, places: int) -> Iterator[bool]:
    """Take one of *places* in *folder*; yields False, and takes none, when all are taken."""
    for place in range(places):
        holding = held(folder / f"place-{place}.lock")
        try:
            holding.__enter__()
        except RenewalInProgress:
            continue
        try:
            yield True
        finally:
            holding.__exit__(None, None, None)
        return
    yield False
