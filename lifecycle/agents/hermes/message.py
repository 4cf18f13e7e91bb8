"""Rows of the messages table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lifecycle.agents.hermes.database import Seconds, State
from lifecycle.foreign_text import encodable
from lifecycle.value import Value

JSON_PREFIX = "\0json:"
"""Hermes stores content with several parts as this and JSON. SQL's length() stops at the NUL."""

IMAGE_TOKENS = 1_600
"""What Hermes itself reckons for an image (context_compressor._IMAGE_TOKEN_ESTIMATE); its bytes are no text."""

SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
"""How the row that stands for a compacted history begins, now and in earlier releases. Its role may be either."""

_MERGED_HEAD = "[PRIOR CONTEXT — for reference only; not a new message]"
_MERGED_SEAM = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"

SIGNALLED = "received signal "
"""The user row that a dying classic Hermes writes; what follows it nobody asked for."""

_SUMMARY_END = "--- END OF CONTEXT SUMMARY"

_OWN = ("[ASYNC DELEGATION", "[IMPORTANT: Background process", SIGNALLED)


class Message(Value):
    """One row. *text* is decoded; *live* rows are in the agent's context, *archived* ones were compacted away.

    A row that is neither was undone by the person.
    """

    row_id: int
    session_id: str
    role: str
    text: str
    at: Seconds
    finish_reason: str | None = None
    calls_tools: bool = False
    live: bool = True
    archived: bool = False

    @property
    def is_summary(self) -> bool:
        return self.text.startswith(SUMMARIES) or self.text.startswith(_MERGED_HEAD)

    @property
    def is_hermes_own(self) -> bool:
        """A user row that no person and no Afresh wrote."""
        return self.role == "user" and self.text.startswith(_OWN)

    @property
    def is_closed_answer(self) -> bool:
        """Ends a turn: an assistant's words with no tool call behind them."""
        return (
            self.role == "assistant"
            and self.finish_reason != "tool_calls"
            and not self.calls_tools
            and bool(self.text.strip())
            and not self.is_summary
        )

    def says(self, text: str) -> bool:
        """Whether the row holds exactly *text*, ends stripped, also where a summary was merged into the row."""
        mine = self.text
        if mine.startswith(_MERGED_HEAD):
            mine = mine.removeprefix(_MERGED_HEAD).partition(_MERGED_SEAM)[0]
        return mine.strip() == text.strip()


def live_condition(state: State) -> str:
    """SQL that holds for rows in the agent's context: NULL, or no such column, counts as live."""
    return "coalesce(messages.active, 1) <> 0" if "active" in state.columns("messages") else "1"


def summary_condition() -> str:
    """SQL that holds for rows that stand for a compacted history, as `Message.is_summary`."""
    starts = (*SUMMARIES, _MERGED_HEAD)
    whole = " OR ".join(f"substr(content, 1, {len(start)}) = '{start}'" for start in starts)
    # One comparison decides of nearly every row, which takes a quarter off a pass over a session.
    return f"(substr(content, 1, 1) = '{starts[0][0]}' AND ({whole}))"


def read_messages(state: State, condition: str, *parameters: str | float | None, tail: str = "") -> list[Message]:
    """The messages that meet the SQL *condition*, by row id: Hermes's own order, for its clock may step back."""
    live = live_condition(state)
    picked = ", ".join(
        state.column("messages", name, default)
        for name, default in (
            ("content", "''"),
            ("finish_reason", "NULL"),
            ("tool_calls", "''"),
            ("compacted", "0"),
        )
    )
    sql = (
        f"SELECT messages.id, messages.session_id, messages.role, messages.timestamp, {live}, {picked} "  # noqa: S608
        f"FROM messages WHERE {condition} {tail or 'ORDER BY messages.id'}"
    )
    found = [
        Message(
            row_id=row_id,
            session_id=session_id,
            role=role,
            text=plain_text(content),
            at=at,
            finish_reason=finish_reason,
            calls_tools=tool_calls not in ("", "[]", "null"),
            live=bool(is_live),
            archived=not is_live and bool(compacted),
        )
        for row_id, session_id, role, at, is_live, content, finish_reason, tool_calls, compacted in state.rows(
            sql, *parameters
        )
    ]
    return sorted(found, key=lambda message: message.row_id)


def unframed(text: str) -> str:
    """A summary's own words: without the line above them that tells the model not to act on them, and the one below.

    Every framing that Hermes ever wrote is a single line (`SUMMARY_PREFIX` and those before it).
    """
    text = text.partition(_MERGED_SEAM)[2].strip() if text.startswith(_MERGED_HEAD) else text.strip()
    if text.startswith(SUMMARIES[1]):
        text = text.removeprefix(SUMMARIES[1])
    elif text.startswith(SUMMARIES[0]):
        text = text.partition("\n")[2]
    return text.partition(_SUMMARY_END)[0].strip()


def plain_text(content: object) -> str:
    """The words of a content column, without images and other parts."""
    return "\n".join(words for part in parts(content) if (words := _words(part)))


def parts(content: object) -> list[Any]:
    """A content column as the list of its parts, strings or what the JSON holds."""
    if isinstance(content, bytes):
        content = content.decode("utf-8", "replace")
    if content is None or not isinstance(content, str):
        return [] if content is None else [str(content)]
    if not content.startswith(JSON_PREFIX):
        return [content]
    try:
        found = json.loads(content.removeprefix(JSON_PREFIX))
    except (ValueError, RecursionError):
        return [content.removeprefix(JSON_PREFIX)]
    return found if isinstance(found, list) else [found]


class Called(Value):
    """A call of a tool as its row names it. *arguments* are JSON, as the agent wrote them."""

    call_id: str
    name: str
    arguments: str


def calls_of(tool_calls: str | None) -> Iterator[Called]:
    """The calls of a row; none where it is no list of calls."""
    try:
        entries: Any = json.loads(tool_calls or "[]")
    except (ValueError, RecursionError):
        return
    for entry in entries if isinstance(entries, list) else []:
        function = entry.get("function") if isinstance(entry, dict) else None
        if isinstance(function, dict):
            given = function.get("arguments")
            text = given if isinstance(given, str) else json.dumps(given or {})
            yield Called(
                call_id=str(entry.get("id")), name=encodable(str(function.get("name"))), arguments=encodable(text)
            )


def is_image(part: object) -> bool:
    return isinstance(part, dict) and "image" in str(part.get("type", ""))


def _words(part: object) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) else None
    return encodable(text) if isinstance(text, str) else ""
