"""Adapter: the full-text index of the archive, our own SQLite file (FTS5, sqlite-utils).

It is derived and holds nothing of its own: it may be deleted at any time. Texts are whole in it beside their terms
(never contentless: what was deleted of a contentless table stays in the index).
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar

from sqlite_utils import Database

from lifecycle import search_terms
from lifecycle.archived import Document, Entry, Found
from lifecycle.durable import make_private
from lifecycle.errors import ArchiveIndexError

log = logging.getLogger(__name__)

_T = TypeVar("_T")

VERSION = 1
"""Of the tables and of how terms and passages are made. An index of another version is made anew."""

BUSY_SECONDS = 30.0
"""How long to wait for another process that brings the index up to date."""

_TABLES = ("passages_fts", "passages", "documents")


class ArchiveIndex:
    """One connection to the index. Every method is one transaction, or part of the one that `changing` opens."""

    def __init__(self, path: Path) -> None:
        """Open the index, making it where there is none. A file that is no index of this version is replaced.

        Raises:
            ArchiveIndexError
        """
        self.path = path
        self._open()

    def _open(self) -> None:
        try:
            make_private(self.path.parent)
            self._connect()
        except OSError as error:
            msg = f"{self.path}: cannot be made: {error.strerror}"
            raise ArchiveIndexError(msg) from error
        except sqlite3.Error as error:
            if not _is_damage(error):
                raise self._unusable(error) from error
            self._make_anew()

    def start_over(self) -> None:
        """Make the index anew, empty. Nothing but a copy is lost.

        Raises:
            ArchiveIndexError
        """
        self.close()
        self._make_anew()

    def _make_anew(self) -> None:
        try:
            for name in (self.path.name, f"{self.path.name}-journal"):
                self.path.with_name(name).unlink(missing_ok=True)
            self._connect()
        except OSError as error:
            msg = f"{self.path}: cannot be made anew: {error.strerror}"
            raise ArchiveIndexError(msg) from error
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _connect(self) -> None:
        self.path.touch(mode=0o600)
        self._connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        self._db = Database(self._connection)
        try:
            self._bring_to_version()
        except sqlite3.Error:
            self.close()
            raise

    def _bring_to_version(self) -> None:
        sql = "pragma user_version"
        if self._connection.execute(sql).fetchone() == (VERSION,):
            return
        self._connection.execute("begin immediate")
        if self._connection.execute(sql).fetchone() != (VERSION,):  # no other process has done it meanwhile
            self._make_tables()
        self._connection.execute("commit")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """What is changed inside is there together or not at all; other processes that change it wait.

        Raises:
            ArchiveIndexError: also where SQLite fails inside. Nothing was changed.
        """
        with self._translated():
            self._connection.execute("begin immediate")
            try:
                yield
                self._connection.execute("commit")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def documents(self, worker_id: str | None = None) -> dict[str, Document]:
        """What is indexed, by name; the documents of all workers, or of *worker_id*.

        Raises:
            ArchiveIndexError
        """
        with self._translated():
            rows = self._connection.execute(
                'select name, kind, worker_id, fingerprint, "order", generation, renewal_id, upto, size, dropped '
                "from documents where ? is null or worker_id = ? order by name",
                (worker_id, worker_id),
            ).fetchall()
        names = list(Document.model_fields)
        return {row[0]: Document.model_validate(dict(zip(names, row, strict=True))) for row in rows}

    def put(self, document: Document) -> None:
        """Write what is known of *document*; its passages stay."""
        self._db.table("documents").upsert(document.model_dump(), pk="name")

    def add(self, document: Document, entries: Iterable[Entry]) -> None:
        """Add passages to a document that was put. One that stands at the same place under the same text is kept."""
        rows = [
            (
                document.name,
                entry.place,
                hashlib.sha256(entry.text.encode("utf-8", "replace")).hexdigest()[:16],
                entry.heading,
                entry.text,
                search_terms.indexed(f"{entry.heading}\n{entry.text}"),
                entry.at.isoformat(),
            )
            for entry in entries
        ]
        # Of a compacted session the kept rows stand in it again: the first of two that say the same is enough.
        self._connection.executemany(
            "insert or ignore into passages (name, place, digest, heading, text, terms, at) "
            "values (?, ?, ?, ?, ?, ?, ?)",
            rows,
        )

    def remove(self, name: str) -> None:
        self.empty(name)
        self._connection.execute("delete from documents where name = ?", (name,))

    def empty(self, name: str) -> None:
        """Remove the passages of a document; it stays known."""
        self._connection.execute("delete from passages where name = ?", (name,))

    def clear(self) -> None:
        self._make_tables()

    def count(self) -> tuple[int, int]:
        """How many documents and passages are indexed."""
        sql = "select (select count(*) from documents where not dropped), (select count(*) from passages)"
        with self._translated():
            documents, passages = self._connection.execute(sql).fetchone()
        return documents, passages

    def search(self, text: str, *, worker_id: str | None = None, kind: str | None = None, limit: int) -> list[Found]:
        """The passages that hold any term of *text*, the best first, of equally good ones the newest.

        Raises:
            ArchiveIndexError
        """
        asked = search_terms.query(text)
        if not asked:
            return []
        sql = (
            "select d.name, d.kind, d.worker_id, d.generation, d.renewal_id, p.place, p.heading, p.text, p.at, "
            "round(-bm25(passages_fts), 6) as score from passages_fts f "
            "join passages p on p.passage_id = f.rowid join documents d on d.name = p.name "
            "where passages_fts match ? and (? is null or d.worker_id = ?) and (? is null or d.kind = ?) "
            "order by score desc, p.at desc, d.name, p.place limit ?"
        )
        with self._translated():
            rows = self._connection.execute(sql, (asked, worker_id, worker_id, kind, kind, limit)).fetchall()
        names = list(Found.model_fields)
        return [Found.model_validate(dict(zip(names, row, strict=True))) for row in rows]

    def _make_tables(self) -> None:
        for name in _TABLES:
            self._db.execute(f"drop table if exists {name}")
        self._db.table("documents").create(
            {
                "name": str,
                "kind": str,
                "worker_id": str,
                "fingerprint": str,
                "order": float,
                "generation": int,
                "renewal_id": str,
                "upto": int,
                "size": int,
                "dropped": int,
            },
            pk="name",
            strict=True,
        )
        self._db.table("passages").create(
            {
                "passage_id": int,
                "name": str,
                "place": int,
                "digest": str,
                "heading": str,
                "text": str,
                "terms": str,
                "at": str,
            },
            pk="passage_id",
            strict=True,
        )
        self._db.table("passages").create_index(["name", "digest"], unique=True)
        self._db.table("passages").enable_fts(["terms"], fts_version="FTS5", create_triggers=True, tokenize="porter")
        self._db.execute(f"pragma user_version = {VERSION}")

    def _unusable(self, error: sqlite3.Error) -> ArchiveIndexError:
        msg = f"{self.path}: the index of the archive cannot be used: {error}; delete it, it is made anew"
        return ArchiveIndexError(msg)


def with_index(path: Path, act: Callable[[ArchiveIndex], _T]) -> _T:
    """What *act* makes of the index at *path*; where it proves damaged on the way, of one that is made anew.

    Raises:
        ArchiveIndexError
    """
    with ArchiveIndex(path) as index:
        try:
            return act(index)
        except ArchiveIndexError as error:
            if not (isinstance(error.__cause__, sqlite3.Error) and _is_damage(error.__cause__)):
                raise
            log.warning("%s; it is made anew", error.detail)
            index.start_over()
            return act(index)


def _is_damage(error: sqlite3.Error) -> bool:
    kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_NOTADB) & 0xFF
    return kind in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT)
