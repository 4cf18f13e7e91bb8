"""Conversations for tests: what was said and done, in order."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from lifecycle.conversation import Conversation, Entry
from lifecycle.transcript import ToolCall

BEGAN = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def asked(text: str) -> dict[str, Any]:
    return {"role": "user", "text": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "text": text}


def called(tool: str, outcome: str | None = "{}", **arguments: Any) -> dict[str, Any]:
    files = (str(arguments["path"]),) if tool == "write_file" else ()
    call = ToolCall(name=tool, arguments=json.dumps(arguments, ensure_ascii=False), outcome=outcome, files=files)
    return {"role": "call", "call": call}


def conversation(*parts: dict[str, Any], summary: str = "") -> Conversation:
    """The parts a minute apart, in rows of their own that are numbered from 1."""
    entries = tuple(
        Entry(row=number, at=BEGAN + timedelta(minutes=number), **part) for number, part in enumerate(parts, start=1)
    )
    return Conversation(session_id="s1", entries=entries, summary=summary)
