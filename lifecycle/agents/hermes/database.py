"""Opening a worker's state.db without ever disturbing it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from stat import S_ISDIR
from typing import Annotated, Any

from pydantic import Field

from lifecycle.errors import ContextUnreadable

BUSY_SECONDS = 1.0
"""How long a reader waits for a lock. A locked database is an unknown reading, and the next poll asks again."""

Seconds = Annotated[float, Field(ge=0, lt=253_402_300_800)]
"""Seconds since the epoch, up to the last year that a date can name."""

_MEANINGS = {
    sqlite3.SQLITE_BUSY: f"is locked by another program (waited {BUSY_SECONDS:g} s)",
    sqlite3.SQLITE_LOCKED: f"is locked by another program (waited {BUSY_SECONDS:g} s)",
    sqlite3.SQLITE_NOTADB: "is not a database",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: no permission, or its side files cannot be made",
    sqlite3.SQLITE_READONLY: "needs its -wal and -shm files, and its folder cannot be written",
    sqlite3.SQLITE_PERM: "cannot be read: no permission",
    sqlite3.SQLITE_IOERR: "cannot be read: input/output error",
}


class State:
    """One consistent look at an open state.db. Columns that an older Hermes lacks read as what they default to."""

    def __init__(self, connection: sqlite3.Connection, path: Path, worker_id: str, inode: int) -> None:
        self.path = path
        self.inode = inode
        self.worker_id = worker_id
        self._connection = connection
        self._columns: dict[str, frozenset[str]] = {}

    def columns(self, table: str) -> frozenset[str]:
        """The columns of *table*, empty where there is no such table."""
        if table not in self._columns:
            found = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
            self._columns[table] = frozenset(name for (name,) in found)
        return self._columns[table]

    def column(self, table: str, name: str, default: str = "NULL") -> str:
        """SQL for `table.name`, or for *default* where this database has no such column or it holds NULL."""
        if name not in self.columns(table):
            return f"{default} AS {name}"
        return f"coalesce({table}.{name}, {default}) AS {name}"

    def rows(self, sql: str, *parameters: str | float | None) -> Iterator[tuple[Any, ...]]:
        return iter(self._connection.execute(sql, parameters))

    def first(self, sql: str, *parameters: str | float | None) -> tuple[Any, ...] | None:
        return next(self.rows(sql, *parameters), None)


@contextmanager
def open_state(profile: Path, worker_id: str) -> Iterator[State | None]:
    """Open the state.db of *profile* for one look; None where the profile has none yet: no session was begun.

    Read-only by URI: a plain connection that closes can unlink the agent's live -wal (Q1, hermes-agent
    #109727), an immutable one misses all that is still in it. Keep the body short: in a database without a
    -wal, the look holds the agent's writes back.

    Raises:
        ContextUnreadable: with the path and what is wrong with it, also for SQLite errors inside the body, and for
            values there that no time, number or text can be made of.
    """
    path = profile / "state.db"
    inode = _inode(profile, path, worker_id)
    if inode is None:
        yield None
        return
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            connection.execute("BEGIN")
            state = State(connection, path, worker_id, inode)
            if not {"id", "started_at"} <= state.columns("sessions") or not state.columns("messages"):
                raise _unreadable(path, worker_id, "is no Hermes database: tables are missing")
            yield state
    except sqlite3.Error as error:
        # The low byte is the kind, the rest is detail. Errors of the module itself carry no code.
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
        raise _unreadable(path, worker_id, f"{_MEANINGS.get(kind, 'cannot be read')} ({error})") from error
    except (ValueError, TypeError, OverflowError, RecursionError, OSError) as error:
        # SQLite holds any value in any column; of a time too large some platforms say OSError.
        said = str(error).partition("\n")[0]
        raise _unreadable(path, worker_id, f"holds what the agent does not write ({said})") from error


def _inode(profile: Path, path: Path, worker_id: str) -> int | None:
    """Of the database; None where the profile has none yet."""
    try:
        if not S_ISDIR(profile.stat().st_mode):
            raise _unreadable(profile, worker_id, "is not a folder")
    except OSError as error:
        raise _unreadable(profile, worker_id, f"is no readable profile: {error.strerror}") from error
    try:
        found = path.stat()
        if S_ISDIR(found.st_mode):
            raise _unreadable(path, worker_id, "is a folder, not a database")
        if found.st_size == 0:
            # SQLite takes the -wal beside an empty file for a leftover and unlinks it, also when opened read-only.
            raise _unreadable(path, worker_id, "is empty (zero bytes)")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, worker_id, f"cannot be read: {error.strerror}") from error
    return found.st_ino


def _unreadable(path: Path, worker_id: str, what: str) -> ContextUnreadable:
    return ContextUnreadable(f"{path} {what}", worker_id=worker_id)
