"""Adapter: the ledger, our own SQLite file (sqlite-utils). It alone says where a worker and a renewal stand."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lifecycle.errors import LedgerError, RenewalInProgress
from lifecycle.ledger_journal import Event, Journal, StoredHandoff
from lifecycle.ledger_thinning import Thinning
from lifecycle.record import WorkerRecord
from lifecycle.renewal import Phase, Renewal
from lifecycle.value import SCHEMA

log = logging.getLogger(__name__)


class Ledger(Journal, Thinning):
    """One connection to the ledger. It belongs to the thread that opened it.

    Reading and writing a value is one transaction, so that two processes never lose each other's change.
    """

    # Workers

    def record(self, worker_id: str) -> WorkerRecord:
        """The memory of a worker; an empty one for a worker never seen."""
        return self.records([worker_id])[worker_id]

    def records(self, worker_ids: Iterable[str]) -> dict[str, WorkerRecord]:
        """The memory of each worker; what is stored of any other one is not read."""
        wanted = list(worker_ids)
        # One list instead of a query a worker; both tables are looked up by their index.
        listed, among = [json.dumps(wanted)], "worker_id in (select value from json_each(?))"
        stored = dict(self._rows(f"select worker_id, doc from workers where {among}", listed))  # noqa: S608
        open_ones = f"select worker_id, doc from renewals where end is null and {among}"  # noqa: S608
        renewals = dict(self._rows(open_ones, listed))
        found = {}
        for worker_id in wanted:
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
            checked = _changed(self.record(worker_id), changes)
            self._write([checked])
        return checked

    def remember_each(self, changes: Mapping[str, Callable[[WorkerRecord], Mapping[str, object]]]) -> None:
        """`remember` for many workers at once; of each what its function makes of its record as it now stands.

        Raises:
            pydantic.ValidationError: as `remember`.
        """
        with self.transaction():
            records = self.records(changes)
            self._write(
                [_changed(records[worker_id], change(records[worker_id])) for worker_id, change in changes.items()]
            )

    def _write(self, records: Iterable[WorkerRecord]) -> None:
        self._connection.executemany(
            "insert into workers (worker_id, schema, doc) values (?, ?, ?) "
            "on conflict (worker_id) do update set schema = excluded.schema, doc = excluded.doc",
            [(record.worker_id, SCHEMA, record.model_dump_json(exclude={"open_renewal"})) for record in records],
        )

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
            phase, end = self._stands_at(renewal.renewal_id)
            if end is not None or phase.rank > renewal.phase.rank:
                msg = f"{renewal.renewal_id} stands at {end or phase}: another process moved it"
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
        (doc,) = self._row_of("doc", renewal_id)
        return self._recalled(Renewal, renewal_id, doc)

    def _stands_at(self, renewal_id: str) -> tuple[Phase, str | None]:
        """Phase and end, without reading all of a renewal: that costs some milliseconds."""
        phase, end = self._row_of("phase, end", renewal_id)
        try:
            return Phase(phase), end
        except ValueError as error:
            msg = f"{self.path}: the stored Renewal {renewal_id} cannot be read: phase: {error}"
            raise LedgerError(msg) from error

    def _row_of(self, columns: str, renewal_id: str) -> tuple[Any, ...]:
        rows = self._rows(f"select {columns} from renewals where renewal_id = ?", [renewal_id])  # noqa: S608
        if not rows:
            msg = f"{self.path}: no renewal {renewal_id}"
            raise LedgerError(msg)
        return rows[0]

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


def _changed(record: WorkerRecord, changes: Mapping[str, object]) -> WorkerRecord:
    return WorkerRecord.model_validate({**dict(record), **changes})


__all__ = ["Event", "Ledger", "StoredHandoff"]
