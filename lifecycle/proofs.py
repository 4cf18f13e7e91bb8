"""The proofs that the steps of a renewal hand on: each is made by one step alone, and the next one demands it. Pure."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from lifecycle.checkpoint import Checkpoint
from lifecycle.identifiers import Identifier
from lifecycle.launch import LaunchSpec
from lifecycle.processes import ProcessId
from lifecycle.redaction import redact
from lifecycle.transcript import SentRow
from lifecycle.value import Value


class Quality(StrEnum):
    """Whose words a handoff holds: the worker's document, only its checkpoint, or a machine's collection."""

    WRITTEN = "written"
    CHECKPOINT = "checkpoint"
    SYNTHESIZED = "synthesized"


class HandoffRequest(Value):
    """Proof that the worker was asked: its database holds our row."""

    renewal_id: str
    text: str
    draft: Path
    row: SentRow


class Unasked(Value):
    """A human, or a written policy, said to go on without asking the worker."""

    renewal_id: str
    why: str


def _redacted(checkpoint: Checkpoint) -> Checkpoint:
    words = {name: redact(value) for name, value in checkpoint if type(value) is str}
    return checkpoint.model_copy(update=words)


Redacted = Annotated[str, AfterValidator(redact)]
"""Text that the ledger keeps: no secret of a known shape is in it."""


def _redacted_each(identifiers: tuple[Identifier, ...]) -> tuple[Identifier, ...]:
    return tuple(one.model_copy(update={"text": redact(one.text)}) for one in identifiers)


RedactedIdentifiers = Annotated[tuple[Identifier, ...], AfterValidator(_redacted_each)]

RedactedCheckpoint = Annotated[Checkpoint, AfterValidator(_redacted)]


class ParsedHandoff(Value):
    """Proof that the worker answered this request with a complete checkpoint. *answer* is that reply's own text."""

    renewal_id: str
    answer: Redacted = ""
    checkpoint: RedactedCheckpoint
    reply_row: int
    session_id: str
    draft_text: Redacted | None = None
    quality: Quality = Quality.WRITTEN
    notes: tuple[str, ...] = ()
    asks_human: bool = False
    worked: bool = True
    """Whether the session made a tool call of its own, besides writing the handoff."""
    banner: Redacted = ""
    """What a reboot left unknown; stands above all sections."""
    identifiers: RedactedIdentifiers = ()
    """Those that the handoff must hold; it is given what it lacks."""
    supplement: Redacted = ""
    """What the transcript tells beside the words of a worker that said too little."""
    newest_row: int = 0
    """Of a synthesized handoff the newest row that it tells of; work behind it would be lost."""


class SavedHandoff(Value):
    """Proof that the handoff is on disk and read back: nothing is stopped without it."""

    renewal_id: str
    archive: Path
    sha256: str
    quality: Quality
    next_action: str
    summary: str
    state: str
    answered_row: int
    session_id: str | None = None
    asks_human: bool = False
    worked: bool = True


class StoppedSession(Value):
    """Proof that every process that could write the agent's database is gone."""

    renewal_id: str
    tmux_session: str
    pane_id: str | None
    window_id: str | None = None
    session_id: str | None
    processes: tuple[ProcessId, ...]
    launch: LaunchSpec
    stopped_at: datetime


class RunningSession(Value):
    """Proof that a clean agent shows its input line."""

    renewal_id: str
    pane_id: str
    agent: ProcessId
    generation: int
    started_at: datetime
    old_session_id: str | None


class ResumePrompt(Value):
    """Proof that the new session holds the resume prompt. *pack* is the file that it names, if one was made."""

    renewal_id: str
    row: SentRow
    text: str
    pack: Path | None = None


class ResumeFit(Value):
    """Whether the new session took up what the handoff left off; *why* says what was compared and how it came out."""

    verdict: Literal["proved", "weak"]
    why: str


class Acknowledgement(Value):
    """Proof that the new session answered: nothing is called healthy without it."""

    renewal_id: str
    checkpoint: RedactedCheckpoint
    row: SentRow
    reply_row: int
    session_id: str
    baseline: int | None = None
    fit: ResumeFit | None = None
