"""One look at a worker's database and log: what is known of its context before anything is counted."""

from __future__ import annotations

from pathlib import Path

from lifecycle.agents.hermes.counting import Batch, Weight, read_weights
from lifecycle.agents.hermes.database import State
from lifecycle.agents.hermes.log import LoggedCall, LogTail, read_log_tail
from lifecycle.agents.hermes.message import Message, live_condition, read_messages, summary_condition
from lifecycle.agents.hermes.session import Session, billed, chain, compactions
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
    billed: Billed
    compactions: int
    tail: LogTail
    call: LoggedCall | None = None
    newer: tuple[Weight, ...] = ()
    batch: Batch | None = None


def look_at(state: State, session: Session, profile: Path) -> Look:
    tail = read_log_tail(profile, session.session_id, begun=chain(state, session)[0].started_at)
    look = Look(
        session=session,
        billed=billed(state, session),
        compactions=compactions(state, chain(state, session)),
        tail=tail,
    )
    call = _settled(state, session, tail.call) if tail.call else None
    if call is None or not _is_credible(state, session, call) or call.at < _compacted_at(state, session):
        return look
    return look.model_copy(update={"call": call, "newer": tuple(_newer(state, session, call))})


def _newer(state: State, session: Session, call: LoggedCall) -> list[Weight]:
    """What the next prompt carries on top of the logged one: the answer to it, tool results, what was typed since.

    A closed answer with nothing behind it opens no next call, so until then the figure is Hermes's own,
    the one in its status bar.
    """
    newer = read_weights(state, session.session_id, "messages.timestamp > ?", call.at)
    answer = _answer(state, session, call)
    return [] if answer and [weight.row_id for weight in newer] == [answer.row_id] else newer


def _answer(state: State, session: Session, call: LoggedCall) -> Message | None:
    """The closed answer that the logged call brought."""
    live = live_condition(state)
    condition = f"messages.session_id = ? AND {live} AND messages.timestamp > ?"
    first = read_messages(state, condition, session.session_id, call.at, tail="ORDER BY messages.id LIMIT 1")
    return first[0] if first and first[0].is_closed_answer else None


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


def _compacted_at(state: State, session: Session) -> float:
    """When the live rows were last rewritten by a compaction; 0 where they never were.

    It stamps the rows that it keeps anew, except those of a resumed session; the summary is always new.
    """
    live = live_condition(state)
    row = state.first(
        f"SELECT max(timestamp) FROM messages WHERE session_id = ? AND {live} AND {summary_condition()}",  # noqa: S608
        session.session_id,
    )
    if (row and row[0]) or "compacted" not in state.columns("messages"):
        return float(row[0] or 0.0) if row else 0.0
    # A summary that begins in a way of a later release: the first row that was written anew is as good.
    row = state.first(
        f"SELECT min(timestamp) FROM messages WHERE session_id = ?1 AND {live} AND id > "  # noqa: S608
        f"(SELECT max(id) FROM messages WHERE session_id = ?1 AND compacted = 1 AND NOT ({live}))",
        session.session_id,
    )
    return float(row[0] or 0.0) if row else 0.0


def _is_credible(state: State, session: Session, call: LoggedCall) -> bool:
    """Some providers report a prompt of 6 or 13 tokens (hermes-agent #94897); the system prompt alone is more."""
    column = state.column("sessions", "system_prompt", "''").partition(" AS ")[0]
    length = state.first(f"SELECT length({column}) FROM sessions WHERE id = ?", session.session_id)  # noqa: S608
    return call.prompt > (length[0] if length else 0) // _LONGEST_TOKEN
