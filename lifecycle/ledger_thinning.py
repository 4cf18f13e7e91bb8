"""What the ledger lets go with time: readings and events. Workers, renewals and handoffs are kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from lifecycle.ledger_file import LedgerFile

WHOLE_FOR = timedelta(days=1)
"""Every reading is kept so long; of older ones the last of each hour."""

KEPT_FOR = timedelta(days=30)
"""So long readings and events are kept at all."""

_THINNED_TO = "readings thinned to"


class Thinning(LedgerFile):
    """Old rows go by their numbers, which rise with time: what was thinned before is not looked at again."""

    def thin(self, now: datetime) -> None:
        """Let go what is too old. Called once an hour it has an hour's rows to look at, however long the past is."""
        whole_from = (now - WHOLE_FOR).replace(minute=0, second=0, microsecond=0)
        with self.transaction():
            rows = self._rows("select at from notices where worker_id = '-' and key = ?", [_THINNED_TO])
            begin = int(rows[0][0]) if rows else 0
            end = self._first("readings", "reading_id", whole_from, behind=begin)
            among = "reading_id > ? and reading_id < ?"
            self._connection.execute(
                f"delete from readings where {among} and reading_id not in (select max(reading_id) from readings "  # noqa: S608
                f"where {among} group by worker_id, substr(at, 1, 13))",
                (begin, end, begin, end),
            )
            self._connection.execute(
                "insert or replace into notices (worker_id, key, at) values ('-', ?, ?)", (_THINNED_TO, str(end - 1))
            )
            for table, number in (("readings", "reading_id"), ("events", "event_id")):
                oldest = self._first(table, number, now - KEPT_FOR)
                self._connection.execute(f"delete from {table} where {number} < ?", (oldest,))  # noqa: S608

    def _first(self, table: str, number: str, since: datetime, *, behind: int = 0) -> int:
        """The number of the first row behind *behind* that is not older than *since*.

        The newest row where all are older: it stays, for SQLite would give its number away again.
        """
        first = f"select {number} from {table} where {number} > ? and at >= ? order by {number} limit 1"  # noqa: S608
        newest = f"select coalesce(max({number}), 1) from {table}"  # noqa: S608
        rows = self._rows(first, [behind, since.isoformat()]) or self._rows(newest)
        return int(rows[0][0])
