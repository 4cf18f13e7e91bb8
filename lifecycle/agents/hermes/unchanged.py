"""Not looking again at what has not changed: what was found is kept as long as the files under it keep their stamps."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
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

RULES = 2
"""Goes up with every change in how files are read: a finding by other rules is then not taken for one by these."""

Stamp = tuple[tuple[int, int, int] | None, ...]
"""Of each file its inode, time of change and size; None where there is none."""


@dataclass(frozen=True)
class Question(Generic[_T]):
    """Asked of a profile while its files have the stamps that *mark* stands for; *found* was found of the same before.

    *is_settled* says whether what is found now may be kept.
    """

    profile: Path
    mark: str
    is_settled: bool
    found: _T | None


class Unchanged(Generic[_T]):
    """Keeps one finding a profile. What was read while a file was being written is used once and not kept."""

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[str, _T]] = {}

    def question(self, profile: Path, asked: Hashable, known: tuple[str, _T] | None = None) -> Question[_T]:
        """To be made before the look. *known* is a marked finding of another process."""
        at = time.time_ns()
        stamp = stamp_of(profile)
        mark = hashlib.blake2b(repr((RULES, stamp, asked)).encode(), digest_size=16).hexdigest()
        same = (kept[1] for kept in (self._kept.get(profile), known) if kept is not None and kept[0] == mark)
        is_settled = all(file is None or file[1] < at - SETTLED for file in stamp)
        return Question(profile=profile, mark=mark, is_settled=is_settled, found=next(same, None))

    def keep(self, question: Question[_T], finding: _T, *, lasts: bool) -> str:
        """The mark of *finding*, which stands for files and question; empty where it may not be kept.

        *lasts* says whether it depends on nothing but the files; one that ends by itself is not kept.
        """
        if lasts and question.is_settled:
            self._kept[question.profile] = question.mark, finding
            return question.mark
        self._kept.pop(question.profile, None)
        return ""

    def found(
        self,
        profile: Path,
        asked: Hashable,
        look: Callable[[], _T],
        *,
        lasts: Callable[[_T], bool],
        known: tuple[str, _T] | None = None,
    ) -> tuple[str, _T]:
        """What *look* finds, or found when the files had the same stamps and the same was *asked*; its mark first."""
        question = self.question(profile, asked, known)
        if question.found is not None:
            return question.mark, question.found
        finding = look()
        return self.keep(question, finding, lasts=lasts(finding)), finding


def stamp_of(profile: Path, files: Sequence[str] = FILES) -> Stamp:
    """Taken before a look, so that a change during the look shows at the next one."""
    return tuple(_stamp(f"{profile}/{name}") for name in files)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - five a look: a Path costs more than the call
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
