"""What was said and done in a session, in its order, as the agent's own rows hold it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Literal

from lifecycle.foreign_text import encodable
from lifecycle.transcript import ToolCall
from lifecycle.value import Value


class Entry(Value):
    """One message or one tool call. *row* is that of the message; calls of one message share it.

    A `call` entry has no words of its own, an `assistant` entry no call.
    """

    row: int
    at: datetime
    role: Literal["user", "assistant", "call"]
    text: str = ""
    call: ToolCall | None = None


class Todo(Value):
    """One item of the agent's own list that is neither completed nor cancelled."""

    content: str
    status: str


class Conversation(Value):
    """The session with those that a compaction closed before it, oldest first.

    Compacted rows are in it, once; undone rows, summaries and what the agent told itself are not. *summary* is the
    newest compaction summary without its framing.
    """

    session_id: str | None = None
    entries: tuple[Entry, ...] = ()
    summary: str = ""

    @property
    def requests(self) -> tuple[Entry, ...]:
        """The user rows, ours among them."""
        return tuple(entry for entry in self.entries if entry.role == "user")

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(entry.call for entry in self.entries if entry.call is not None)

    @property
    def todos(self) -> tuple[Todo, ...]:
        """The open items of the last list that the agent wrote."""
        written = [call for call in self.calls if call.name == "todo"]
        for call in reversed(written):
            items = _items(call.outcome) or _items(call.arguments)
            if items:
                return tuple(todo for item in items if (todo := _open(item)))
        return ()


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The call's arguments; empty where they are no JSON object."""
    return _object(call.arguments)


def exit_code(call: ToolCall) -> int | None:
    """How the command of *call* ended; None where its result does not say."""
    found = _object(call.outcome or "").get("exit_code")
    return found if type(found) is int else None


def _items(text: str | None) -> list[Any]:
    found = _object(text or "").get("todos")
    return found if isinstance(found, list) else []


def _open(item: object) -> Todo | None:
    if not isinstance(item, dict) or not item.get("content"):
        return None
    status = str(item.get("status") or "pending").strip().lower()
    closed = status in {"completed", "cancelled"}
    return None if closed else Todo(content=encodable(str(item["content"])), status=encodable(status))


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
