"""Folders of a test run under the system's temporary folder. A lock says whether their run still lives.

A run that is killed removes nothing, so the next one removes what has no living owner.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

_LOCK = ".owner"
_held: dict[Path, int] = {}
"""The descriptors whose locks say that this process lives."""


def own_folder(prefix: str) -> Path:
    """Make a folder with a short name; it is this process's until `give_up`, or until the process ends."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    # Locked before it has its name: whoever finds it by its name finds it locked.
    descriptor = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    (folder / "lock").rename(folder / _LOCK)
    _held[folder] = descriptor
    return folder


def give_up(folder: Path) -> None:
    """Remove a folder of this process's own."""
    shutil.rmtree(folder)
    os.close(_held.pop(folder))


def clear_abandoned(prefix: str, clear: Callable[[Path], None] = shutil.rmtree) -> list[Path]:
    """Clear every such folder whose run has ended, and say which. One that another process clears is left to it."""
    cleared = []
    for lock in Path(tempfile.gettempdir()).glob(f"{prefix}*/{_LOCK}"):
        if lock.parent in _held or lock.stat().st_uid != os.getuid():
            continue
        try:
            descriptor = os.open(lock, os.O_RDWR)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.exists():
                clear(lock.parent)
                cleared.append(lock.parent)
        except BlockingIOError:
            continue
        finally:
            os.close(descriptor)
    return cleared
