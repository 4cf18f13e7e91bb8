"""What the ledger keeps beside workers and renewals: handoffs, readings, events, notices and breakers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, JsonValue

from lifecycle.breaker import Breaker
from lifecycle.ledger_file import LedgerFile
from lifecycle.reading import ContextReading
from lifecycle.redaction import redact
from lifecycle.renewal import Quality
from lifecycle.value import Value


def _from_text(detail: object) -> object:
    return json.loads(detail) if isinstance(detail, str) else detail


def _redacted(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return redact(value)
        case list():
            return [_redacted(one) for one in value]
        case dict():
            return {name: _redacted(one) for name, one in value.items()}
        case _:
            return value


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


class Journal(LedgerFile):
    """The tables that only grow, and those that say what is known for now."""

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
        redacted = {name: _redacted(value) for name, value in detail.items()}
        # Half a surrogate pair, as a file name may hold one, can be written nowhere.
        text = json.dumps(redacted, ensure_ascii=False).encode("utf-8", "replace").decode()
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

    def unshown(self, *, since: datetime, limit: int = 1000) -> list[Event]:
        """Events that no process has marked as shown, oldest first; those before *since* only once one was marked."""
        rows = self._rows("select at from notices where worker_id = '-' and key = 'events shown'")
        found = self.events(after=int(rows[0][0]) if rows else 0, limit=limit)
        return found if rows else [event for event in found if event.at >= since]

    def mark_shown(self, event_id: int) -> None:
        """Everything up to *event_id* is shown."""
        with self.transaction():
            self._connection.execute(
                "insert into notices (worker_id, key, at) values ('-', 'events shown', ?) "
                "on conflict do update set at = max(cast(at as integer), cast(excluded.at as integer))",
                (str(event_id),),
            )

    def is_first_notice(self, worker_id: str, key: str, *, at: datetime) -> bool:
        """Whether *key* was not noticed of this worker yet; from now on it was."""
        with self.transaction():
            done = self._connection.execute(
                "insert or ignore into notices (worker_id, key, at) values (?, ?, ?)", (worker_id, key, at.isoformat())
            )
            return done.rowcount == 1

    def forget_notices(self, *worker_ids: str, passing: Iterable[str]) -> None:
        """Forget the workers' notices whose key begins with one of *passing*: what they told of is over."""
        over = (
            "from notices where worker_id in (select value from json_each(?)) and exists (select 1 from json_each(?) "
            "where substr(notices.key || ':', 1, length(value) + 1) = value || ':')"
        )
        named = json.dumps(worker_ids), json.dumps(list(passing))
        # Mostly there is none, and to find that out no other writer need wait.
        if self._rows(f"select 1 {over} limit 1", named):
            with self.transaction():
                self._connection.execute(f"delete {over}", named)

    def keep_untold(self, document: Mapping[str, str], *, at: datetime) -> None:
        """Keep a notice that reached nobody."""
        with self.transaction():
            self._connection.execute(
                "insert into untold (at, document) values (?, ?)", (at.isoformat(), json.dumps(document))
            )

    def untold(self) -> list[tuple[int, datetime, dict[str, str]]]:
        """The notices that reached nobody yet, with their number and time, oldest first."""
        rows = self._rows("select untold_id, at, document from untold order by untold_id")
        return [(number, datetime.fromisoformat(at), json.loads(document)) for number, at, document in rows]

    def forget_untold(self, number: int) -> None:
        with self.transaction():
            self._connection.execute("delete from untold where untold_id = ?", (number,))

    def stamp(self, what: str, *, at: datetime) -> None:
        """Remember when *what* happened last on this host."""
        with self.transaction():
            self._connection.execute(
                "insert or replace into notices (worker_id, key, at) values ('-', ?, ?)",
                (f"last {what}", at.isoformat()),
            )

    def stamped(self, what: str) -> datetime | None:
        """When *what* happened last on this host."""
        rows = self._rows("select at from notices where worker_id = '-' and key = ?", [f"last {what}"])
        return datetime.fromisoformat(rows[0][0]) if rows else None

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
