"""How many tokens the rows of a session carry into the next call."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lifecycle.agents.hermes.database import State
from lifecycle.agents.hermes.figures import Extent
from lifecycle.agents.hermes.message import IMAGE_TOKENS, JSON_PREFIX, is_image, live_condition, parts
from lifecycle.reading import CountedRows
from lifecycle.tokens import TotalCounter
from lifecycle.value import Value

PER_MESSAGE = 4
"""Role and separators of one message (OpenAI's cookbook figure for its chat format)."""

DEFAULT_OVERHEAD = 13_000
"""The tool schemas, which the database does not hold: 28 tools of a default Hermes 0.19, 55,054 characters of JSON
at 4.2 characters a token. More tools, or servers of tools, weigh more: an exact reading teaches the real figure."""

_REASONING = ("reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items")
"""The same thoughts in the forms of several providers; one of them is sent (W-6)."""


@dataclass(frozen=True, slots=True)
class Weight:
    """What one row puts into a prompt: the texts to count, and images. No model: there is one for every row."""

    row_id: int
    texts: tuple[str, ...]
    images: int = 0

    @property
    def fixed(self) -> int:
        """Tokens that need no counting."""
        return self.images * IMAGE_TOKENS + PER_MESSAGE


def tokens_of(weights: Iterable[Weight], count: TotalCounter) -> int:
    weights = tuple(weights)
    texts = (text for weight in weights for text in weight.texts)
    return (count(texts) if weights else 0) + sum(weight.fixed for weight in weights)


def weights_behind(state: State, session_id: str, row_id: int) -> list[Weight]:
    """The live rows of the session behind that row, by their ids."""
    # By the index of sessions SQLite would read all its rows and sort them.
    return _read(state, "+messages.session_id = ? AND messages.id > ?", session_id, row_id)


def weights_since(state: State, session_id: str, at: float) -> list[Weight]:
    """The live rows of the session that were written after that time, by their ids."""
    return _read(state, "messages.session_id = ? AND messages.timestamp > ?", session_id, at)


def _read(state: State, condition: str, *parameters: str | float) -> list[Weight]:
    names = ("content", "api_content", "tool_calls", *_REASONING)
    columns = ", ".join(state.column("messages", name) for name in names)
    sql = (
        f"SELECT messages.id, {columns} FROM messages "  # noqa: S608
        f"WHERE {condition} AND {live_condition(state)} ORDER BY messages.id"
    )
    return [_weigh(*row) for row in state.rows(sql, *parameters)]


def _weigh(row_id: int, content: object, as_sent: object, *others: object) -> Weight:
    tool_calls, *reasoning = map(_as_text, others)
    # Memories and plugins add to what is sent; the sidecar is the text that really goes out.
    sent = as_sent or content
    if isinstance(sent, str) and not sent.startswith(JSON_PREFIX) and not tool_calls and not any(reasoning):
        return Weight(row_id=row_id, texts=(sent,) if sent else ())
    pieces = parts(sent)
    texts = [part if isinstance(part, str) else _plain(part) for part in pieces if not is_image(part)]
    thoughts = max((form for form in reasoning if form), key=len, default="")
    return Weight(
        row_id=row_id,
        texts=tuple(text for text in (*texts, tool_calls, thoughts) if text),
        images=sum(is_image(part) for part in pieces),
    )


def _as_text(column: object) -> str:
    """SQLite holds any value in any column."""
    if isinstance(column, bytes):
        return column.decode("utf-8", "replace")
    return "" if column is None else str(column)


def _plain(part: object) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else json.dumps(part)


class Batch(Value):
    """Rows still to be counted, on top of what was: *through* has the tokens of those, and reaches to the last row.

    Made while the database is open, counted after it is closed.
    """

    path: Path
    session_id: str
    through: CountedRows
    prompt: str
    weights: tuple[Weight, ...]


class Tally:
    """Counts each live row once in the life of this object, as long as no compaction or undo touched the session."""

    def __init__(self) -> None:
        self._counted: dict[tuple[Path, str], CountedRows] = {}

    def go_on_from(self, profile: Path, session_id: str, counted: CountedRows) -> None:
        """Take up what another process counted; what this one counted itself is as good."""
        self._counted.setdefault((profile / "state.db", session_id), counted)

    def batch(self, state: State, session_id: str, extent: Extent) -> Batch:
        seen = self._counted.get((state.path, session_id), CountedRows())
        through = CountedRows(
            inode=extent.inode,
            first=extent.first,
            last=extent.last,
            rows=extent.live,
            ids=extent.ids,
            tokens=seen.tokens,
        )
        weights = weights_behind(state, session_id, max(seen.last, extent.first - 1)) if extent.live else []
        if seen.rows and _with_more(seen, weights) != through:
            through = through.model_copy(update={"tokens": 0})
            weights = weights_behind(state, session_id, extent.first - 1) if extent.live else []
        system_prompt = state.column("sessions", "system_prompt", "''")
        prompt = state.first(f"SELECT {system_prompt} FROM sessions WHERE id = ?", session_id)  # noqa: S608
        return Batch(
            path=state.path,
            session_id=session_id,
            through=through,
            prompt=prompt[0] if prompt else "",
            weights=tuple(weights),
        )

    def count(self, batch: Batch, counter: TotalCounter) -> int:
        """Tokens of all live rows and the system prompt, without what the database does not hold."""
        rows = batch.through.tokens + tokens_of(batch.weights, counter)
        self._counted[batch.path, batch.session_id] = batch.through.model_copy(update={"tokens": rows})
        return rows + counter([batch.prompt])

    def counted(self, batch: Batch) -> CountedRows | None:
        """How far the count of this session went."""
        return self._counted.get((batch.path, batch.session_id))


def _with_more(seen: CountedRows, weights: list[Weight]) -> CountedRows:
    """With the rows behind the last one counted in."""
    if not weights:
        return seen
    ids = [weight.row_id for weight in weights]
    return seen.model_copy(update={"last": ids[-1], "rows": seen.rows + len(ids), "ids": seen.ids + sum(ids)})
