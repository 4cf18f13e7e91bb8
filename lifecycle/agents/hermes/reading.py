"""Measuring a worker's context: how many tokens its next call will carry."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from lifecycle.agents.hermes.configuration import ModelSetup, read_setup
from lifecycle.agents.hermes.counting import DEFAULT_OVERHEAD, Tally, read_weights
from lifecycle.agents.hermes.database import open_state
from lifecycle.agents.hermes.figures import FigureBook
from lifecycle.agents.hermes.look import Look, look_at
from lifecycle.agents.hermes.session import current_session
from lifecycle.agents.hermes.unchanged import Unchanged
from lifecycle.errors import ContextUnreadable
from lifecycle.reading import ContextReading, Source
from lifecycle.redaction import redact
from lifecycle.tokens import EncodingUnavailable, TokenCounter, byte_bound, counter


class ContextReader:
    """Reads contexts, and keeps what it counted, so that a poll counts only new rows. One per process is enough.

    *count* is for tests; else tiktoken counts, loaded at the first need.
    """

    def __init__(self, count: TokenCounter | None = None) -> None:
        self._given = count
        self._book = FigureBook()
        self._tally = Tally()
        self._unchanged = Unchanged[ContextReading]()

    def read(
        self,
        profile: Path,
        worker_id: str,
        *,
        since: datetime | None,
        now: datetime,
        overhead: int | None = None,
        known: ContextReading | None = None,
    ) -> ContextReading:
        """Measure the context. Never raises for what it finds: what cannot be read is `unknown`, with the reason.

        *since* is the start of the agent's process: a session not seen since then is not current.
        *overhead* is what `overhead` learned of this profile; it makes `counted` better, `api_log` needs none.
        """
        mark, reading = self._unchanged.found(
            profile,
            (worker_id, since, overhead),
            lambda: self._read(profile, worker_id, since=since, now=now, overhead=overhead, known=known),
            lasts=lambda reading: reading.error is None,
            known=(known.mark, known) if known is not None and known.mark else None,
        )
        return reading.model_copy(update={"at": now, "mark": mark, "asked_compactions": 0})

    def _read(
        self,
        profile: Path,
        worker_id: str,
        *,
        since: datetime | None,
        now: datetime,
        overhead: int | None,
        known: ContextReading | None,
    ) -> ContextReading:
        if known is not None and known.counted is not None and known.session_id is not None:
            self._tally.go_on_from(profile, known.session_id, known.counted)
        try:
            look = self._look(profile, worker_id, since)
        except ContextUnreadable as error:
            return ContextReading(worker_id=worker_id, at=now, error=error.detail)
        setup = read_setup(profile)
        if look is None:
            usable = setup.usable(window=None, max_tokens=None)
            point = setup.compaction_point(usable, window=None, logged=None)
            return ContextReading(worker_id=worker_id, at=now, model=setup.model, window=usable, compaction_point=point)
        tokens, source = self._measure(look, DEFAULT_OVERHEAD if overhead is None else overhead)
        reading = _reading(look, setup, worker_id=worker_id, now=now, tokens=tokens, source=source)
        # A bound is no count to go on from.
        counted = self._tally.counted(look.batch) if look.batch is not None and source is Source.COUNTED else None
        return reading.model_copy(update={"counted": counted})

    def overhead(self, profile: Path, worker_id: str, *, since: datetime | None) -> int | None:
        """What a call carries besides rows and system prompt, chiefly tool schemas, by the last exact reading.

        None where there is no exact reading, or no encoding. Cheapest and truest early in a session: it counts
        every row, and the error of the count is part of what is learned.

        Raises:
            ContextUnreadable
        """
        count, is_exact = self._counter
        with open_state(profile, worker_id) as state:
            session = current_session(state, since) if state else None
            if state is None or session is None:
                return None
            look = look_at(state, session, profile, self._book)
            call = look.call
            if call is None or not is_exact:
                return None
            batch = self._tally.batch(state, session.session_id, look.extent)
            newer = read_weights(state, session.session_id, "messages.timestamp > ?", call.at)
        in_prompt = self._tally.count(batch, count) - sum(weight.tokens(count) for weight in newer)
        return max(0, call.prompt - in_prompt)

    def _look(self, profile: Path, worker_id: str, since: datetime | None) -> Look | None:
        with open_state(profile, worker_id) as state:
            session = current_session(state, since) if state else None
            if state is None or session is None:
                return None
            look = look_at(state, session, profile, self._book)
            if look.call is not None:
                return look
            return look.model_copy(update={"batch": self._tally.batch(state, session.session_id, look.extent)})

    def _measure(self, look: Look, overhead: int) -> tuple[int, Source]:
        if look.call is not None:
            newer = sum(weight.tokens(self._counter[0]) for weight in look.newer) if look.newer else 0
            return look.call.prompt + newer, Source.API_LOG
        count, is_exact = self._counter
        counted = self._tally.count(look.batch, count) if look.batch else 0
        return counted + overhead, Source.COUNTED if is_exact else Source.BOUND

    @cached_property
    def _counter(self) -> tuple[TokenCounter, bool]:
        if self._given is not None:
            return self._given, True
        try:
            return counter(), True
        except EncodingUnavailable:
            return byte_bound, False


def _reading(
    look: Look, setup: ModelSetup, *, worker_id: str, now: datetime, tokens: int, source: Source
) -> ContextReading:
    session, tail = look.session, look.tail
    usable = setup.usable(window=tail.window, max_tokens=session.max_tokens)
    return ContextReading(
        worker_id=worker_id,
        at=now,
        session_id=session.session_id,
        conversation_id=look.conversation_id,
        session_open=session.is_open,
        model=session.model or setup.model,
        window=usable,
        compaction_point=setup.compaction_point(usable, window=tail.window, logged=tail.threshold),
        tokens=tokens,
        source=source,
        session_total=look.billed.total,
        billed=look.billed,
        title=redact(session.title) if session.title else None,
        compactions=look.compactions,
        api_calls=session.api_calls,
        started_at=datetime.fromtimestamp(session.started_at, UTC),
        last_activity_at=datetime.fromtimestamp(session.last_seen, UTC),
        newest_row=look.extent.last,
    )
