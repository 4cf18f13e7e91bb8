"""Adapter: the ledger, our own SQLite file (sqlite-utils). It alone says where a worker and a renewal stand."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable

from lifecycle.errors import LedgerError, RenewalInProgress
from lifecycle.ledger_journal import Event, Journal, StoredHandoff
from lifecycle.record import WorkerRecord
from lifecycle.renewal import Renewal
from lifecycle.value import SCHEMA

log = logging.getLogger(__name__)


class Ledger(Journal):
    """One connection to the ledger. It belongs to the thread that opened it.

    Reading and writing a value is one transaction, so that two processes never lose each other's change.
    """

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
        """Those that can be read. One that cannot is logged here and raises where its worker's record is read."""
        found = []
        for renewal_id, doc in self._rows("select renewal_id, doc from renewals where end is null"):
            try:
                found.append(self._recalled(Renewal, renewal_id, doc))
            except LedgerError as error:
                log.error("%s", error)  # noqa: TRY400 - the message names file and row, the trace adds nothing
        return found

    def renewals_of(self, worker_id: str, limit: int = 20) -> list[Renewal]:
        """Newest first."""
        rows = self._rows(
            "select renewal_id, doc from renewals where worker_id = ? order by opened_at desc, rowid desc limit ?",
            [worker_id, limit],
        )
        return [self._recalled(Renewal, renewal_id, doc) for renewal_id, doc in rows]


__all__ = ["Event", "Ledger", "StoredHandoff"]
