"""Files that are whole or not there: written beside their place, synced, and put there in one step."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def make_private(folder: Path) -> None:
    """Create *folder* and the parents it lacks, each 0700. Folders that exist keep their mode."""
    if folder.is_dir():
        return
    make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def staged(path: Path, content: bytes, *, mode: int = 0o600) -> Iterator[Path]:
    """Yield a synced file beside *path* that holds *content*; it is gone afterwards unless it was renamed.

    Raises:
        OSError: it cannot be written in full; nothing is left behind.
    """
    temporary = path.parent / f".{path.name[:200]}.{secrets.token_hex(6)}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        try:
            os.fchmod(descriptor, mode)  # whatever the umask says
            write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        yield temporary
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def write_all(descriptor: int, content: bytes) -> None:
    """Write until nothing is left: a short write is no error to the kernel (xum PR #4282)."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def replace(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Put *content* at *path* in one step, over whatever stands there.

    Raises:
        OSError: the old file stands as it was.
    """
    with staged(path, content, mode=mode) as temporary:
        temporary.replace(path)
    sync_folder(path.parent)


def create(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Put *content* at *path*, which must not exist: of two that race, one wins and the other is told.

    Raises:
        FileExistsError: something stands there; it is untouched.
        OSError: it cannot be written; nothing stands there.
    """
    with staged(path, content, mode=mode) as temporary:
        try:
            os.link(temporary, path)
        except OSError as error:
            # Some network and FAT file systems have no hard links; there two that race are not told apart.
            if error.errno not in {errno.EPERM, errno.EOPNOTSUPP} or path.exists():
                raise
            temporary.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in *folder* survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
