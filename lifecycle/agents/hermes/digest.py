"""What a session's rows say by themselves: requests, tool calls with their outcomes, the last words."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from lifecycle.agents.hermes.database import State, open_state
from lifecycle.agents.hermes.message import live_condition, read_messages
from lifecycle.agents.hermes.session import current_session
from lifecycle.transcript import Digest, ToolCall


def digest(profile: Path, worker_id: str, *, since: datetime | None) -> Digest:
    """Read the current session; an empty digest where there is none.

    Raises:
        ContextUnreadable
    """
    with open_state(profile, worker_id) as state:
        session = current_session(state, since) if state else None
        if state is None or session is None:
            return Digest()
        rows = read_messages(state, f"messages.session_id = ? AND {live_condition(state)}", session.session_id)
        requests = [row.text for row in rows if row.role == "user" and not row.is_summary and not row.is_hermes_own]
        answers = [row.text for row in rows if row.role == "assistant" and row.text.strip() and not row.is_summary]
        return Digest(
            session_id=session.session_id,
            requests=tuple(requests),
            last_words=answers[-1] if answers else "",
            calls=_calls(state, session.session_id),
        )


def _calls(state: State, session_id: str) -> tuple[ToolCall, ...]:
    columns = ", ".join(state.column("messages", name, "NULL") for name in ("tool_calls", "tool_call_id", "content"))
    sql = (
        f"SELECT messages.role, {columns} FROM messages "  # noqa: S608 - column names of our own
        f"WHERE messages.session_id = ? AND {live_condition(state)} ORDER BY messages.id"
    )
    begun: dict[str, ToolCall] = {}
    for role, tool_calls, call_id, content in state.rows(sql, session_id):
        if role == "assistant":
            begun |= dict(_begun(tool_calls))
        elif role == "tool" and call_id in begun:
            begun[call_id] = begun[call_id].model_copy(update={"outcome": str(content or "")})
    return tuple(begun.values())


def _begun(tool_calls: str | None) -> list[tuple[str, ToolCall]]:
    try:
        entries: Any = json.loads(tool_calls or "[]")
    except (ValueError, RecursionError):
        return []
    found = []
    for entry in entries if isinstance(entries, list) else []:
        function = entry.get("function") if isinstance(entry, dict) else None
        if isinstance(function, dict):
            call = ToolCall(name=str(function.get("name")), arguments=str(function.get("arguments") or ""))
            found.append((str(entry.get("id")), call))
    return found
