"""One look at a worker's database and log: what is known of its context before anything is counted."""

from __future__ import annotations

from pathlib import Path

from lifecycle.agents.hermes.counting import Batch, Weight, weights_since
from lifecycle.agents.hermes.database import State
from lifecycle.agents.hermes.figures import Extent, FigureBook, rewritten_at
from lifecycle.agents.hermes.log import LoggedCall, LogTail, read_log_tail
from lifecycle.agents.hermes.message import live_condition, read_messages
from lifecycle.agents.hermes.session import Session, chain
from lifecycle.billed import Billed
from lifecycle.value import Value

_NEAR = 60.0
_QUARTER = 900
_LONGEST_TOKEN = 16
"""No prompt of words has more characters than this for each of its tokens; a lower figure is no measurement."""


class Look(Value):
    """All that one look at database and log showed; counted afterwards, when the database is closed.

    *call* is the valid logged call, *newer* what the next prompt carries on top of it; *batch* is there when
    there is no such call.
    """

    session: Session
    conversation_id: str
    billed: Billed
    compactions: int
    extent: Extent
    tail: LogTail
    call: LoggedCall | None = None
    newer: tuple[Weight, ...] = ()
    batch: Batch | None = None


def look_at(state: State, session: Session, profile: Path, book: FigureBook) -> Look:
    links = chain(state, session)
    own, *earlier = (book.figures(state, link.session_id) for link in reversed(links))
    tail = read_log_tail(profile, session.session_id, begun=links[0].started_at)
    look = Look(
        session=session,
        conversation_id=links[0].session_id,
        billed=session.billed.model_copy(update={"messages": own.token_count}),
        # Each compaction left one summary row, and one by rotation a session.
        compactions=max(sum(one.summaries for one in (own, *earlier)), len(links) - 1),
        extent=own.extent,
        tail=tail,
    )
    call = _settled(state, session, tail.call) if tail.call else None
    if call is None or not _is_credible(session, call) or call.at < rewritten_at(state, session.session_id, own):
        return look
    return look.model_copy(update={"call": call, "newer": tuple(_newer(state, session, call))})


def _newer(state: State, session: Session, call: LoggedCall) -> list[Weight]:
    """What the next prompt carries on top of the logged one: the answer to it, tool results, what was typed since.

    A closed answer with nothing behind it opens no next call, so until then the figure is Hermes's own,
    the one in its status bar.
    """
    newer = weights_since(state, session.session_id, call.at)
    return [] if len(newer) == 1 and _brought_an_answer(state, session, call) else newer


def _brought_an_answer(state: State, session: Session, call: LoggedCall) -> bool:
    """Whether the first row behind the logged call is a closed answer."""
    live = live_condition(state)
    condition = f"messages.session_id = ? AND {live} AND messages.timestamp > ?"
    # The plus keeps SQLite from walking all rows by id: few are newer than the call.
    first = read_messages(state, condition, session.session_id, call.at, tail="ORDER BY +messages.id LIMIT 1")
    return bool(first) and first[0].is_closed_answer


def _settled(state: State, session: Session, call: LoggedCall) -> LoggedCall:
    """Put the call on our clock. Hermes logs its own local time and no zone; zones differ by whole quarters of an hour.

    A call's answer is written within moments of its line, so a line without a row near it was logged in another zone.
    """
    if _has_row_near(state, session, call.at):
        return call
    newest = state.first(
        "SELECT max(timestamp) FROM messages WHERE session_id = ? AND role = 'assistant'", session.session_id
    )
    if newest is None or newest[0] is None:
        return call
    at = call.at + _QUARTER * round((newest[0] - call.at) / _QUARTER)
    return call.model_copy(update={"at": at}) if _has_row_near(state, session, at) else call


def _has_row_near(state: State, session: Session, at: float) -> bool:
    sql = "SELECT 1 FROM messages WHERE session_id = ? AND timestamp BETWEEN ? AND ? LIMIT 1"
    return state.first(sql, session.session_id, at - _NEAR, at + _NEAR) is not None


def _is_credible(session: Session, call: LoggedCall) -> bool:
    """Some providers report a prompt of 6 or 13 tokens (hermes-agent #94897); the system prompt alone is more."""
    return call.prompt > session.prompt_length // _LONGEST_TOKEN
