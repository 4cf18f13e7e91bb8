"""Measuring a worker's context: how many tokens its next call will carry."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from lifecycle.agents.hermes.configuration import ModelSetup, read_setup
from lifecycle.agents.hermes.counting import DEFAULT_OVERHEAD, Tally, tokens_of, weights_since
from lifecycle.agents.hermes.database import open_state
from lifecycle.agents.hermes.figures import FigureBook
from lifecycle.agents.hermes.look import Look, look_at
from lifecycle.agents.hermes.session import current_session
from lifecycle.agents.hermes.unchanged import Question, Unchanged
from lifecycle.errors import ContextUnreadable
from lifecycle.reading import Asked, ContextReading, Source
from lifecycle.redaction import redact
from lifecycle.tokens import EncodingUnavailable, TokenCounter, TotalCounter, byte_bound, total_counter

AHEAD = 8
"""So many contexts may wait to be counted while others are read; each holds its rows, some 2 MB at most."""


@dataclass(frozen=True)
class _Uncounted:
    """What was read of a context whose tokens are still to be counted."""

    asked: Asked
    question: Question[ContextReading]
    look: Look
    setup: ModelSetup


class _Counting(NamedTuple):
    asked: Asked
    counting: Future[ContextReading]


_Begun = ContextReading | _Counting


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
        """Measure the context. Never raises for what it finds: what cannot be read is `unknown`, with the reason."""
        found = self._looked(
            Asked(profile=profile, worker_id=worker_id, since=since, overhead=overhead, known=known), now
        )
        return found if isinstance(found, ContextReading) else self._counted(found, now)

    def read_each(self, asked: Iterable[Asked], now: datetime) -> Iterator[ContextReading]:
        """As `read`, in the order in which they are asked. What must be counted is counted while others are read.

        One thread counts and none reads: SQLite lets go of the interpreter at each row, so that two readers in one
        process take longer than one.
        """
        with ThreadPoolExecutor(1, thread_name_prefix="counting") as pool:
            waiting: deque[_Begun] = deque()
            for one in asked:
                found = self._looked(one, now)
                waiting.append(
                    found
                    if isinstance(found, ContextReading)
                    else _Counting(one, pool.submit(self._counted, found, now))
                )
                while waiting and (_is_done(waiting[0]) or _uncounted(waiting) > AHEAD):
                    yield _result(waiting.popleft(), now)
            yield from (_result(found, now) for found in waiting)

    def _looked(self, asked: Asked, now: datetime) -> ContextReading | _Uncounted:
        """The reading, where nothing is to be counted for it."""
        known, profile = asked.known, asked.profile
        question = self._unchanged.question(
            profile,
            (asked.worker_id, asked.since, asked.overhead),
            known=(known.mark, known) if known is not None and known.mark else None,
        )
        if question.found is not None:
            return question.found.model_copy(update={"at": now, "mark": question.mark, "asked_compactions": 0})
        if known is not None and known.counted is not None and known.session_id is not None:
            self._tally.go_on_from(profile, known.session_id, known.counted)
        try:
            look = self._look(profile, asked.worker_id, asked.since)
        except ContextUnreadable as error:
            self._unchanged.keep(question, ContextReading(worker_id=asked.worker_id, at=now), lasts=False)
            return ContextReading(worker_id=asked.worker_id, at=now, error=error.detail)
        setup = read_setup(profile)
        if look is None:
            usable = setup.usable(window=None, max_tokens=None)
            point = setup.compaction_point(usable, window=None, logged=None)
            reading = ContextReading(
                worker_id=asked.worker_id, at=now, model=setup.model, window=usable, compaction_point=point
            )
            return self._kept(question, reading)
        found = _Uncounted(asked, question, look, setup)
        return self._counted(found, now) if look.call is not None and not look.newer else found

    def _counted(self, found: _Uncounted, now: datetime) -> ContextReading:
        asked, look = found.asked, found.look
        tokens, source = self._measure(look, DEFAULT_OVERHEAD if asked.overhead is None else asked.overhead)
        reading = _reading(look, found.setup, worker_id=asked.worker_id, now=now, tokens=tokens, source=source)
        # A bound is no count to go on from.
        counted = self._tally.counted(look.batch) if look.batch is not None and source is Source.COUNTED else None
        return self._kept(found.question, reading.model_copy(update={"counted": counted}))

    def _kept(self, question: Question[ContextReading], reading: ContextReading) -> ContextReading:
        return reading.model_copy(update={"mark": self._unchanged.keep(question, reading, lasts=True)})

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
            newer = weights_since(state, session.session_id, call.at)
        in_prompt = self._tally.count(batch, count) - tokens_of(newer, count)
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
            newer = tokens_of(look.newer, self._counter[0]) if look.newer else 0
            return look.call.prompt + newer, Source.API_LOG
        count, is_exact = self._counter
        counted = self._tally.count(look.batch, count) if look.batch else 0
        return counted + overhead, Source.COUNTED if is_exact else Source.BOUND

    @cached_property
    def _counter(self) -> tuple[TotalCounter, bool]:
        if self._given is not None:
            return partial(_sum, self._given), True
        try:
            return total_counter(), True
        except EncodingUnavailable:
            return partial(_sum, byte_bound), False


def _sum(count: TokenCounter, texts: Iterable[str]) -> int:
    return sum(map(count, texts))


def _result(found: _Begun, now: datetime) -> ContextReading:
    if isinstance(found, ContextReading):
        return found
    error = found.counting.exception()
    if error is None:
        return found.counting.result()
    # What one worker's rows do to a tokenizer ends no look at the others.
    said = str(error).partition("\n")[0]
    return ContextReading(worker_id=found.asked.worker_id, at=now, error=f"its rows cannot be counted ({said})")


def _is_done(found: _Begun) -> bool:
    return isinstance(found, ContextReading) or found.counting.done()


def _uncounted(waiting: Iterable[_Begun]) -> int:
    return sum(not _is_done(found) for found in waiting)


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
