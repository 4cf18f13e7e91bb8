"""A session's rows as one conversation, with what compactions archived and without what they copied."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from lifecycle.agents.hermes.database import State, open_state
from lifecycle.agents.hermes.digest import calls_in
from lifecycle.agents.hermes.message import Message, plain_text, read_messages, unframed
from lifecycle.agents.hermes.session import Session, chain, current_session
from lifecycle.agents.hermes.transcript import rewritten
from lifecycle.conversation import Conversation, Entry
from lifecycle.transcript import ToolCall


def conversation(profile: Path, worker_id: str, *, since: datetime | None) -> Conversation:
    """Read the current session and those it goes on from; an empty conversation where there is none.

    Raises:
        ContextUnreadable
    """
    with open_state(profile, worker_id) as state:
        session = current_session(state, since) if state else None
        if state is None or session is None:
            return Conversation()
        messages = [message for link in chain(state, session) for message in _lived(state, link)]
        raw = _raw_calls(state, {message.session_id for message in messages})
        messages = _without_copies(messages, raw)
        summaries = [message.text for message in messages if message.is_summary]
        return Conversation(
            session_id=session.session_id,
            entries=tuple(_entries(messages, raw)),
            summary=unframed(summaries[-1]) if summaries else "",
        )


def _lived(state: State, session: Session) -> list[Message]:
    """All rows but the undone ones."""
    rows = read_messages(state, "messages.session_id = ?", session.session_id)
    return [row for row in rows if row.live or row.archived]


class _Raw:
    """The columns of one row that make its tool calls."""

    def __init__(self, tool_calls: str | None, call_id: str | None, content: object) -> None:
        self.begun = calls_in(tool_calls)
        self.call_id = call_id
        self.content = content


def _raw_calls(state: State, session_ids: Iterable[str]) -> dict[int, _Raw]:
    columns = ", ".join(state.column("messages", name, "NULL") for name in ("tool_calls", "tool_call_id", "content"))
    found = {}
    for session_id in session_ids:
        sql = (
            f"SELECT messages.id, {columns} FROM messages WHERE messages.session_id = ? "  # noqa: S608
            "AND (messages.role = 'tool' OR messages.tool_calls IS NOT NULL)"
        )
        for row_id, tool_calls, call_id, content in state.rows(sql, session_id):
            found[row_id] = _Raw(tool_calls, call_id, content)
    return found


def _without_copies(messages: list[Message], raw: dict[int, _Raw]) -> list[Message]:
    """Of the rows that a compaction wrote anew only those whose original is gone (hermes-agent #86366)."""
    marks = rewritten(messages, set())
    seen: set[tuple[object, ...]] = set()
    kept = []
    for message, is_rewritten in zip(messages, marks, strict=True):
        key = _key(message, raw.get(message.row_id))
        if not is_rewritten or message.is_summary or key not in seen:
            kept.append(message)
        seen.add(key)
    return kept


def _key(message: Message, raw: _Raw | None) -> tuple[object, ...]:
    """What a copy shares with its original: a compaction may shorten old results and arguments."""
    if raw is not None and raw.call_id:
        return ("result", raw.call_id)
    if raw is not None and raw.begun:
        return ("calls", tuple(call_id for call_id, _ in raw.begun))
    return (message.role, message.text)


def _entries(messages: list[Message], raw: dict[int, _Raw]) -> list[Entry]:
    found: list[Entry] = []
    newest: dict[str, int] = {}  # some models number their calls anew in every turn
    for message in messages:
        at = datetime.fromtimestamp(message.at, UTC)
        held = raw.get(message.row_id)
        if message.role == "tool":
            if held is not None and held.call_id in newest:
                place = newest[held.call_id]
                found[place] = _ended(found[place], plain_text(held.content))
            continue
        if message.is_summary or message.is_hermes_own:
            continue
        if message.text.strip() and message.role in ("user", "assistant"):
            role = "user" if message.role == "user" else "assistant"
            found.append(Entry(row=message.row_id, at=at, role=role, text=message.text))
        for call_id, call in held.begun if held is not None else ():
            newest[call_id] = len(found)
            found.append(Entry(row=message.row_id, at=at, role="call", call=call))
    return found


def _ended(entry: Entry, outcome: str) -> Entry:
    call: ToolCall | None = entry.call
    return entry if call is None else entry.model_copy(update={"call": call.model_copy(update={"outcome": outcome})})
