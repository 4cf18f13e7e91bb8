"""What the ledger lets go with time: readings, events, and the texts of renewals. What happened is kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from lifecycle.ledger_file import LedgerFile

WHOLE_FOR = timedelta(days=1)
"""Every reading is kept so long; of older ones the last of each hour."""

KEPT_FOR = timedelta(days=30)
"""So long readings and events are kept at all, and renewals with every text that was sent and collected."""

AT_ONCE = 1000
"""Renewals that one call thins at most: a ledger that never was must not keep other writers waiting."""

OF_USE_WHILE_OPEN = (
    "launch", "delivery", "request", "correction", "given_text", "orders", "claimed", "stopping", "stopped", "running",
    "resume", "reminder", "parsed.answer", "parsed.draft_text", "parsed.banner", "parsed.identifiers",
    "parsed.supplement", "collected.files", "collected.commands", "collected.todos", "collected.interrupted",
    "collected.background", "collected.results", "collected.git.dirty", "collected.git.untracked",
    "collected.git.not_stored",
)  # fmt: skip
"""Of a renewal what was typed, answered in full and collected; the archived handoff holds what crossed.

Each has a default, so that what is left is read as a renewal.
"""


class Thinning(LedgerFile):
    """Old rows go by their numbers, which rise with time: what was thinned before is not looked at again."""

    def thin(self, now: datetime) -> None:
        """Let go what is too old. Called once an hour it has an hour's rows to look at, however long the past is."""
        whole_from = (now - WHOLE_FOR).replace(minute=0, second=0, microsecond=0)
        with self.transaction():
            begin = self._thinned_to("readings")
            end = self._first("readings", "reading_id", "at", whole_from, behind=begin)
            among = "reading_id > ? and reading_id < ?"
            self._connection.execute(
                f"delete from readings where {among} and reading_id not in (select max(reading_id) from readings "  # noqa: S608
                f"where {among} group by worker_id, substr(at, 1, 13))",
                (begin, end, begin, end),
            )
            self._has_thinned("readings", to=end - 1)
            for table, number in (("readings", "reading_id"), ("events", "event_id")):
                oldest = self._first(table, number, "at", now - KEPT_FOR)
                self._connection.execute(f"delete from {table} where {number} < ?", (oldest,))  # noqa: S608
            self._thin_renewals(now)

    def _thin_renewals(self, now: datetime) -> None:
        """What happened stays: when and why, the figures, the checkpoints, and where the handoff is.

        One that is still open keeps everything for ever: it may be taken up again.
        """
        begin = self._thinned_to("renewals")
        end = min(self._first("renewals", "rowid", "opened_at", now - KEPT_FOR, behind=begin), begin + 1 + AT_ONCE)
        gone = ", ".join(f"'$.{path}'" for path in OF_USE_WHILE_OPEN)
        self._connection.execute(
            f"update renewals set doc = json_remove(doc, {gone}) "  # noqa: S608
            "where rowid > ? and rowid < ? and end is not null and json_valid(doc)",
            (begin, end),
        )
        self._has_thinned("renewals", to=end - 1)

    def _thinned_to(self, table: str) -> int:
        rows = self._rows("select at from notices where worker_id = '-' and key = ?", [f"{table} thinned to"])
        return int(rows[0][0]) if rows else 0

    def _has_thinned(self, table: str, *, to: int) -> None:
        self._connection.execute(
            "insert or replace into notices (worker_id, key, at) values ('-', ?, ?)", (f"{table} thinned to", str(to))
        )

    def _first(self, table: str, number: str, at: str, since: datetime, *, behind: int = 0) -> int:
        """The number of the first row behind *behind* that is not older than *since*.

        The newest row where all are older: it stays, for SQLite would give its number away again.
        """
        first = f"select {number} from {table} where {number} > ? and {at} >= ? order by {number} limit 1"  # noqa: S608
        newest = f"select coalesce(max({number}), 1) from {table}"  # noqa: S608
        rows = self._rows(first, [behind, since.isoformat()]) or self._rows(newest)
        return int(rows[0][0])
