"""Not looking again at what has not changed: what was found is kept as long as the files under it keep their stamps."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

_T = TypeVar("_T")

FILES = ("state.db", "state.db-wal", "logs/agent.log", "config.yaml", "context_length_cache.yaml")
"""All that a look at a profile reads. A write to the database is a write to one of the first two; agent.log.1 and
its elders change only when agent.log does."""

WRITTEN = FILES[:2]
"""Those that a write to the database is a write to."""

SETTLED = 2_000_000_000
"""Nanoseconds. A file's time is as coarse as the file system's clock (4 ms on ext4, up to 2 s elsewhere): what was
written so shortly before a look may be written again without a new stamp (git calls such an entry racy)."""

RULES = 1
"""Goes up with every change in how files are read: a finding by other rules is then not taken for one by these."""

Stamp = tuple[tuple[int, int, int] | None, ...]
"""Of each file its inode, time of change and size; None where there is none."""


class Unchanged(Generic[_T]):
    """Keeps one finding a profile. What was read while a file was being written is used once and not kept."""

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[str, _T]] = {}

    def found(
        self,
        profile: Path,
        asked: Hashable,
        look: Callable[[], _T],
        *,
        lasts: Callable[[_T], bool],
        known: tuple[str, _T] | None = None,
    ) -> tuple[str, _T]:
        """What *look* finds, or found when the files had the same stamps and the same was *asked*; its mark first.

        The mark stands for files and question; it is empty where the finding may not be kept. *known* is a marked
        finding of another process. *lasts* says whether a finding depends on nothing but the files; one that ends by
        itself is not kept.
        """
        at = time.time_ns()
        stamp = stamp_of(profile)
        mark = hashlib.blake2b(repr((RULES, stamp, asked)).encode(), digest_size=16).hexdigest()
        for kept in (self._kept.get(profile), known):
            if kept is not None and kept[0] == mark:
                return kept
        finding = look()
        if lasts(finding) and all(file is None or file[1] < at - SETTLED for file in stamp):
            self._kept[profile] = mark, finding
            return mark, finding
        self._kept.pop(profile, None)
        return "", finding


def stamp_of(profile: Path, files: Sequence[str] = FILES) -> Stamp:
    """Taken before a look, so that a change during the look shows at the next one."""
    return tuple(_stamp(f"{profile}/{name}") for name in files)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - five a look: a Path costs more than the call
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
