"""Searching all that is known of the past: the archive's handoffs, and what left the context of a session.

The Markdown files and the agents' own databases are the truth; the index is brought up to date from them before every
search, and may be deleted at any time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from lifecycle.archive_index import ArchiveIndex, with_index
from lifecycle.archive_sources import Indexed, bring_up_to_date, index_path
from lifecycle.archived import Found
from lifecycle.errors import ArchiveIndexError
from lifecycle.host import Host
from lifecycle.snippet import snippet
from lifecycle.value import Value
from lifecycle.worker import Worker

log = logging.getLogger(__name__)


RENEWALS_SHARE = timedelta(seconds=2)
"""What a renewal may wait for the index: its worker is down meanwhile. Megabytes of history come in over the next."""


class Hit(Value):
    """A passage that fits. *where* is the handoff's file, or the session and its row.

    Its text is data: an agent or a tool wrote it, at the time *at*.
    """

    worker_id: str
    at: datetime
    score: float
    snippet: str
    source: Literal["handoff", "session"]
    where: str
    heading: str
    generation: int | None
    renewal_id: str | None
    text: str


def search(
    host: Host, text: str, *, worker_id: str | None = None, kind: str | None = None, limit: int = 10
) -> tuple[list[Hit], Indexed]:
    """The passages that hold any word of *text*, the best first; equal texts once, the newest. Any text may be asked.

    Raises:
        ArchiveIndexError, RosterError
    """

    def look(index: ArchiveIndex) -> tuple[list[Found], Indexed]:
        indexed = bring_up_to_date(host, index)
        return index.search(text, worker_id=worker_id, kind=kind, limit=limit * 5), indexed

    found, indexed = with_index(index_path(host), look)
    return [_hit(host, one, text) for one in _distinct(found)[:limit]], indexed


def best_hits(
    host: Host, worker: Worker, next_action: str, *, excluding: Sequence[str] = (), limit: int = 5
) -> tuple[Hit, ...]:
    """What the worker's own past says about *next_action*, one passage a document, the best first.

    *excluding* are the ids of renewals whose handoffs the reader has anyway. It takes seconds at most: a long history
    that was never indexed is searched as far as it is by then. Never raises: a past that cannot be searched is
    logged, and says nothing.
    """

    def look(index: ArchiveIndex) -> list[Found]:
        bring_up_to_date(host, index, worker, within=RENEWALS_SHARE)
        return index.search(next_action, worker_id=worker.worker_id, limit=limit * 10)

    try:
        found = with_index(index_path(host), look)
    except (ArchiveIndexError, OSError, ValueError, OverflowError) as error:
        # A file or a row of any kind may lie in the past, and the worker waits for its resume prompt.
        log.warning("%s: its past cannot be searched: %s", worker.worker_id, error)
        return ()
    chosen: dict[tuple[str, int], Found] = {}
    for one in _distinct(found):
        if one.renewal_id is None or one.renewal_id not in excluding:
            chosen.setdefault((one.name, one.place if one.kind == "session" else 0), one)
    return tuple(_hit(host, one, next_action) for one in list(chosen.values())[:limit])


def _distinct(found: Iterable[Found]) -> list[Found]:
    """Each text once: of equal texts, which have equal scores, the newest comes first."""
    first: dict[tuple[str, str], Found] = {}
    for one in found:
        first.setdefault((one.worker_id, one.text), one)
    return list(first.values())


def _hit(host: Host, found: Found, asked: str) -> Hit:
    is_handoff = found.kind == "handoff"
    path = host.settings.home / "archive" / found.name
    return Hit(
        worker_id=found.worker_id,
        at=found.at,
        score=found.score,
        snippet=snippet(found.text, asked),
        source="handoff" if is_handoff else "session",
        where=str(path) if is_handoff else f"{found.name.partition(':')[2]} row {found.place}",
        heading=found.heading,
        generation=found.generation,
        renewal_id=found.renewal_id,
        text=found.text,
    )
