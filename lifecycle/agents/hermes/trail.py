"""What the worker did in its whole conversation, from the rows of state.db."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from lifecycle.agents.hermes.database import State, open_state
from lifecycle.agents.hermes.message import calls_of, live_condition, plain_text
from lifecycle.agents.hermes.session import Session, chain, current_session, find, tip
from lifecycle.agents.hermes.tool_use import (
    ToolUse,
    command_of,
    files_of,
    large_result_of,
    open_call_of,
    todos_of,
)
from lifecycle.collected import TouchedFile
from lifecycle.trail import LargeResult, LargeRule, Trail

_COUNTED_ANEW = re.compile(r"\D{0,12}\d{1,4}")
"""Call ids of models that number their calls anew in every turn: they name no call by themselves."""


def trail(profile: Path, worker_id: str, *, session_id: str | None, since: datetime | None, large: LargeRule) -> Trail:
    """The trail of *session_id* and of what compactions closed before it; without one, of the current session.

    The results that *large* names come with it.

    Raises:
        ContextUnreadable
    """
    with open_state(profile, worker_id) as state:
        if state is None:
            return Trail()
        named = find(state, session_id) if session_id else None
        session = tip(state, named) if named is not None else current_session(state, since)
        if session is None:
            return Trail()
        sessions = chain(state, session)
        uses = _uses(state, sessions)
        cwd = _cwd(state, sessions)
    lists = [found for use in uses if (found := todos_of(use)) is not None]
    return Trail(
        cwd=cwd,
        sessions=tuple(link.session_id for link in sessions),
        files=_files(uses, cwd),
        commands=tuple(command for use in uses if (command := command_of(use)) is not None),
        todos=lists[-1] if lists else (),
        interrupted=tuple(call for use in uses if (call := open_call_of(use)) is not None),
        large=_large(uses, large),
    )


def _uses(state: State, sessions: list[Session]) -> list[ToolUse]:
    """Every tool call of the conversation once, in its order; of the copies that compactions made, the first."""
    found: list[ToolUse] = []
    newest: dict[str, int] = {}  # by call id: where a result that comes now belongs
    archived: dict[str, int] = {}
    for role, is_live, at, tool_calls, call_id, content in _rows(state, sessions):
        if role == "assistant":
            for use in _begun(tool_calls, at):
                copy_of = archived.get(use.call_id)
                if copy_of is not None and _is_copy(found[copy_of], use):
                    newest[use.call_id] = copy_of
                else:
                    newest[use.call_id] = len(found)
                    found.append(use)
                if not is_live:
                    archived[use.call_id] = newest[use.call_id]
        elif role == "tool" and call_id in newest:
            place = newest[call_id]
            if found[place].outcome is None:
                found[place] = found[place].model_copy(update={"outcome": plain_text(content)})
    return found


def _is_copy(use: ToolUse, other: ToolUse) -> bool:
    """Whether a row behind a compaction shows a call again. Its arguments may have been cut short by it."""
    if use.tool != other.tool:
        return False
    return use.arguments == other.arguments or not _COUNTED_ANEW.fullmatch(use.call_id)


def _rows(state: State, sessions: list[Session]) -> Iterator[tuple[Any, ...]]:
    """Live rows and those that were compacted away. A session that a compaction closed has only such."""
    names = ("tool_calls", "tool_call_id", "content")
    columns = ", ".join(state.column("messages", name, "NULL") for name in names)
    live = live_condition(state)
    kept = "coalesce(messages.compacted, 0) <> 0" if "compacted" in state.columns("messages") else "0"
    sql = (
        f"SELECT messages.role, {live}, messages.timestamp, {columns} FROM messages "  # noqa: S608 - names of our own
        f"WHERE messages.session_id = ? AND messages.role IN ('assistant', 'tool') AND ({live} OR {kept}) "
        "ORDER BY messages.id"
    )
    for session in sessions:
        is_last = session is sessions[-1]
        for role, is_live, *rest in state.rows(sql, session.session_id):
            yield (role, bool(is_live) and is_last, *rest)


def _begun(tool_calls: str | None, at: float) -> Iterator[ToolUse]:
    for call in calls_of(tool_calls):
        yield ToolUse(call_id=call.call_id, tool=call.name, arguments=call.arguments, at=at)


def _files(uses: list[ToolUse], cwd: str | None) -> tuple[TouchedFile, ...]:
    """Each file once, in the order in which they were touched last. One that is named both ways has its full path."""
    done = [(use, act, paths) for use in uses for act, paths in (files_of(use) or ("read", ()),)]
    named = {path for _, _, paths in done for path in paths}
    found: dict[str, TouchedFile] = {}
    for use, act, paths in done:
        for path in paths:
            whole = os.path.normpath(Path(cwd or "/") / path)
            name = whole if whole in named else path
            before = found.pop(name, None)
            acts = dict.fromkeys((*(before.acts if before else ()), act))
            times = before.times + 1 if before else 1
            found[name] = TouchedFile(path=name, acts=tuple(acts), times=times, last=use.moment)
    return tuple(found.values())


def _large(uses: Iterable[ToolUse], rule: LargeRule) -> tuple[LargeResult, ...]:
    large = [
        (len(use.outcome), place, use)
        for place, use in enumerate(uses)
        if use.outcome and len(use.outcome) > rule.over and use.tool not in rule.protected
    ]
    largest = sorted(large, key=lambda one: (-one[0], one[1]))[: rule.most]
    return tuple(large_result_of(use) for _, _, use in sorted(largest, key=lambda one: one[1]))


def _cwd(state: State, sessions: list[Session]) -> str | None:
    if "cwd" not in state.columns("sessions"):
        return None
    for session in reversed(sessions):
        row = state.first("SELECT cwd FROM sessions WHERE id = ?", session.session_id)
        if row and row[0]:
            return str(row[0])
    return None
