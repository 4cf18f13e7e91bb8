"""Adapter: the ledger, our own SQLite file (sqlite-utils). It alone says where a worker and a renewal stand."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import JsonValue, ValidationError
from sqlite_utils import Database

from lifecycle.errors import LedgerError, RenewalInProgress
from lifecycle.ledger_schema import migrations
from lifecycle.reading import ContextReading
from lifecycle.record import WorkerRecord
from lifecycle.renewal import Quality, Renewal
from lifecycle.value import SCHEMA, Value

_V = TypeVar("_V", bound=Value)

BUSY = timedelta(seconds=10)
"""How long a writer waits for another one. Transactions here take milliseconds."""


class Event(Value):
    """Something that happened to a worker, in the order it was written."""

    event_id: int
    at: datetime
    worker_id: str
    renewal_id: str | None
    kind: str
    detail: dict[str, JsonValue]


class StoredHandoff(Value):
    """A handoff that crossed, or was to cross, a renewal."""

    renewal_id: str
    worker_id: str
    generation: int
    archive: Path
    sha256: str
    quality: Quality
    mission_id: str | None
    created_at: datetime


class Ledger:
    """One connection to the ledger. It belongs to the thread that opened it.

    Reading and writing a value is one transaction, so that two processes never lose each other's change.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._translated():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = not path.exists()
            self._connection = sqlite3.connect(path, timeout=BUSY.total_seconds(), isolation_level=None)
            if fresh:
                path.chmod(0o600)
            self._connection.execute("pragma journal_mode=wal")
            self._connection.execute("pragma synchronous=normal")
            self._db = Database(self._connection)
            if fresh or migrations.pending(self._db):
                with self.transaction():
                    migrations.apply(self._db)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            msg = f"{self.path}: {error}"
            raise LedgerError(msg) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside is written together or not at all; other writers wait. May be nested."""
        with self._translated():
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("begin immediate")
            try:
                yield
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")
                raise
            self._connection.execute("commit")

    def _rows(self, sql: str, parameters: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        with self._translated():
            return self._connection.execute(sql, tuple(parameters)).fetchall()

    # Workers

    def record(self, worker_id: str) -> WorkerRecord:
        """The memory of a worker; an empty one for a worker never seen."""
        return self.records([worker_id])[worker_id]

    def records(self, worker_ids: Iterable[str]) -> dict[str, WorkerRecord]:
        ids = list(worker_ids)
        stored = dict(self._rows("select worker_id, doc from workers"))
        renewals = {renewal.worker_id: renewal for renewal in self.open_renewals()}
        found = {}
        for worker_id in ids:
            doc = stored.get(worker_id)
            record = self._recalled(WorkerRecord, doc) if doc else WorkerRecord(worker_id=worker_id)
            found[worker_id] = record.model_copy(update={"open_renewal": renewals.get(worker_id)})
        return found

    def remember(self, worker_id: str, **changes: object) -> WorkerRecord:
        """Change fields of a worker's record; the others keep what any other process wrote meanwhile."""
        with self.transaction():
            record = self.record(worker_id).model_copy(update=changes)
            checked = WorkerRecord.model_validate(record.model_dump())
            doc = checked.model_dump_json(exclude={"open_renewal"})
            self._db.table("workers").upsert({"worker_id": worker_id, "schema": SCHEMA, "doc": doc}, pk="worker_id")
        return checked

    # Renewals

    def open(self, renewal: Renewal) -> None:
        """Write a new renewal.

        Raises:
            RenewalInProgress: the worker has an open one.
        """
        try:
            with self.transaction():
                self._connection.execute(
                    "insert into renewals (renewal_id, worker_id, phase, end, opened_at, updated_at, schema, doc) "
                    "values (?, ?, ?, null, ?, ?, ?, ?)",
                    (
                        renewal.renewal_id,
                        renewal.worker_id,
                        renewal.phase.value,
                        renewal.opened_at.isoformat(),
                        renewal.updated_at.isoformat(),
                        SCHEMA,
                        renewal.model_dump_json(),
                    ),
                )
        except LedgerError as error:
            if isinstance(error.__cause__, sqlite3.IntegrityError):
                msg = f"{renewal.worker_id} has an open renewal"
                raise RenewalInProgress(msg, worker_id=renewal.worker_id) from error
            raise

    def put(self, renewal: Renewal) -> Renewal:
        """Write a renewal that moved on. A phase never goes back and an ended renewal never changes.

        Raises:
            RenewalInProgress: another process moved it further, or ended it, in the meantime.
        """
        with self.transaction():
            stored = self.renewal(renewal.renewal_id)
            if not stored.is_open or stored.phase.rank > renewal.phase.rank:
                msg = f"{renewal.renewal_id} stands at {stored.end or stored.phase}: another process moved it"
                raise RenewalInProgress(msg, worker_id=renewal.worker_id)
            self._db.table("renewals").update(
                renewal.renewal_id,
                {
                    "phase": renewal.phase.value,
                    "end": renewal.end.value if renewal.end else None,
                    "updated_at": renewal.updated_at.isoformat(),
                    "schema": SCHEMA,
                    "doc": renewal.model_dump_json(),
                },
            )
        return renewal

    def renewal(self, renewal_id: str) -> Renewal:
        rows = self._rows("select doc from renewals where renewal_id = ?", [renewal_id])
        if not rows:
            msg = f"{self.path}: no renewal {renewal_id}"
            raise LedgerError(msg)
        return self._recalled(Renewal, rows[0][0])

    def open_renewals(self) -> list[Renewal]:
        return [self._recalled(Renewal, doc) for (doc,) in self._rows("select doc from renewals where end is null")]

    def renewals_of(self, worker_id: str, limit: int = 20) -> list[Renewal]:
        """Newest first."""
        rows = self._rows(
            "select doc from renewals where worker_id = ? order by opened_at desc limit ?", [worker_id, limit]
        )
        return [self._recalled(Renewal, doc) for (doc,) in rows]

    # Handoffs, readings, events, notices

    def add_handoff(self, handoff: StoredHandoff) -> None:
        with self.transaction():
            row = handoff.model_dump(mode="json")
            self._db.table("handoffs").upsert(row, pk="renewal_id")

    def handoffs_of(self, worker_id: str) -> list[StoredHandoff]:
        """Newest first."""
        rows = self._rows(
            "select renewal_id, worker_id, generation, archive, sha256, quality, mission_id, created_at "
            "from handoffs where worker_id = ? order by created_at desc",
            [worker_id],
        )
        names = list(StoredHandoff.model_fields)
        return [StoredHandoff.model_validate(dict(zip(names, row, strict=True))) for row in rows]

    def add_readings(self, readings: Iterable[ContextReading]) -> None:
        with self.transaction():
            self._connection.executemany(
                "insert into readings (worker_id, at, session_id, tokens, source, session_total) "
                "values (?, ?, ?, ?, ?, ?)",
                [(r.worker_id, r.at.isoformat(), r.session_id, r.tokens, r.source, r.session_total) for r in readings],
            )

    def add_event(
        self,
        kind: str,
        worker_id: str,
        *,
        at: datetime,
        renewal_id: str | None = None,
        **detail: JsonValue,
    ) -> None:
        with self.transaction():
            self._connection.execute(
                "insert into events (at, worker_id, renewal_id, kind, detail) values (?, ?, ?, ?, ?)",
                (at.isoformat(), worker_id, renewal_id, kind, json.dumps(detail, ensure_ascii=False)),
            )

    def events(self, worker_id: str | None = None, *, after: int = 0, limit: int = 100) -> list[Event]:
        """The newest *limit* events behind *after*, oldest first."""
        rows = self._rows(
            "select event_id, at, worker_id, renewal_id, kind, detail from events "
            "where event_id > ? and (? is null or worker_id = ?) order by event_id desc limit ?",
            [after, worker_id, worker_id, limit],
        )
        names = list(Event.model_fields)
        found = [dict(zip(names, row, strict=True)) for row in reversed(rows)]
        return [Event.model_validate({**row, "detail": json.loads(row["detail"])}) for row in found]

    def is_first_notice(self, worker_id: str, key: str, *, at: datetime) -> bool:
        """Whether *key* was not noticed of this worker yet; from now on it was."""
        with self.transaction():
            done = self._connection.execute(
                "insert or ignore into notices (worker_id, key, at) values (?, ?, ?)", (worker_id, key, at.isoformat())
            )
            return done.rowcount == 1

    def forget_notices(self, worker_id: str, *, passing: Iterable[str]) -> None:
        """Forget the notices whose key begins with one of *passing*: what they told of is over."""
        with self.transaction():
            for kind in passing:
                self._connection.execute(
                    "delete from notices where worker_id = ? and (key = ? or key like ? || ':%')",
                    (worker_id, kind, kind),
                )

    def _recalled(self, kind: type[_V], doc: str) -> _V:
        try:
            return kind.recall(doc)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            msg = f"{self.path}: a stored {kind.__name__} cannot be read: {first['loc']}: {first['msg']}"
            raise LedgerError(msg) from error
