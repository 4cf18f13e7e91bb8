"""Bringing the archive's index up to date with the handoffs' files and with the past of the agents' sessions."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from lifecycle.archive_index import ArchiveIndex, with_index
from lifecycle.archived import Document, Entry
from lifecycle.errors import ContextUnreadable
from lifecycle.handoff import read_handoff
from lifecycle.host import Host
from lifecycle.passages import passages_of
from lifecycle.past import PastMessage, PastSession
from lifecycle.redaction import redact
from lifecycle.value import Value
from lifecycle.worker import WORKER_ID, Worker

log = logging.getLogger(__name__)

LARGEST_FILE = 4 * 2**20
"""Bytes of a handoff that are read; composed ones are a fortieth of it at most."""

SESSION_MOST, WORKER_MOST = 2_000_000, 16_000_000
"""Characters that are indexed of one session, from its beginning, and of all sessions of a worker, the newest."""

FILES_AT_ONCE = 50

UNWRITTEN = "(nothing was written)"


class Indexed(Value):
    """What a look at the sources changed, and what the index holds now. *unread* says what could not be read."""

    path: Path
    documents: int
    passages: int
    changed: int
    seconds: float
    unread: tuple[str, ...] = ()


def index_path(host: Host) -> Path:
    return host.settings.home / "archive" / "index.db"


def reindex(host: Host) -> Indexed:
    """Make the whole index anew.

    Raises:
        ArchiveIndexError, RosterError
    """

    def anew(index: ArchiveIndex) -> Indexed:
        with index.changing():
            index.clear()
        return bring_up_to_date(host, index)

    return with_index(index_path(host), anew)


def refresh(host: Host) -> Indexed:
    """Bring the index up to date.

    Raises:
        ArchiveIndexError, RosterError
    """
    return with_index(index_path(host), lambda index: bring_up_to_date(host, index))


def bring_up_to_date(
    host: Host, index: ArchiveIndex, only: Worker | None = None, *, within: timedelta | None = None
) -> Indexed:
    """Take in what was added, changed or deleted since the last time, of all workers or of one.

    Where that takes longer than *within*, the newest is in the index and the next call goes on with the rest.

    Raises:
        ArchiveIndexError, RosterError
    """
    began = time.perf_counter()

    def is_late() -> bool:
        return within is not None and time.perf_counter() - began > within.total_seconds()

    unread: list[str] = []
    workers = [only] if only is not None else [worker for worker in host.workers() if worker.managed]
    known = index.documents(only.worker_id if only is not None else None)
    changed, seen = _index_files(host, index, only, known, is_late)
    for worker in workers:
        try:
            count, names = _index_sessions(host, index, worker, known, is_late)
        except ContextUnreadable as error:
            unread.append(error.detail)
            prefix = f"{worker.worker_id}:"
            count, names = 0, {name for name in known if name.startswith(prefix)}
        changed += count
        seen |= names
    gone = [name for name in known if name not in seen] if not is_late() else []
    if gone:
        with index.changing():
            for name in gone:
                index.remove(name)
    documents, passages = index.count()
    return Indexed(
        path=index.path,
        documents=documents,
        passages=passages,
        changed=changed + len(gone),
        seconds=round(time.perf_counter() - began, 3),
        unread=tuple(unread),
    )


def _index_files(
    host: Host, index: ArchiveIndex, only: Worker | None, known: dict[str, Document], is_late: Callable[[], bool]
) -> tuple[int, set[str]]:
    changed, seen = 0, set[str]()
    for batch in _batches(_files(host, only)):
        if is_late():
            break
        new = [(name, path, stamp) for name, path, stamp in batch if _stamp_of(known.get(name)) != stamp]
        if new:
            with index.changing():
                changed += sum(_index_file(index, path, name, stamp, known.get(name)) for name, path, stamp in new)
        seen |= {name for name, _, _ in batch}
    return changed, seen


def _files(host: Host, only: Worker | None) -> Iterator[tuple[str, Path, str]]:
    """Every archived handoff, the newest first: its name, its path, and a stamp that any rewriting changes."""
    found = (host.settings.home / "archive").glob(f"{only.worker_id}/*.md" if only is not None else "*/*.md")
    for path in sorted(found, key=lambda path: path.name, reverse=True):
        if not WORKER_ID.fullmatch(path.parent.name) or path.is_symlink():
            continue
        try:
            status = path.stat()
        except OSError as error:
            log.warning("%s: cannot be indexed: %s", path, error.strerror)
            continue
        stamp = f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"
        yield f"{path.parent.name}/{path.name}", path, stamp


def _batches(files: Iterator[tuple[str, Path, str]]) -> Iterator[list[tuple[str, Path, str]]]:
    """Many files in one transaction: each waits for the disk."""
    while batch := list(islice(files, FILES_AT_ONCE)):
        yield batch


def _stamp_of(document: Document | None) -> str:
    return document.fingerprint.partition(" ")[0] if document is not None else ""


def _index_file(index: ArchiveIndex, path: Path, name: str, stamp: str, before: Document | None) -> bool:
    """Whether the file says anything new."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE)
    except OSError as error:
        log.warning("%s: cannot be indexed: %s", path, error.strerror)
        return False
    digest = hashlib.sha256(raw).hexdigest()
    is_same = before is not None and before.fingerprint.partition(" ")[2] == digest
    handoff = read_handoff(redact(raw.decode(errors="replace")))
    at = _made_at(handoff.created_at) or datetime.fromtimestamp(int(stamp.split(":")[1]) / 1e9, UTC)
    document = Document(
        name=name,
        kind="handoff",
        worker_id=path.parent.name,
        fingerprint=f"{stamp} {digest}",
        order=at.timestamp(),
        generation=handoff.generation,
        renewal_id=handoff.renewal_id,
    )
    index.put(document)
    if not is_same:
        index.empty(name)
        index.add(
            document,
            (
                Entry(place=place, heading=passage.heading, text=passage.text, at=at)
                for place, passage in enumerate(passages_of(handoff.body))
                if passage.text != UNWRITTEN
            ),
        )
    return not is_same


def _made_at(at: datetime | None) -> datetime | None:
    """In UTC; None for a date that is none there, as the first hour of the first year is in the east."""
    try:
        return at and (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None


def _index_sessions(
    host: Host, index: ArchiveIndex, worker: Worker, known: dict[str, Document], is_late: Callable[[], bool]
) -> tuple[int, set[str]]:
    changed = 0
    documents: list[Document] = []
    for session in reversed(host.agent(worker).past_sessions(worker)):
        if is_late():
            break
        name = f"{worker.worker_id}:{session.session_id}"
        before = known.get(name)
        if before is not None and before.dropped:
            documents.append(before)
            continue
        if before is not None and before.fingerprint and before.fingerprint != session.mark:
            # It went on after its end, and what was past then may be undone by now.
            with index.changing():
                index.remove(name)
            before = None
        document = before or Document(
            name=name, kind="session", worker_id=worker.worker_id, fingerprint=session.mark, order=session.order
        )
        document = document.model_copy(update={"fingerprint": session.mark})
        if document.upto < session.newest_row and document.size < SESSION_MOST:
            document = _index_session(host, index, worker, session, document, is_late)
        if document != before:
            with index.changing():
                index.put(document)
            changed += 1
        documents.append(document)
    _drop_oldest(index, documents)
    return changed, {document.name for document in documents}


def _index_session(
    host: Host,
    index: ArchiveIndex,
    worker: Worker,
    session: PastSession,
    document: Document,
    is_late: Callable[[], bool],
) -> Document:
    agent = host.agent(worker)
    while document.size < SESSION_MOST and not is_late():
        rows = agent.past_messages(worker, session, after_row=document.upto)
        if not rows:
            break
        entries: list[Entry] = []
        size = document.size
        for row in rows:
            if size >= SESSION_MOST:
                break
            of_row = _entries(row)
            size += sum(len(entry.text) for entry in of_row)
            entries += of_row
        document = document.model_copy(update={"upto": rows[-1].row_id, "size": size})
        with index.changing():
            index.put(document)
            index.add(document, entries)
    return document


def _entries(row: PastMessage) -> list[Entry]:
    return [
        Entry(place=row.row_id, heading=row.role, text=passage.text, at=row.at)
        for passage in passages_of(redact(row.text), has_headings=False)
    ]


def _drop_oldest(index: ArchiveIndex, documents: Iterable[Document]) -> None:
    """Forget the oldest sessions of a worker beyond its share; the newest one stays in any case."""
    total = 0
    for number, document in enumerate(sorted(documents, key=lambda one: (one.order, one.name), reverse=True)):
        total += document.size
        if number and total > WORKER_MOST and not document.dropped:
            with index.changing():
                index.empty(document.name)
                index.put(document.model_copy(update={"dropped": True}))
