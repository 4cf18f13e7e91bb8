"""A session as its rows, in a real state.db: what was said, tool calls, noise, undone rows, compactions."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from lifecycle.tokens import counter
from tests.lifecycle.hermes.hermes_profile import EPOCH, MAIN, SUMMARY, Profile

_COLUMNS = (
    "session_id, role, content, tool_calls, tool_call_id, finish_reason, active, compacted, timestamp"  # as Hermes's
)
BLOCK = 1_200
"""Tokens of one text of noise."""

_NOISE = {
    "en": "the parser reads another page and the queue is drained again while the cache stays warm for a while so that "
    "nothing of it matters later and the next page looks like the one before it",
    "zh": "解析器又读了一页 队列再次清空 缓存仍然有效 这些内容以后都不重要 下一页和上一页看起来差不多 没有新的发现",
}

_COMMANDS = (
    "grep -n page vendor/list_{number:03d}",
    "cat vendor/list_{number:03d} | head -80",
    "sed -n 1,80p vendor/page_{number:03d}.txt",
    "python tools/show_page.py {number}",
)
"""Three looks, and one that nobody can know for a look."""


class Row:
    """One row of `messages`."""

    def __init__(self, role: str, content: str | None, **columns: Any) -> None:
        self.role, self.content, self.columns = role, content, columns

    @property
    def words(self) -> str:
        return "\n".join(filter(None, (self.content, self.columns.get("tool_calls"))))


class Session:
    """Rows in their order. Every call gets an id of its own, as a model's calls have."""

    def __init__(self, seed: int) -> None:
        self.rows: list[Row] = []
        self._chance = random.Random(seed)  # noqa: S311 - no secret

    def ask(self, text: str, **columns: Any) -> None:
        self.rows.append(Row("user", text, **columns))

    def say(self, text: str) -> None:
        self.rows.append(Row("assistant", text, finish_reason="stop"))

    def call(self, tool: str, result: dict[str, Any] | None, *, words: str = "", **arguments: Any) -> None:
        """One tool call; without a *result* none was ever written."""
        call_id = f"call_{self._chance.randbytes(8).hex()}"
        function = {"name": tool, "arguments": json.dumps(arguments, ensure_ascii=False)}
        calls = json.dumps([{"id": call_id, "type": "function", "function": function}], ensure_ascii=False)
        self.rows.append(Row("assistant", words or None, tool_calls=calls, finish_reason="tool_calls"))
        if result is not None:
            self.rows.append(Row("tool", json.dumps(result, ensure_ascii=False), tool_call_id=call_id))

    def undo(self, *texts: str) -> None:
        """What a person took back with /undo: neither live nor archived."""
        for role, text in zip(("user", "assistant"), texts, strict=False):
            self.rows.append(Row(role, text, active=0, compacted=0))

    def compact(self, summary: str) -> None:
        """What an in-place compaction leaves: all archived, a summary, and the last two rows once more."""
        live = [row for row in self.rows if row.columns.get("active", 1)]
        for row in live:
            row.columns |= {"active": 0, "compacted": 1}
        words = [row for row in live if row.content and "tool_calls" not in row.columns and row.role != "tool"]
        self.rows.append(Row("user", f"{SUMMARY}\n{summary}\n--- END OF CONTEXT SUMMARY — respond to what follows ---"))
        for row in words[-2:]:
            kept = {name: value for name, value in row.columns.items() if name not in ("active", "compacted")}
            self.rows.append(Row(row.role, row.content, **kept))

    @property
    def words(self) -> str:
        """All that was said, shown or done in it."""
        return "\n".join(row.words for row in self.rows)

    def save(self, folder: Path, cwd: Path) -> Path:
        """The profile with the rows, ten seconds apart."""
        made = Profile(folder)
        made.session(cwd=str(cwd))
        with closing(sqlite3.connect(made.path)) as owner, owner:
            owner.executemany(
                f"INSERT INTO messages ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - names of our own
                [
                    (
                        MAIN,
                        row.role,
                        row.content,
                        *(row.columns.get(name) for name in ("tool_calls", "tool_call_id", "finish_reason")),
                        row.columns.get("active", 1),
                        row.columns.get("compacted", 0),
                        EPOCH + 10.0 * number,
                    )
                    for number, row in enumerate(self.rows)
                ],
            )
        return folder


class Noise:
    """Turns that matter to nobody later: files read, searches, logs."""

    def __init__(self, language: str, seed: int, root: Path) -> None:
        self._chance = random.Random(seed)  # noqa: S311
        self._root = root
        words = _NOISE[language].split()
        count = counter()
        each = count(_NOISE[language]) / len(words)
        self._texts = [" ".join(self._chance.choices(words, k=int(BLOCK / each))) for _ in range(8)]

    def turn(self, session: Session, number: int) -> None:
        """About `BLOCK` tokens."""
        text = f"{number} {self._texts[number % len(self._texts)]}"
        match number % 3:
            case 0:
                path = str(self._root / "vendor" / f"page_{number:03d}.txt")
                session.call("read_file", {"content": text}, path=path)
            case 1:
                command = _COMMANDS[number // 3 % len(_COMMANDS)].format(number=number)
                session.call("terminal", {"output": text, "exit_code": 0}, command=command)
            case _:
                session.call("search_files", {"matches": text}, pattern=f"page {number}")

    def log(self, lines: int) -> str:
        """Lines of a server's log."""
        words = ("GET", "POST", "PUT"), ("ok", "slow", "retry"), ("INFO", "WARN", "DEBUG", "ERROR")
        made = []
        for number in range(lines):
            verb, how, level = (self._chance.choice(some) for some in words)
            made.append(f"{number // 60 % 24:02d}:{number % 60:02d}:00 {level} {verb} /items {how} {number % 997}ms")
        return "\n".join(made)
