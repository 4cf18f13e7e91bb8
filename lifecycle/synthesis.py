"""A handoff that nobody wrote: collected from the agent's own rows, and marked so. Nothing is invented."""

from __future__ import annotations

from lifecycle.budgets import SynthesisSettings
from lifecycle.checkpoint import Checkpoint, State
from lifecycle.conversation import Conversation
from lifecycle.draft import sections_of
from lifecycle.fitting import default_counter
from lifecycle.gate import asks_somebody
from lifecycle.host import Host
from lifecycle.identifiers import Identifier, must_survive
from lifecycle.judging import unanswered_words
from lifecycle.pieces import LAST_CALLS, LAST_FILES, LAST_REQUESTS, NOT_STATED, Pieces, pieces_of
from lifecycle.renewal import ParsedHandoff, Quality, Renewal
from lifecycle.tokens import TokenCounter
from lifecycle.value import Value
from lifecycle.worker import Worker

__all__ = [
    "LAST_CALLS",
    "LAST_FILES",
    "LAST_REQUESTS",
    "NEXT_ACTION",
    "NOT_STATED",
    "Synthesis",
    "as_supplement",
    "collect",
    "synthesize",
]

NEXT_ACTION = "Re-ground yourself from this document and the files it names, then wait for orders."
BANNER = "Collected by Afresh from the transcript; the worker did not write this."
_SUPPLEMENTING = ("Current state", "In progress", "Blockers", "Resume prompt")
"""Files and commands are collected beside it, and the objective is among the orders."""

IN_CHECKPOINT = 10
"""Files and commands that the checkpoint names; the sections have them all."""


class Synthesis(Value):
    """A handoff from rows alone. *dropped* says what the budget left out, *wanted* which identifiers it must hold."""

    document: str
    checkpoint: Checkpoint
    dropped: str = ""
    wanted: tuple[Identifier, ...] = ()
    asks_human: bool = False
    tokens: int


def synthesize(host: Host, worker: Worker, renewal: Renewal) -> ParsedHandoff:
    """Collect a handoff from the transcript.

    Raises:
        ContextUnreadable: the agent's database cannot be read, so there is nothing to collect from.
    """
    process, paths = host.process(worker), host.paths(worker)
    newest = host.turn(worker, process).newest_row
    found = host.agent(worker).conversation(worker, since=process.started_at if process else None)
    made = collect(
        found,
        worker_id=worker.worker_id,
        mission_id=renewal.mission_id,
        renewal_id=renewal.renewal_id,
        settings=host.settings.synthesis,
        ours=(str(paths.handoffs), str(paths.home)),
    )
    session = found.session_id or (renewal.reading.session_id if renewal.reading else None) or ""
    notes = ("Synthesized from the transcript; the worker did not write it.", *([made.dropped] if made.dropped else []))
    return ParsedHandoff(
        renewal_id=renewal.renewal_id,
        checkpoint=made.checkpoint,
        reply_row=0,
        session_id=session,
        draft_text=made.document,
        quality=Quality.SYNTHESIZED,
        notes=notes,
        identifiers=made.wanted,
        asks_human=made.asks_human,
        newest_row=newest,
    )


def collect(
    found: Conversation,
    *,
    worker_id: str,
    mission_id: str | None,
    renewal_id: str,
    settings: SynthesisSettings | None = None,
    ours: tuple[str, ...] = (),
    count: TokenCounter | None = None,
) -> Synthesis:
    """The handoff of *found* within the budget: the oldest goes first, and what went is said. No model is asked.

    RESULT and NEXT_ACTION are never made up: the successor re-grounds itself and waits.
    """
    count, budget = count or default_counter(), (settings or SynthesisSettings()).tokens
    title = f"# Handoff — {worker_id} — {mission_id or 'none'}\n"
    pieces = pieces_of(found, tokens=budget, count=count)

    def document(kept: Pieces) -> str:
        return title + "".join(f"\n## {name}\n{text}\n" for name, text in _sections(kept).items())

    text = document(pieces)
    while count(text) > budget and pieces.droppable:
        pieces = pieces.without_oldest(max(1, (count(text) - budget) // 40))
        text = document(pieces)
    words = unanswered_words(found)
    return Synthesis(
        document=text,
        checkpoint=_checkpoint(pieces, renewal_id),
        dropped=pieces.told_dropped,
        wanted=must_survive(found, ours=ours),
        asks_human=asks_somebody(words),
        tokens=count(text),
    )


def supplement(
    found: Conversation, settings: SynthesisSettings, *, before_row: int, count: TokenCounter | None = None
) -> str:
    """What the rows before our request tell beside the words of the worker: it may have left something out."""
    entries = tuple(entry for entry in found.entries if entry.row < before_row)
    earlier = found.model_copy(update={"entries": entries})
    made = collect(earlier, worker_id="", mission_id=None, renewal_id="", settings=settings, count=count)
    return as_supplement(made.document)


def as_supplement(document: str) -> str:
    """The sections of a synthesized *document* that nothing else of a handoff has, a level lower."""
    kept = [(name, sections_of(document).get(name, "")) for name in _SUPPLEMENTING]
    return "\n\n".join(
        f"### From the transcript: {name}\n{text}" for name, text in kept if text not in ("", NOT_STATED)
    )


def _sections(pieces: Pieces) -> dict[str, str]:
    kept = f"What an earlier compaction had kept, as it told it:\n{pieces.summary}" if pieces.summary else ""
    unknown = [f"{told} — no result was written: its effect is unknown, verify first" for told in pieces.open_calls]
    todos = [f"to do ({todo.status}): {todo.content}" for todo in pieces.todos]
    parts = (
        ("What the worker said, newest last:", pieces.messages),
        ("The last requests, newest last:", pieces.requests or NOT_STATED),
        ("The worker's last words:", pieces.last_words or NOT_STATED),
    )
    return {
        "Current state": "\n\n".join(filter(None, (BANNER, pieces.told_dropped, kept))),
        "Objective": pieces.objective or NOT_STATED,
        "Completed": NOT_STATED,
        "In progress": _bullets([*unknown, *todos]) or NOT_STATED,
        "Files touched": _bullets(pieces.files) or "none seen in the transcript",
        "Commands run": _bullets(pieces.commands) or "none seen in the transcript",
        "Blockers": _bullets(pieces.failures) or NOT_STATED,
        "Next exact action": NEXT_ACTION,
        "Resume prompt": "\n\n".join(f"{label}\n{text}" for label, text in parts if text),
    }


def _checkpoint(pieces: Pieces, renewal_id: str) -> Checkpoint:
    return Checkpoint(
        state=State.HANDOFF,
        files_changed=", ".join(pieces.files[-IN_CHECKPOINT:]) or "none seen in the transcript",
        commands_run="; ".join(pieces.shell[-IN_CHECKPOINT:]) or "none seen",
        result=NOT_STATED,
        blocker=NOT_STATED,
        next_action=NEXT_ACTION,
        renewal_id=renewal_id,
    )


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
