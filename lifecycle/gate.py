"""Whether a handoff is worth resuming from. Pure; it complains, and never blocks."""

from __future__ import annotations

from collections.abc import Mapping

from lifecycle.checkpoint import Checkpoint, State
from lifecycle.draft import HANDOFF_SECTIONS, sections_of
from lifecycle.foreign_text import unfenced
from lifecycle.tokens import EncodingUnavailable, TokenCounter, byte_bound, counter
from lifecycle.value import Value

THIN_TOKENS = 120
"""Less prose than this tells a successor nothing."""

THIN_SHARE = 10
"""A handoff under a tenth of the one before, in the same open mission, has collapsed."""

_SAID_IN = {
    "Completed": "result",
    "Files touched": "files_changed",
    "Commands run": "commands_run",
    "Blockers": "blocker",
    "Next exact action": "next_action",
    "Resume prompt": "next_action",
}


class GateResult(Value):
    """*missing* are sections that neither draft nor checkpoint fills; *complaints* are sentences for
    one corrective request. *asks_human* says that the worker waits for a person's word, so that nobody answers for
    them (opencode #36682).
    """

    missing: tuple[str, ...] = ()
    complaints: tuple[str, ...] = ()
    asks_human: bool = False


def weigh(
    draft: str | None,
    checkpoint: Checkpoint | None,
    *,
    previous: str | None = None,
    same_mission: bool = True,
    count: TokenCounter | None = None,
) -> GateResult:
    """Weigh the text of a draft, None where there is none.

    *previous* is the text of the handoff before this one; it counts only where *same_mission* says that it
    belongs to the same mission, still open. *count* defaults to tiktoken's figure, or bytes where it has no ranks.
    """
    count = count or _counter()
    sections = sections_of(draft) if draft else {}
    missing = tuple(name for name in HANDOFF_SECTIONS if not _is_filled(name, sections, checkpoint))
    figure = count(prose(sections))
    before = count(prose(sections_of(previous))) if previous and same_mission else 0
    complaints = []
    if missing:
        complaints.append(f"these sections say nothing: {', '.join(missing)}")
    if figure < THIN_TOKENS:
        complaints.append(f"the document has {figure} tokens of prose; a successor needs at least {THIN_TOKENS}")
    elif figure * THIN_SHARE < before:
        complaints.append(f"the document has {figure:,} tokens of prose; the one before had {before:,}")
    return GateResult(missing=missing, complaints=tuple(complaints), asks_human=_asks(checkpoint))


def prose(sections: Mapping[str, str]) -> str:
    """The text of the sections without headings and code blocks: a pasted log is not an explanation."""
    kept = []
    for text in sections.values():
        lines = text.split("\n")
        kept += [lines[number] for number, outside in unfenced(lines) if outside and not lines[number].startswith("#")]
    return "\n".join(line for line in kept if line.strip())


def _counter() -> TokenCounter:
    try:
        return counter()
    except EncodingUnavailable:
        return byte_bound


def _is_filled(name: str, sections: Mapping[str, str], checkpoint: Checkpoint | None) -> bool:
    field = _SAID_IN.get(name)
    said = getattr(checkpoint, field) if checkpoint and field else ""
    return bool(sections.get(name, "").strip() or said.strip())


def _asks(checkpoint: Checkpoint | None) -> bool:
    if checkpoint is None:
        return False
    last = checkpoint.next_action.rstrip(" \n\t\"'`*_)")
    return checkpoint.state is State.NEEDS_INPUT or last.endswith(("?", "？"))
