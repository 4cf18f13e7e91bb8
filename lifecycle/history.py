"""What became of a worker: its renewals, what crossed each, and how well that was proved."""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path

from lifecycle.host import Host
from lifecycle.ledger import StoredHandoff
from lifecycle.paths import WorkerPaths
from lifecycle.renewal import Renewal
from lifecycle.value import Value


class Chapter(Value):
    """One renewal, as its worker's history tells it.

    *generation* is the one that it ended, or was to end. *outcome* is `renewed`, `stored`, `spared`, `dismissed`,
    `held`, `blocked` or `open`. *tokens_before* is the reading that it was opened with, *tokens_after* the first one of
    the new session. *proof* is `proved` or `weak`, None where no new session has answered. *is_latest* says that its
    handoff is what the latest pointer holds now; *compactions* counts those of the session that ended, *seconds* from
    opening to end.
    """

    renewal_id: str
    generation: int
    outcome: str
    opened_at: datetime
    ended_at: datetime | None
    seconds: float | None
    asked_by: str
    tokens_before: int | None
    tokens_source: str | None
    tokens_after: int | None
    compactions: int
    session_before: str | None
    session_after: str | None
    quality: str | None
    proof: str | None
    proof_why: str
    why: str
    handoff: Path | None
    is_latest: bool


def history(host: Host, worker_id: str, paths: WorkerPaths | None, *, limit: int = 20) -> list[Chapter]:
    """The newest *limit* renewals of a worker, newest first. Without *paths* nothing is known to be latest.

    Raises:
        LedgerError
    """
    stored = {handoff.renewal_id: handoff for handoff in host.ledger.handoffs_of(worker_id)}
    latest = pointed_at(paths, list(stored.values())) if paths is not None else None
    return [
        _chapter(renewal, stored.get(renewal.renewal_id), is_latest=latest == renewal.renewal_id)
        for renewal in host.ledger.renewals_of(worker_id, limit=limit)
    ]


def pointed_at(paths: WorkerPaths, stored: list[StoredHandoff]) -> str | None:
    """The id of the renewal whose handoff the worker's latest holds; None where it holds none of *stored*."""
    try:
        digest = hashlib.sha256(paths.shared_latest.read_bytes()).hexdigest()
    except OSError:
        return None
    return next((handoff.renewal_id for handoff in stored if handoff.sha256 == digest), None)


def _chapter(renewal: Renewal, handoff: StoredHandoff | None, *, is_latest: bool) -> Chapter:
    reading, answered = renewal.reading, renewal.acknowledgement
    ended_at = None if renewal.is_open else renewal.updated_at
    fit = answered.fit if answered is not None else None
    session = reading.session_id if reading is not None else None
    return Chapter(
        renewal_id=renewal.renewal_id,
        generation=renewal.generation,
        outcome=_outcome(renewal),
        opened_at=renewal.opened_at,
        ended_at=ended_at,
        seconds=round((ended_at - renewal.opened_at).total_seconds(), 1) if ended_at is not None else None,
        asked_by="operator" if renewal.by_hand else "sweep",
        tokens_before=reading.tokens if reading is not None else None,
        tokens_source=reading.source.value if reading is not None else None,
        tokens_after=answered.baseline if answered is not None else None,
        compactions=reading.compactions if reading is not None else 0,
        session_before=session,
        session_after=answered.session_id if answered is not None else None,
        quality=handoff.quality.value if handoff is not None else None,
        proof=(fit.verdict if fit is not None else "proved") if answered is not None else None,
        proof_why=fit.why if fit is not None else "",
        why=_why(renewal),
        handoff=handoff.archive if handoff is not None else None,
        is_latest=is_latest,
    )


def _outcome(renewal: Renewal) -> str:
    if renewal.end is None:
        return "blocked" if renewal.block is not None else "open"
    return "stored" if renewal.purpose == "handoff" and renewal.saved is not None else renewal.end.value


def _why(renewal: Renewal) -> str:
    """Why it was begun, and why it ended as it did, where that is not what it was begun for."""
    end = renewal.block.detail if renewal.block is not None else renewal.end_reason
    return "; ".join(dict.fromkeys(part for part in (renewal.why, end) if part))
