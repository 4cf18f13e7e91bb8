"""Rows of a state.db that the agent no longer has in mind: compacted ones, and those of sessions that are over.

Never those that a person undid. Of a rotation, which copies rows into the next session, both are past.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from lifecycle.agents.hermes.database import State, open_state
from lifecycle.agents.hermes.message import SUMMARIES, calls_of, live_condition, plain_text
from lifecycle.agents.hermes.session import Session, current_session, main_sessions
from lifecycle.foreign_text import bounded
from lifecycle.past import PastMessage, PastSession
from lifecycle.prompts import is_ours

BATCH = 500
"""Rows of one look: the database is open no longer than they take to read."""

SAID, RETURNED, CALLED = (6_000, 2_000), (1_500, 500), 1_000
"""Characters that are kept of the two ends of what was said, of a tool's result, and of a call."""


def past_sessions(profile: Path, worker_id: str) -> tuple[PastSession, ...]:
    """The sessions that have rows which may be past, in the order in which they began.

    Raises:
        ContextUnreadable
    """
    with open_state(profile, worker_id) as state:
        if state is None:
            return ()
        current = current_session(state, None)
        found = [_past(state, session, current) for session in main_sessions(state)]
    return tuple(
        session for session in sorted(found, key=lambda one: (one.order, one.session_id)) if session.newest_row
    )


def past_messages(profile: Path, worker_id: str, session: PastSession, *, after_row: int) -> tuple[PastMessage, ...]:
    """The next `BATCH` past rows of *session* behind *after_row*, by row; none where there is nothing more.

    A row without words, a summary of others and what Afresh typed come as empty text.

    Raises:
        ContextUnreadable
    """
    with open_state(profile, worker_id) as state:
        if state is None:
            return ()
        columns = ", ".join(state.column("messages", name, "''") for name in ("content", "tool_calls"))
        past = _past_condition(state, is_over=session.is_over)
        sql = (
            f"SELECT messages.id, messages.role, messages.timestamp, {columns} FROM messages "  # noqa: S608
            f"WHERE messages.session_id = ? AND messages.id > ? AND ({past}) "
            f"ORDER BY messages.id LIMIT {BATCH}"
        )
        return tuple(
            PastMessage(
                row_id=row_id, role=role, at=datetime.fromtimestamp(at or 0, UTC), text=_text(role, content, calls)
            )
            for row_id, role, at, content, calls in list(state.rows(sql, session.session_id, after_row))
        )


def _past(state: State, session: Session, current: Session | None) -> PastSession:
    # The newest session of a worker that is down counts as current: it may be resumed with all it holds.
    is_over = current is None or session.session_id != current.session_id
    ended = "" if session.ended_at is None else repr(session.ended_at)
    sql = f"SELECT max(id) FROM messages WHERE session_id = ? AND ({_past_condition(state, is_over=is_over)})"  # noqa: S608
    newest = state.first(sql, session.session_id)
    return PastSession(
        session_id=session.session_id,
        mark=f"over:{ended}" if is_over else "",
        order=session.started_at,
        newest_row=int(newest[0] or 0) if newest else 0,
        is_over=is_over,
    )


def _past_condition(state: State, *, is_over: bool) -> str:
    columns = state.columns("messages")
    archived = f"messages.compacted = 1 AND NOT ({live_condition(state)})" if "compacted" in columns else "0"
    return f"({archived}) OR {live_condition(state)}" if is_over else archived


def _text(role: str, content: object, calls: str) -> str:
    words = plain_text(content)
    if words.startswith(SUMMARIES) or (role == "user" and is_ours(words)):
        return ""
    said = bounded(words, *(RETURNED if role == "tool" else SAID))
    return "\n".join(part for part in (said, *_called(calls)) if part.strip())


def _called(tool_calls: str) -> Iterable[str]:
    return (f"{call.name} {call.arguments[:CALLED]}" for call in calls_of(tool_calls))
