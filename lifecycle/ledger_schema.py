"""The ledger's tables. Values are JSON with a schema number; the columns beside them are for queries."""

from __future__ import annotations

from sqlite_utils import Database, Migrations

migrations = Migrations("afresh")


@migrations()
def m001_first_tables(db: Database) -> None:
    db.table("workers").create({"worker_id": str, "schema": int, "doc": str}, pk="worker_id", strict=True)
    db.table("renewals").create(
        {
            "renewal_id": str,
            "worker_id": str,
            "phase": str,
            "end": str,
            "opened_at": str,
            "updated_at": str,
            "schema": int,
            "doc": str,
        },
        pk="renewal_id",
        not_null={"worker_id", "phase", "opened_at", "updated_at", "doc"},
        strict=True,
    )
    # One open renewal per worker; sqlite-utils' create_index takes no condition.
    db.execute("create unique index one_open_renewal on renewals (worker_id) where end is null")
    db.table("renewals").create_index(["worker_id", "opened_at"])
    db.table("handoffs").create(
        {
            "renewal_id": str,
            "worker_id": str,
            "generation": int,
            "archive": str,
            "sha256": str,
            "quality": str,
            "mission_id": str,
            "created_at": str,
        },
        pk="renewal_id",
        strict=True,
    )
    db.table("handoffs").create_index(["worker_id", "created_at"])
    db.table("readings").create(
        {
            "reading_id": int,
            "worker_id": str,
            "at": str,
            "session_id": str,
            "tokens": int,
            "source": str,
            "session_total": int,
        },
        pk="reading_id",
        strict=True,
    )
    db.table("readings").create_index(["worker_id", "at"])
    db.table("events").create(
        {"event_id": int, "at": str, "worker_id": str, "renewal_id": str, "kind": str, "detail": str},
        pk="event_id",
        strict=True,
    )
    db.table("events").create_index(["worker_id", "event_id"])
    db.table("notices").create({"worker_id": str, "key": str, "at": str}, pk=("worker_id", "key"), strict=True)


@migrations()
def m002_breakers(db: Database) -> None:
    db.table("breakers").create(
        {"account": str, "kind": str, "since": str, "until": str, "why": str, "closed_at": str},
        pk="account",
        not_null={"kind", "since", "why"},
        strict=True,
    )


@migrations()
def m003_notices_that_reached_nobody(db: Database) -> None:
    db.table("untold").create({"untold_id": int, "at": str, "document": str}, pk="untold_id", strict=True)


@migrations()
def m004_readings_without_an_index(db: Database) -> None:
    """Nobody asked for one worker's readings by it, and each sweep wrote a page a worker into it."""
    db.execute("drop index if exists idx_readings_worker_id_at")
