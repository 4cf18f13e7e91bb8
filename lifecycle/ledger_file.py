"""The ledger's file: opening it, transactions, and rows that become values."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import ValidationError
from sqlite_utils import Database

from lifecycle.durable import create, make_private
from lifecycle.errors import LedgerError
from lifecycle.ledger_schema import migrations
from lifecycle.value import Value
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until

_V = TypeVar("_V", bound=Value)

BUSY = timedelta(seconds=10)
"""How long a writer waits for another one. Transactions here take milliseconds."""


class LedgerFile:
    """One connection to the file, its tables made or brought up to date. It belongs to the thread that opened it."""

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
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")

    def _rows(self, sql: str, parameters: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        with self._translated():
            return self._connection.execute(sql, tuple(parameters)).fetchall()

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
