"""Which of the sessions in a state.db is the worker's current one."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from lifecycle.agents.hermes.configuration import MOST_TOKENS
from lifecycle.agents.hermes.database import Seconds, State
from lifecycle.agents.hermes.message import live_condition
from lifecycle.billed import Billed
from lifecycle.value import Value

_FACES = ("cli", "tui")
_LONGEST_CHAIN = 100
_COUNTERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


class Session(Value):
    """One row of the sessions table. *last_seen* is its start or its newest message, seconds since the epoch.

    *prompt_length* is that of its system prompt, in characters.
    """

    session_id: str
    source: str
    parent: str | None
    started_at: Seconds
    ended_at: float | None
    end_reason: str | None
    model: str | None
    title: str | None
    api_calls: int
    billed: Billed
    max_tokens: int | None
    is_delegate: bool
    is_branch: bool
    last_seen: Seconds
    prompt_length: int

    @property
    def is_main(self) -> bool:
        """Someone typed in it: neither a delegate, nor a `/background` turn, nor a gateway's or cron's."""
        return self.source in _FACES and not self.is_delegate and not self.session_id.startswith("bg_")

    @property
    def is_open(self) -> bool:
        return self.ended_at is None


def current_session(state: State, since: datetime | None) -> Session | None:
    """The session that the worker talks in, None before its first message.

    Among open ones the newest last seen, never the newest begun: a delegate, a `/background` turn or a
    resumed older session would hide the real one (W-4). A `kill -9` leaves sessions open for ever, so with
    *since*, the start of the agent's process, only a session seen since then counts. Without *since* the
    worker may be down: then the newest ended session is shown, ended.
    """
    sessions = [session for session in _read(state, "sessions.ended_at IS NULL") if session.is_main]
    if since is not None:
        sessions = [session for session in sessions if session.last_seen >= since.timestamp()]
    if not sessions:
        sessions = [session for session in _read(state, "sessions.ended_at IS NOT NULL") if _stands_for(session, since)]
    last = max((session.last_seen for session in sessions), default=0.0)
    newest = [session for session in sessions if session.last_seen == last]
    if len(newest) > 1:
        newest.sort(key=lambda session: newest_row(state, session.session_id))
    return tip(state, newest[-1]) if newest else None


def newest_row(state: State, session_id: str) -> int:
    """The id of its newest live row, 0 where it has none.

    Looked for from the newest row of all, where that of a current session is: all its rows, by its index, are many.
    """
    live = live_condition(state)
    if state.first(f"SELECT 1 FROM messages WHERE session_id = ? AND {live} LIMIT 1", session_id) is None:  # noqa: S608
        return 0
    sql = f"SELECT id FROM messages WHERE +session_id = ? AND {live} ORDER BY id DESC LIMIT 1"  # noqa: S608
    row = state.first(sql, session_id)
    return row[0] if row else 0


def tip(state: State, session: Session) -> Session:
    """Follow a session that a compaction closed to the one that goes on with it."""
    for _ in range(_LONGEST_CHAIN):
        after = [child for child in children(state, session) if not child.is_delegate and not child.is_branch]
        if session.end_reason != "compression" or not after:
            break
        # Hermes's own order (hermes_state.get_compression_tip): compacted again, then alive, then the newest.
        session = max(after, key=lambda child: (child.end_reason == "compression", child.is_open, child.last_seen))
    return session


def chain(state: State, session: Session) -> list[Session]:
    """The sessions that compactions closed on the way to *session*, oldest first, and itself."""
    found = [session]
    while found[0].parent is not None and not found[0].is_branch and len(found) < _LONGEST_CHAIN:
        parent = find(state, found[0].parent)
        if parent is None or parent.end_reason != "compression" or parent in found:
            break
        found.insert(0, parent)
    return found


def find(state: State, session_id: str) -> Session | None:
    return next(iter(_read(state, "sessions.id = ?", session_id)), None)


def children(state: State, session: Session) -> list[Session]:
    if "parent_session_id" not in state.columns("sessions"):
        return []
    # Most have none, and a short question is understood in a tenth of the long one's time.
    if state.first("SELECT 1 FROM sessions WHERE parent_session_id = ?", session.session_id) is None:
        return []
    return _read(state, "sessions.parent_session_id = ?", session.session_id)


def open_sessions(state: State) -> list[Session]:
    return _read(state, "sessions.ended_at IS NULL")


def main_sessions(state: State) -> list[Session]:
    """All that someone typed in, over or not."""
    return [session for session in _read(state, "1") if session.is_main]


def _stands_for(session: Session, since: datetime | None) -> bool:
    if not session.is_main:
        return False
    # Between closing a session and opening the next, a compaction has nothing open (hermes-agent #80337).
    return since is None or (session.end_reason == "compression" and session.last_seen >= since.timestamp())


def _read(state: State, condition: str, *parameters: str) -> list[Session]:
    if "ended_at" not in state.columns("sessions"):
        condition = condition.replace("sessions.ended_at", "NULL")
    column = state.column
    counters = ", ".join(column("sessions", name, "0") for name in _COUNTERS)
    names = ("parent_session_id", "ended_at", "end_reason", "model", "model_config", "title")
    prompt = column("sessions", "system_prompt", "''").partition(" AS ")[0]
    sql = (
        f"SELECT sessions.id, {column('sessions', 'source', repr('cli'))}, sessions.started_at, "  # noqa: S608
        f"{', '.join(column('sessions', name) for name in names)}, "
        f"{column('sessions', 'api_call_count', '0')}, {counters}, "
        f"length({prompt}), (SELECT max(timestamp) FROM messages WHERE session_id = sessions.id) "
        f"FROM sessions WHERE {condition} ORDER BY sessions.started_at"
    )
    return [_session(row) for row in state.rows(sql, *parameters)]


def _session(row: tuple[Any, ...]) -> Session:
    session_id, source, started_at, parent, ended_at, end_reason, model, model_config, title, *counters = row
    api_calls, *tokens, prompt_length, last_message = counters
    settings = _settings(model_config)
    max_tokens = settings.get("max_tokens")
    return Session(
        session_id=session_id,
        source=source,
        parent=parent,
        started_at=started_at,
        ended_at=ended_at,
        end_reason=end_reason,
        model=model,
        title=title,
        api_calls=api_calls,
        billed=Billed(**dict(zip(("input", "output", "cache_read", "cache_write", "reasoning"), tokens, strict=True))),
        max_tokens=max_tokens if type(max_tokens) is int and 0 < max_tokens <= MOST_TOKENS else None,
        is_delegate=bool(settings.get("_delegate_from")),
        is_branch=bool(settings.get("_branched_from")),
        last_seen=max(started_at, last_message or 0.0),
        prompt_length=prompt_length,
    )


def _settings(model_config: str | None) -> dict[str, object]:
    try:
        found = json.loads(model_config or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
