"""Writing a handoff so that it is there: archive first, then the copies that the swarm reads."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lifecycle import durable
from lifecycle.errors import HandoffNotSaved
from lifecycle.paths import WorkerPaths

SPACE_NEEDED = 16 * 1024 * 1024
"""Bytes that must be free before a worker is asked: a handoff with its copies, the ledger, and a margin."""


def save(text: str, archive: Path, copies: Iterable[Path], *, worker_id: str = "") -> str:
    """Write *text* to *archive* and to *copies*, read every file back, and return its sha256.

    The archive comes first and is immutable; the copies are overwritten. A second call with the same text and
    places goes through and changes nothing but the copies, so an interrupted save may simply be repeated.

    Raises:
        HandoffNotSaved: some file could not be written or did not read back as written. The message names it.
    """
    content = text.encode()
    digest = hashlib.sha256(content).hexdigest()
    with _reported(archive, worker_id):
        durable.make_private(archive.parent)
        if not archive.exists():
            durable.create(archive, content)
    _check(archive, digest, worker_id)
    for copy in copies:
        with _reported(copy, worker_id):
            durable.make_private(copy.parent)
            durable.replace(copy, content)
        _check(copy, digest, worker_id)
    return digest


def obstacles(paths: WorkerPaths) -> tuple[str, ...]:
    """Why a handoff could not be saved now, a sentence each; empty when nothing stands in the way.

    It tries: a file is made and removed in every folder that a handoff goes to. Folders it makes stay.
    """
    found = []
    for folder in (paths.archive, paths.shared_latest.parent, paths.handoffs):
        try:
            durable.make_private(folder)
            with durable.staged(folder / "probe", b"probe"):
                pass
            free = os.statvfs(folder)
        except OSError as error:
            found.append(f"{folder}: a handoff cannot be written: {error.strerror}")
            continue
        if free.f_bavail * free.f_frsize < SPACE_NEEDED:
            found.append(f"{folder}: less than {SPACE_NEEDED // 2**20} MiB are free")
    return tuple(found)


@contextmanager
def _reported(path: Path, worker_id: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = f"{path}: the handoff cannot be written: {error.strerror or error}"
        raise HandoffNotSaved(msg, worker_id=worker_id, evidence=str(path)) from error


def _check(path: Path, digest: str, worker_id: str) -> None:
    with _reported(path, worker_id):
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != digest:
        msg = f"{path}: does not hold the handoff that was written (sha256 {found[:12]}…, not {digest[:12]}…)"
        raise HandoffNotSaved(msg, worker_id=worker_id, evidence=str(path))
