"""Whether a handoff is the worker's newest word: what it did after it wrote the document. Pure.

A file that exists may be twenty minutes older than the work it stands for (marveen PR #988).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from lifecycle.conversation import Conversation, Entry, arguments_of
from lifecycle.looking import LOOKING_TOOLS, only_looks
from lifecycle.transcript import ToolCall

CLOCKS = timedelta(seconds=2)
"""A file's time and a row's may differ by so much although nothing came between."""


def work_after(
    conversation: Conversation, draft: Path, written_at: datetime, *, ours: Sequence[str] = ()
) -> tuple[ToolCall, ...]:
    """The calls that may have changed something since the draft was written, oldest first.

    The draft is as new as the last call that names it, else as its file's time. Calls of the same message belong to it,
    and so do those that touch only the folders *ours*.
    """
    entries = [entry for entry in conversation.entries if entry.call is not None]
    naming = [entry.row for entry in entries if entry.call and draft.name in entry.call.arguments]
    later = [entry for entry in entries if _is_after(entry, naming[-1] if naming else None, written_at)]
    folders = (str(draft.parent), *ours)
    return tuple(entry.call for entry in later if entry.call and _is_work(entry.call, folders))


def _is_after(entry: Entry, naming: int | None, written_at: datetime) -> bool:
    return entry.row > naming if naming is not None else entry.at > written_at + CLOCKS


def _is_work(call: ToolCall, folders: Sequence[str]) -> bool:
    if call.name in LOOKING_TOOLS or any(folder in call.arguments for folder in folders):
        return False
    command = arguments_of(call).get("command")
    return not (isinstance(command, str) and only_looks(command))
