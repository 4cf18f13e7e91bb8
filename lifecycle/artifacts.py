"""Tool results that are kept beside the handoffs: compressed files, each named by the hash of what it holds."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path

from lifecycle import durable
from lifecycle.errors import ArtifactMissing
from lifecycle.redaction import redact

HANDLE_LENGTH = 12
"""Hex digits of the hash by which a handoff names a result; more of them are understood too."""

LONGEST = 500_000
"""Characters that are kept of one result; of a longer one the end is left out, and says so. An agent cuts sooner
(Hermes at 100,000), and a renewal waits while secrets are looked for: a second for each million."""

SETTLED = timedelta(hours=1)
"""A younger file is never removed: the handoff that names it may not be written yet."""

LATEST = 3
"""So many of a worker's newest handoffs keep what they refer to: a handoff that is taken back has a predecessor."""

_HANDLE = re.compile(r"[0-9a-f]{12,64}")
_NAMED = re.compile(r"\[\[OFFLOAD: handle=([0-9a-f]{12,64})")


def keep(folder: Path, text: str) -> tuple[str, int]:
    """Keep *text*, redacted, and return its handle and how many characters are kept. The same text is kept once.

    Raises:
        OSError: it cannot be written.
    """
    left_out = len(text) - LONGEST
    if left_out > 0:
        text = f"{text[:LONGEST]}\n[… {left_out:,} characters left out …]\n"
    text = redact(text)
    content = text.encode("utf-8", "replace")
    digest = hashlib.sha256(content).hexdigest()
    path = folder / digest[:2] / f"{digest}.gz"
    durable.make_private(path.parent)
    try:
        durable.create(path, gzip.compress(content, 6, mtime=0))
    except FileExistsError:
        os.utime(path)  # it is needed again, so it is as young as the handoff that names it
    return digest[:HANDLE_LENGTH], len(text)


def read(folder: Path, handle: str) -> str:
    """What was kept under *handle*.

    Raises:
        ArtifactMissing: nothing is, or the file is not what was kept.
    """
    handle = handle.strip().lower()
    if not _HANDLE.fullmatch(handle):
        msg = f"{handle[:80]!r} is no handle: {HANDLE_LENGTH} or more hex digits, as an [[OFFLOAD: …]] line names them"
        raise ArtifactMissing(msg)
    found = sorted((folder / handle[:2]).glob(f"{handle}*.gz"))
    if len(found) != 1:
        what = f"begins {len(found)} of the results" if found else "is not among the results"
        msg = f"{handle} {what} that are kept in {folder}"
        raise ArtifactMissing(msg)
    try:
        content = gzip.decompress(found[0].read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        msg = f"{found[0]}: cannot be read: {error}"
        raise ArtifactMissing(msg) from error
    if hashlib.sha256(content).hexdigest() != found[0].stem:
        msg = f"{found[0]}: is not what was kept"
        raise ArtifactMissing(msg)
    return content.decode()


def referenced(archive: Path) -> frozenset[str]:
    """The handles that the newest handoffs of every worker name."""
    handles: set[str] = set()
    for worker in _entries(archive):
        for document in sorted(worker.glob("*.md"), reverse=True)[:LATEST]:
            handles.update(_NAMED.findall(document.read_text(errors="replace")))
    return frozenset(handles)


def prune(folder: Path, *, needed: Collection[str], now: datetime, keep_for: timedelta, quota: int) -> int:
    """Remove results older than *keep_for*, and the oldest beyond *quota* bytes; how many were removed.

    What is *needed*, and what was kept within the last hour, stays whatever it takes.

    Raises:
        OSError
    """
    files = [(path, path.stat()) for shelf in _entries(folder) for path in shelf.glob("*.gz")]
    files.sort(key=lambda one: one[1].st_mtime)
    total = sum(found.st_size for _, found in files)
    removed = 0
    for path, found in files:
        age = now.timestamp() - found.st_mtime
        is_due = age > keep_for.total_seconds() or total > quota
        if is_due and age > SETTLED.total_seconds() and path.name[:HANDLE_LENGTH] not in needed:
            path.unlink(missing_ok=True)
            total -= found.st_size
            removed += 1
    return removed


def _entries(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
