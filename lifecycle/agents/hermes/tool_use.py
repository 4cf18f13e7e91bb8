"""One use of a tool: what it was given, what came of it, and what both mean for a handoff."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from lifecycle.agents.hermes.database import Seconds
from lifecycle.collected import Act, Command, OpenCall, ToDo
from lifecycle.prompts import one_line
from lifecycle.trail import LargeResult
from lifecycle.value import Value

SHORT = 400
"""Characters of a command or of what a tool was given."""

_ACTS: dict[str, Act] = {"read_file": "read", "write_file": "written", "patch": "patched"}
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete|Move) File: (.+)$", re.MULTILINE)
_SHORTENED = re.compile(r"^\[[\w-]+\] .* -> exit (-?\d+), ")
"""What Hermes's own compaction leaves of a result: ``[terminal] ran `npm test` -> exit 0, 47 lines output``."""


class ToolUse(Value):
    """A tool call with its result; *outcome* is None where none was ever written."""

    call_id: str
    tool: str
    arguments: str
    at: Seconds
    outcome: str | None = None

    @property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(int(self.at), UTC)

    @property
    def given(self) -> dict[str, Any]:
        return _object(self.arguments)

    @property
    def result(self) -> dict[str, Any]:
        return _object(self.outcome or "")

    @property
    def told(self) -> str:
        """What it was to do, on one line."""
        given = self.given
        for name in ("command", "path", "code", "goal", "query", "pattern", "url"):
            if isinstance(given.get(name), str) and given[name].strip():
                return one_line(given[name], SHORT)
        return one_line(self.arguments, SHORT)

    @property
    def exit_code(self) -> int | None:
        """As the tool recorded it. What was started in the background has none: Hermes writes a 0 at once."""
        if self.given.get("background") is True:
            return None
        found = self.result.get("exit_code")
        if type(found) is int:
            return found
        shortened = _SHORTENED.match(self.outcome or "")
        return int(shortened[1]) if shortened else None


def command_of(use: ToolUse) -> Command | None:
    """The command that was run to its end, None where the use is no command or has no result."""
    if use.outcome is None or use.tool not in {"terminal", "execute_code"}:
        return None
    cwd = use.given.get("workdir")
    told = use.told if use.tool == "terminal" else f"(code) {use.told}"
    if use.given.get("background") is True:
        told = f"(in the background) {told}"
    return Command(command=told, exit_code=use.exit_code, at=use.moment, cwd=cwd if isinstance(cwd, str) else None)


def files_of(use: ToolUse) -> tuple[Act, tuple[str, ...]] | None:
    """What the use did to which files; None where it did nothing to any, or failed."""
    act = _ACTS.get(use.tool)
    result, given = use.result, use.given
    if act is None or use.outcome is None or (result.get("error") and not result.get("files_modified")):
        return None
    resolved = [result.get("resolved_path")]
    changed = [path for key in ("files_modified", "files_created", "files_deleted") for path in _texts(result.get(key))]
    patched = " -> ".join(_PATCHED.findall(str(given.get("patch") or ""))).split(" -> ")
    named = next((found for found in (changed, _texts(resolved), _texts([given.get("path"), *patched])) if found), [])
    return (act, tuple(dict.fromkeys(one_line(path, SHORT) for path in named))) if named else None


def todos_of(use: ToolUse) -> tuple[ToDo, ...] | None:
    """The open entries of the list that the use left; every result of the tool holds the whole list."""
    entries = use.result.get("todos") if use.tool == "todo" else None
    if not isinstance(entries, list):
        return None
    found = []
    for entry in entries:
        status = entry.get("status") if isinstance(entry, dict) else None
        text = one_line(str(entry.get("content") or ""), SHORT) if status in {"pending", "in_progress"} else ""
        if text:
            found.append(ToDo.model_validate({"text": text, "status": status}))
    return tuple(found)


def open_call_of(use: ToolUse) -> OpenCall | None:
    return OpenCall(tool=_word(use.tool), told=use.told, at=use.moment) if use.outcome is None else None


def large_result_of(use: ToolUse) -> LargeResult:
    outcome = use.outcome or ""
    text = readable(outcome)
    return LargeResult(
        tool=_word(use.tool), told=use.told, text=text, size=len(outcome), exit_code=use.exit_code, at=use.moment
    )


def readable(outcome: str) -> str:
    """A result with the line breaks that its JSON escapes: a text of many lines stands under its key."""
    try:
        found = json.loads(outcome)
    except (ValueError, RecursionError):
        return outcome
    if not isinstance(found, dict):
        return json.dumps(found, ensure_ascii=False, indent=1) if isinstance(found, list) else outcome
    parts = []
    for name, value in found.items():
        if isinstance(value, str):
            parts.append(f"{name}:\n{value}" if "\n" in value else f"{name}: {value}")
        elif value is not None:
            parts.append(f"{name}: {json.dumps(value, ensure_ascii=False, indent=1)}")
    return "\n".join(parts)


def _word(name: str) -> str:
    """A tool's name as one word."""
    return re.sub(r"[^\w.:-]", "_", name)[:80] or "unnamed"


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _texts(values: object) -> list[str]:
    return [value for value in values if isinstance(value, str) and value.strip()] if isinstance(values, list) else []
