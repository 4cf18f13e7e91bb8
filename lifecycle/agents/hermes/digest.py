"""What a session's rows say by themselves: requests, tool calls with their outcomes, the last words."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from lifecycle.agents.hermes.database import State, open_state
from lifecycle.agents.hermes.message import calls_of, live_condition, plain_text, read_messages
from lifecycle.agents.hermes.session import current_session
from lifecycle.foreign_text import encodable
from lifecycle.transcript import Digest, ToolCall

_WRITING = ("write_file", "patch")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete|Move) File: (.+)$", re.MULTILINE)


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
    found: list[ToolCall] = []
    newest: dict[str, int] = {}  # some models number their calls anew in every turn
    for role, tool_calls, call_id, content in state.rows(sql, session_id):
        if role == "assistant":
            for its_id, call in calls_in(tool_calls):
                newest[its_id] = len(found)
                found.append(call)
        elif role == "tool" and call_id in newest:
            place = newest[call_id]
            found[place] = found[place].model_copy(update={"outcome": plain_text(content)})
    return tuple(found)


def calls_in(tool_calls: str | None) -> list[tuple[str, ToolCall]]:
    """The calls of a row by their ids, with the files that they were to write."""
    return [
        (call.call_id, ToolCall(name=call.name, arguments=call.arguments, files=_files(call.name, call.arguments)))
        for call in calls_of(tool_calls)
    ]


def _files(name: str, arguments: str) -> tuple[str, ...]:
    """What the two tools that write files were to write; `patch` names its files in its text in one of its modes."""
    if name not in _WRITING:
        return ()
    try:
        given: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(given, dict):
        return ()
    patched = " -> ".join(_PATCHED.findall(str(given.get("patch") or ""))).split(" -> ")
    named = [given.get("path"), *patched]
    return tuple(encodable(path.strip()) for path in named if isinstance(path, str) and path.strip())
