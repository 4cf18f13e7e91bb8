"""Adapter: the ledger, our own SQLite file (sqlite-utils). It alone says where a worker and a renewal stand."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import BeforeValidator, JsonValue, ValidationError
from sqlite_utils import Database

from lifecycle.breaker import Breaker
from lifecycle.durable import create, make_private
from lifecycle.errors import LedgerError, RenewalInProgress
from lifecycle.ledger_schema import migrations
from lifecycle.reading import ContextReading
from lifecycle.record import WorkerRecord
from lifecycle.renewal import Quality, Renewal
from lifecycle.value import SCHEMA, Value
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until

_V = TypeVar("_V", bound=Value)

BUSY = timedelta(seconds=10)
"""How long a writer waits for another one. Transactions here take milliseconds."""


def _from_text(detail: object) -> object:
    return json.loads(detail) if isinstance(detail, str) else detail


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None


class Event(Value):
    """Something that happened to a worker, in the order it was written."""

    event_id: int
    at: datetime
    worker_id: str
    renewal_id: str | None
    kind: str
    detail: Annotated[dict[str, JsonValue], BeforeValidator(_from_text)]


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
        try:
            make_private(path.parent)
            if not path.exists():
                # Its owner's alone from the start, as are the files that SQLite puts beside it; and put there whole:
                # closing the file itself would drop the locks of another connection in this process.
                with suppress(FileExistsError):
                    create(path, b"")
        except OSError as error:
            msg = f"{path}: cannot be made: {error}"
            raise LedgerError(msg) from error
        with self._translated():
            self._connection = sqlite3.connect(path, timeout=BUSY.total_seconds(), isolation_level=None)
        try:
            self._prepare()
        except LedgerError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def _prepare(self) -> None:
        with self._translated():
            self._write_ahead()
            # What was written is on disk before the step that relies on it, also when the power fails.
            self._connection.execute("pragma synchronous=full")
            self._db = Database(self._connection)
            if migrations.pending(self._db):
                with self.transaction():
                    migrations.apply(self._db)

    def _write_ahead(self) -> None:
        """Switch to the write-ahead log. SQLite itself does not wait where several processes switch a new file."""

        def switched() -> bool:
            try:
                self._connection.execute("pragma journal_mode=wal")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                return False
            return True

        try:
            wait_until(switched, BUSY, SystemClock(), every=timedelta(seconds=0.01))
        except DeadlinePassed as error:
            msg = f"{self.path}: database is locked"
            raise LedgerError(msg) from error

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
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
                self._connection.execute("commit")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")
                raise

    def _rows(self, sql: str, parameters: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        with self._translated():
            return self._connection.execute(sql, tuple(parameters)).fetchall()

    # Workers

    def record(self, worker_id: str) -> WorkerRecord:
        """The memory of a worker; an empty one for a worker never seen."""
        return self.records([worker_id])[worker_id]

    def records(self, worker_ids: Iterable[str]) -> dict[str, WorkerRecord]:
        """The memory of each worker; what is stored of any other one is not read."""
        stored = dict(self._rows("select worker_id, doc from workers"))
        renewals = dict(self._rows("select worker_id, doc from renewals where end is null"))
        found = {}
        for worker_id in worker_ids:
            doc, opened = stored.get(worker_id), renewals.get(worker_id)
            record = self._recalled(WorkerRecord, worker_id, doc) if doc is not None else None
            renewal = self._recalled(Renewal, worker_id, opened) if opened is not None else None
            known = record or WorkerRecord(worker_id=worker_id)
            found[worker_id] = known.model_copy(update={"open_renewal": renewal})
        return found

    def remember(self, worker_id: str, **changes: object) -> WorkerRecord:
        """Change fields of a worker's record; the others keep what any other process wrote meanwhile.

        Raises:
            pydantic.ValidationError: a bug: there is no such field, or the value does not fit it.
        """
        with self.transaction():
            record = self.record(worker_id)
            checked = WorkerRecord.model_validate({**dict(record), **changes})
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
        return self._recalled(Renewal, renewal_id, rows[0][0])

    def open_renewals(self) -> list[Renewal]:
        rows = self._rows("select renewal_id, doc from renewals where end is null")
        return [self._recalled(Renewal, renewal_id, doc) for renewal_id, doc in rows]

    def renewals_of(self, worker_id: str, limit: int = 20) -> list[Renewal]:
        """Newest first."""
        rows = self._rows(
            "select renewal_id, doc from renewals where worker_id = ? order by opened_at desc, rowid desc limit ?",
            [worker_id, limit],
        )
        return [self._recalled(Renewal, renewal_id, doc) for renewal_id, doc in rows]

    # Handoffs, readings, events, notices

    def add_handoff(self, handoff: StoredHandoff) -> None:
        with self.transaction():
            # Dates sort as text only while all are written in the same form.
            row = {**handoff.model_dump(mode="json"), "created_at": handoff.created_at.isoformat()}
            self._db.table("handoffs").upsert(row, pk="renewal_id")

    def handoffs_of(self, worker_id: str) -> list[StoredHandoff]:
        """Newest first."""
        rows = self._rows(
            "select renewal_id, worker_id, generation, archive, sha256, quality, mission_id, created_at "
            "from handoffs where worker_id = ? order by created_at desc, rowid desc",
            [worker_id],
        )
        names = list(StoredHandoff.model_fields)
        return [self._validated(StoredHandoff, row[0], dict(zip(names, row, strict=True))) for row in rows]

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
        # Half a surrogate pair, as a file name may hold one, can be written nowhere.
        text = json.dumps(detail, ensure_ascii=False).encode("utf-8", "replace").decode()
        with self.transaction():
            self._connection.execute(
                "insert into events (at, worker_id, renewal_id, kind, detail) values (?, ?, ?, ?, ?)",
                (at.isoformat(), worker_id, renewal_id, kind, text),
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
        return [self._validated(Event, row["event_id"], row) for row in found]

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
                    "delete from notices where worker_id = ?1 and substr(key || ':', 1, length(?2) + 1) = ?2 || ':'",
                    (worker_id, kind),
                )

    # Breakers

    def open_breaker(self, breaker: Breaker) -> bool:
        """Remember the trouble of an account; whether its breaker was not open before.

        Trouble from before a proof or a human closed the account's breaker is over and opens nothing.
        """
        with self.transaction():
            known = next((one for one in self._breakers() if one.account == breaker.account), None)
            if known is not None and breaker.since <= (known.closed_at or known.since):
                return False
            was_open = known is not None and known.is_open(breaker.since)
            row = {**dict(breaker), **{name: _iso(getattr(breaker, name)) for name in ("since", "until", "closed_at")}}
            self._db.table("breakers").upsert(row, pk="account")
        return not was_open

    def close_breaker(self, account: str, *, at: datetime) -> bool:
        """Close the account's breaker; whether there was one that nobody had closed."""
        with self.transaction():
            done = self._connection.execute(
                "update breakers set closed_at = ? where account = ? and closed_at is null", (at.isoformat(), account)
            )
            return done.rowcount == 1

    def breakers(self, now: datetime) -> list[Breaker]:
        """Those that are open."""
        return [breaker for breaker in self._breakers() if breaker.is_open(now)]

    def _breakers(self) -> list[Breaker]:
        names = list(Breaker.model_fields)
        rows = self._rows("select account, kind, since, until, why, closed_at from breakers order by account")
        return [self._validated(Breaker, row[0], dict(zip(names, row, strict=True))) for row in rows]

    def _recalled(self, kind: type[_V], name: str, doc: str) -> _V:
        try:
            return kind.recall(doc)
        except ValidationError as error:
            raise self._unreadable(kind, name, error) from error

    def _validated(self, kind: type[_V], name: object, row: dict[str, Any]) -> _V:
        try:
            return kind.model_validate(row)
        except ValidationError as error:
            raise self._unreadable(kind, name, error) from error

    def _unreadable(self, kind: type[Value], name: object, error: ValidationError) -> LedgerError:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        return LedgerError(f"{self.path}: the stored {kind.__name__} {name} cannot be read: {key}: {first['msg']}")
