"""The gate as a whole: a worker's answer and its document are taken, sent back once, or refused. Pure."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from lifecycle.checkpoint import Checkpoint, parse_checkpoint
from lifecycle.conversation import Conversation
from lifecycle.draft import parse_draft
from lifecycle.errors import CheckpointRefused
from lifecycle.foreign_text import cleaned
from lifecycle.freshness import CLOCKS, work_after
from lifecycle.gate import GateResult, weigh
from lifecycle.identifiers import Identifier, must_survive
from lifecycle.prompts import is_ours, one_line
from lifecycle.tokens import TokenCounter
from lifecycle.value import Value


class Material(Value):
    """All that the gate looks at. *draft* is the document's text, None where there is no file.

    *written_at* is the file's time, *asked_at* when the renewal began, *asked_row* the row of the request.
    *previous* is the handoff before this one in the same mission. *ours* are Afresh's own folders.
    """

    worker_id: str
    mission_id: str | None = None
    renewal_id: str
    reply: str
    draft: str | None = None
    draft_path: Path | None = None
    written_at: datetime | None = None
    asked_at: datetime | None = None
    asked_row: int | None = None
    previous: str | None = None
    conversation: Conversation = Conversation()
    ours: tuple[str, ...] = ()


class Judged(Value):
    """A handoff that is ours, complete and fresh. What *gate* complains of is mended once, then supplemented."""

    checkpoint: Checkpoint
    gate: GateResult
    wanted: tuple[Identifier, ...] = ()


def judge(material: Material, *, count: TokenCounter | None = None) -> Judged:
    """Weigh the answer and its document.

    Raises:
        CheckpointRefused: it is another's, malformed, the template, or older than the work (`handoff_stale`).
    """
    checkpoint = parse_checkpoint(
        material.reply, renewal_id=material.renewal_id, worker_id=material.worker_id, purpose="handoff"
    )
    if material.draft is not None:
        parse_draft(material.draft, material.worker_id, mission_id=material.mission_id, renewal_id=material.renewal_id)
        _refuse_stale(material)
    wanted = must_survive(material.conversation, before_row=material.asked_row, ours=material.ours)
    result = weigh(
        material.draft,
        checkpoint,
        previous=material.previous,
        wanted=wanted,
        last_words=unanswered_words(material.conversation, before_row=material.asked_row),
        count=count,
    )
    return Judged(checkpoint=checkpoint, gate=result, wanted=wanted)


def unanswered_words(conversation: Conversation, *, before_row: int | None = None) -> str:
    """What the worker said last before our request, where no person has said anything behind it."""
    for entry in reversed(conversation.entries):
        if before_row is not None and entry.row >= before_row:
            continue
        if entry.role == "assistant":
            return cleaned(entry.text)
        if entry.role == "call" or not is_ours(entry.text):
            return ""
    return ""


def _refuse_stale(material: Material) -> None:
    written, asked = material.written_at, material.asked_at
    if written is None or material.draft_path is None:
        return
    if asked is not None and written < asked - CLOCKS:
        msg = f"the draft was written at {written:%H:%M:%S}, before it was asked for; write it anew"
        raise CheckpointRefused(msg, worker_id=material.worker_id, reason="handoff_stale", own_words=True)
    later = work_after(material.conversation, material.draft_path, written, ours=material.ours)
    if later:
        told = "\n".join(one_line(f"{call.name}: {call.arguments}", 300) for call in later[-10:])
        msg = (
            f"the worker went on after it wrote the draft ({len(later)} calls that may have changed something); "
            "bring the document up to date"
        )
        raise CheckpointRefused(
            msg, worker_id=material.worker_id, reason="handoff_stale", evidence=told, own_words=True
        )
