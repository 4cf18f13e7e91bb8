"""Where the current turn of a worker stands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from lifecycle.agents.hermes.database import State, open_state
from lifecycle.agents.hermes.message import SIGNALLED, Message, live_condition, read_messages
from lifecycle.agents.hermes.session import Session, chain, current_session, newest_row, open_sessions
from lifecycle.transcript import TurnState

QUIET_BACKGROUND = timedelta(minutes=10)
"""A `/background` session is never ended; one that wrote nothing for so long is taken for failed."""


def turn(profile: Path, worker_id: str, *, since: datetime | None, now: datetime) -> TurnState:
    """Where the current session stands; an empty state where there is none.

    Raises:
        ContextUnreadable
    """
    with open_state(profile, worker_id) as state:
        session = current_session(state, since) if state else None
        if state is None or session is None:
            return TurnState()
        newest = _live(state, session, "messages.id = ?", newest_row(state, session.session_id))
        last = newest[0] if newest else None
        rests_until, failed_summaries = _compaction_troubles(state, session)
        return TurnState(
            session_id=session.session_id,
            newest_row=last.row_id if last else 0,
            newest_at=datetime.fromtimestamp(last.at, UTC) if last else None,
            last_role=last.role if last else None,
            answered=_is_answered(state, session),
            compacting=_is_compacting(state, session, now),
            delegating=_is_delegating(state, session, since, now),
            compaction_rests_until=rests_until,
            failed_summaries=failed_summaries,
        )


def _is_answered(state: State, session: Session) -> bool:
    asked = _asked(state, session, 1) or _asked(state, session, 20)
    if not asked:
        return True
    return any(
        message.is_closed_answer
        for message in _live(state, session, "messages.role = 'assistant' AND messages.id > ?", asked[-1].row_id)
    )


def _asked(state: State, session: Session, newest: int) -> list[Message]:
    """Those of the session's *newest* user rows that somebody wrote.

    They are looked for backwards, from the newest row to the session's first: with its index SQLite would read and
    sort all its rows, and the plus keeps it from that.
    """
    condition = (
        f"+messages.session_id = ? AND {live_condition(state)} AND messages.role = 'user' AND messages.id BETWEEN "  # noqa: S608
        "(SELECT min(id) FROM messages WHERE session_id = ?) AND ?"
    )
    given = session.session_id, session.session_id, newest_row(state, session.session_id)
    users = read_messages(state, condition, *given, tail=f"ORDER BY messages.id DESC LIMIT {newest}")
    return [user for user in users if not user.is_summary and not user.text.startswith(SIGNALLED)]


def _is_compacting(state: State, session: Session, now: datetime) -> bool:
    """A lock is a lease: what has expired is free, whoever held it (Q3)."""
    if not state.columns("compression_locks"):
        return False
    locked = state.rows("SELECT session_id FROM compression_locks WHERE expires_at >= ?", now.timestamp())
    links = {link.session_id for link in chain(state, session)}
    return any(session_id in links for (session_id,) in locked)


def _compaction_troubles(state: State, session: Session) -> tuple[datetime | None, int]:
    """How long Hermes rests after a compaction that failed, and how many summaries in a row did; beside the session."""
    names = ("compression_failure_cooldown_until", "compression_fallback_streak")
    columns = ", ".join(state.column("sessions", name) for name in names)
    row = state.first(f"SELECT {columns} FROM sessions WHERE id = ?", session.session_id)  # noqa: S608
    until, streak = row or (None, None)
    return datetime.fromtimestamp(float(until), UTC) if until else None, int(streak or 0)


def _is_delegating(state: State, session: Session, since: datetime | None, now: datetime) -> bool:
    """A `kill -9` leaves such rows behind for ever, so those from before the agent's process do not count."""
    begun = since.timestamp() if since else 0.0
    if state.columns("async_delegations"):
        sql = "SELECT 1 FROM async_delegations WHERE state = 'running' AND dispatched_at >= ? LIMIT 1"
        if state.first(sql, begun):
            return True
    links = {link.session_id for link in chain(state, session)}
    for other in open_sessions(state):
        if other.last_seen < begun:
            continue
        if other.is_delegate and other.parent in links:
            return True
        is_fresh = now.timestamp() - other.last_seen < QUIET_BACKGROUND.total_seconds()
        if other.session_id.startswith("bg_") and is_fresh and not _is_answered(state, other):
            return True
    return False


def _live(state: State, session: Session, condition: str, *parameters: float) -> list[Message]:
    condition = f"messages.session_id = ? AND {live_condition(state)} AND {condition}"
    return read_messages(state, condition, session.session_id, *parameters)
