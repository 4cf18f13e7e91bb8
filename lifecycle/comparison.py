"""Two handoffs of a worker beside each other: what the later one says otherwise."""

from __future__ import annotations

import difflib
import re
from datetime import datetime
from pathlib import Path
from typing import Literal

from lifecycle.errors import LifecycleError
from lifecycle.handoff import HandoffFile, read_handoff
from lifecycle.host import Host
from lifecycle.ledger import StoredHandoff
from lifecycle.renewal import Quality
from lifecycle.value import Value

Change = Literal["same", "changed", "added", "removed"]

_HEADING = re.compile(r"## +(.{1,200})")
_GENERATED = re.compile(r"Generated: \S+")
AROUND = 2
"""Unchanged lines that are shown around a changed one."""


class Compared(Value):
    """One of the two. *intact* is false where its file is not what was stored."""

    generation: int
    renewal_id: str
    created_at: datetime
    quality: Quality
    tokens: int | None
    archive: Path
    intact: bool


class Comparison(Value):
    """*sections* says of each what became of it; *lines* is a unified diff of the bodies, empty where they agree."""

    worker_id: str
    older: Compared
    newer: Compared
    sections: dict[str, Change]
    lines: tuple[str, ...]


def compare(host: Host, older: StoredHandoff, newer: StoredHandoff) -> Comparison:
    """Compare two stored handoffs of one worker. The dates at which they were written do not count.

    Raises:
        LifecycleError: a file is gone or cannot be read.
    """
    (before, text_before), (after, text_after) = _read(host, older), _read(host, newer)
    old, new = _parts(text_before.body), _parts(text_after.body)
    lines = difflib.unified_diff(
        _lines(text_before.body),
        _lines(text_after.body),
        f"generation {before.generation} {before.renewal_id}",
        f"generation {after.generation} {after.renewal_id}",
        n=AROUND,
        lineterm="",
    )
    return Comparison(
        worker_id=newer.worker_id,
        older=before,
        newer=after,
        sections={title: _change(old.get(title), new.get(title)) for title in {**old, **new}},
        lines=tuple(lines),
    )


def _read(host: Host, stored: StoredHandoff) -> tuple[Compared, HandoffFile]:
    text, intact = host.stored_text(stored)
    if not text:
        msg = f"{stored.archive} is gone or cannot be read"
        raise LifecycleError(msg, worker_id=stored.worker_id)
    found = read_handoff(text)
    compared = Compared(
        generation=stored.generation,
        renewal_id=stored.renewal_id,
        created_at=stored.created_at,
        quality=stored.quality,
        tokens=found.tokens,
        archive=stored.archive,
        intact=intact,
    )
    return compared, found


def _lines(body: str) -> list[str]:
    return [line for line in body.splitlines() if not _GENERATED.fullmatch(line)]


def _parts(body: str) -> dict[str, str]:
    parts: dict[str, list[str]] = {}
    title = ""
    for line in _lines(body):
        heading = _HEADING.fullmatch(line)
        title = heading[1].strip() if heading else title
        if title and not heading:
            parts.setdefault(title, []).append(line)
    return {title: "\n".join(lines).strip() for title, lines in parts.items()}


def _change(before: str | None, after: str | None) -> Change:
    if before is None:
        return "added"
    if after is None:
        return "removed"
    return "same" if before == after else "changed"
