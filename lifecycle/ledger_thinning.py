"""What the ledger lets go with time: readings, events, and the texts of renewals. What happened is kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from lifecycle.collected import Collected, WorkTree
from lifecycle.errors import LedgerError
from lifecycle.ledger_file import LedgerFile
from lifecycle.renewal import Renewal
from lifecycle.value import SCHEMA

WHOLE_FOR = timedelta(days=1)
"""Every reading is kept so long; of older ones the last of each hour."""

KEPT_FOR = timedelta(days=30)
"""So long readings and events are kept at all, and renewals with every text that was sent and collected."""

AT_ONCE = 500
"""Renewals that one call thins at most: a ledger that never was must not keep other writers waiting."""


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
        """One that is still open keeps everything for ever: it may be taken up again."""
        begin = self._thinned_to("renewals")
        end = min(self._first("renewals", "rowid", "opened_at", now - KEPT_FOR, behind=begin), begin + 1 + AT_ONCE)
        ended = "select renewal_id, doc from renewals where rowid > ? and rowid < ? and end is not null"
        for renewal_id, doc in self._rows(ended, (begin, end)):
            try:
                kept = thinned(self._recalled(Renewal, renewal_id, doc))
            except LedgerError:
                continue  # it stays as it is; who asks for it is told that it cannot be read
            self._connection.execute(
                "update renewals set schema = ?, doc = ? where renewal_id = ?",
                (SCHEMA, kept.model_dump_json(exclude_defaults=True), renewal_id),
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


_OF_USE_WHILE_OPEN = (
    "launch", "delivery", "request", "correction", "given_text", "orders", "claimed", "stopping", "stopped", "running",
    "resume", "reminder",
)  # fmt: skip


def thinned(renewal: Renewal) -> Renewal:
    """What stays of an ended renewal: when and why it was, its figures, the checkpoints, and where its handoff is.

    What was typed, answered in full and collected goes: the archived handoff holds what crossed. Pure.
    """
    dropped = {name: Renewal.model_fields[name].default for name in _OF_USE_WHILE_OPEN}
    parsed, collected = renewal.parsed, renewal.collected
    said = {"answer": "", "draft_text": None, "banner": "", "identifiers": (), "supplement": ""}
    return renewal.model_copy(
        update={
            **dropped,
            "parsed": parsed and parsed.model_copy(update=said),
            # The snapshot of its work tree can be gone back to.
            "collected": collected and Collected(at=collected.at, git=collected.git and _bare(collected.git)),
        }
    )


def _bare(tree: WorkTree) -> WorkTree:
    return tree.model_copy(update={"dirty": (), "untracked": (), "left_out": 0, "not_stored": ()})
