"""Whether a handoff is worth resuming from. Pure; it complains, and never blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lifecycle.checkpoint import Checkpoint, State
from lifecycle.draft import HANDOFF_SECTIONS, sections_of
from lifecycle.foreign_text import unfenced
from lifecycle.identifiers import Identifier, lost_from
from lifecycle.tokens import EncodingUnavailable, TokenCounter, byte_bound, counter
from lifecycle.value import Value

_COURTESY = re.compile(r"anything else|something else|need anything|help you|还有(?:什么|其他)|还需要", re.IGNORECASE)
_CONFIRM = re.compile(
    r"\bplease (?:confirm|approve|advise)\b|\b(?:awaiting|waiting for|wait for) your\b"
    r"|请(?:您|你)?(?:确认|指示|批准|决定)|等待(?:您|你)的?",
    re.IGNORECASE,
)

THIN_TOKENS = 120
"""Less prose than this tells a successor nothing."""

THIN_SHARE = 10
"""A handoff under a tenth of the one before, in the same open mission, has collapsed."""

MOST_LOST = 0.20
"""A handoff that lacks more of the identifiers that were used last is mended by who knows them; fewer are appended."""

FEW_LOST = 2
"""So few are appended, whatever share they are: another turn of a full context costs more."""

_SAID_IN = {
    "Completed": "result",
    "Files touched": "files_changed",
    "Commands run": "commands_run",
    "Blockers": "blocker",
    "Next exact action": "next_action",
    "Resume prompt": "next_action",
}


class GateResult(Value):
    """*missing* are sections that neither draft nor checkpoint fills; *lost* are identifiers that it does not hold;
    *complaints* are sentences for one corrective request, without a word of the worker's. *asks_human* says that the
    worker waits for a person's word, so that nobody answers for them (opencode #36682).
    """

    missing: tuple[str, ...] = ()
    lost: tuple[Identifier, ...] = ()
    complaints: tuple[str, ...] = ()
    asks_human: bool = False


def weigh(
    draft: str | None,
    checkpoint: Checkpoint | None,
    *,
    previous: str | None = None,
    same_mission: bool = True,
    wanted: Iterable[Identifier] = (),
    last_words: str = "",
    count: TokenCounter | None = None,
) -> GateResult:
    """Weigh the text of a draft, None where there is none.

    *previous* is the text of the handoff before this one; it counts only where *same_mission* says that it
    belongs to the same mission, still open. *wanted* are identifiers that must survive, *last_words* what the worker
    said last before it was asked, where nobody has answered that. *count* defaults to tiktoken's figure, or bytes
    where it has no ranks.
    """
    count = count or _counter()
    sections = sections_of(draft) if draft else {}
    missing = tuple(name for name in HANDOFF_SECTIONS if not _is_filled(name, sections, checkpoint))
    earlier = sections_of(previous) if previous and same_mission else {}
    figure, before = count(prose(sections)), count(prose(earlier))
    wanted = tuple(wanted)
    lost = lost_from("\n".join((draft or "", *(_words_of(checkpoint)))), wanted)
    complaints = []
    if missing:
        complaints.append(f"these sections say nothing: {', '.join(missing)}")
    if figure < THIN_TOKENS:
        complaints.append(f"the document has {figure} tokens of prose; a successor needs at least {THIN_TOKENS}")
    elif figure * THIN_SHARE < before:
        complaints.append(f"the document has {figure:,} tokens of prose; the one before had {before:,}")
    elif _is_copy(sections, earlier):
        complaints.append("the document is the one before, word for word; write what is true now")
    if len(lost) > FEW_LOST and len(lost) > MOST_LOST * len(wanted):
        complaints.append(
            f"{len(lost)} of {len(wanted)} paths, ports, URLs, commits and ticket ids used last are missing"
        )
    return GateResult(
        missing=missing,
        lost=lost,
        complaints=tuple(complaints),
        asks_human=_asks(checkpoint) or asks_somebody(last_words),
    )


def asks_somebody(words: str) -> bool:
    """Whether *words* end in a question to a person, or in a request to confirm; a courtesy is none."""
    lines = [line for line in words.rstrip().split("\n") if line.strip()]
    last = lines[-1].rstrip(" \t\"'`*_)") if lines else ""
    return (
        bool(last) and not _COURTESY.search(last) and (last.endswith(("?", "？")) or _CONFIRM.search(last) is not None)
    )


def prose(sections: Mapping[str, str]) -> str:
    """The text of the sections without headings and code blocks: a pasted log is not an explanation."""
    kept = []
    for text in sections.values():
        lines = text.split("\n")
        kept += [lines[number] for number, outside in unfenced(lines) if outside and not lines[number].startswith("#")]
    return "\n".join(line for line in kept if line.strip())


def _is_copy(sections: Mapping[str, str], earlier: Mapping[str, str]) -> bool:
    """Whether all sections are those of *earlier*; its next action is the checkpoint's, and tells nothing."""
    kept = {name: text for name, text in sections.items() if name != "Next exact action"}
    return bool(kept) and all(earlier.get(name, "").split() == text.split() for name, text in kept.items())


def _counter() -> TokenCounter:
    try:
        return counter()
    except EncodingUnavailable:
        return byte_bound


def _is_filled(name: str, sections: Mapping[str, str], checkpoint: Checkpoint | None) -> bool:
    field = _SAID_IN.get(name)
    said = getattr(checkpoint, field) if checkpoint and field else ""
    return bool(sections.get(name, "").strip() or said.strip())


def _words_of(checkpoint: Checkpoint | None) -> tuple[str, ...]:
    if checkpoint is None:
        return ()
    return (
        checkpoint.files_changed,
        checkpoint.commands_run,
        checkpoint.result,
        checkpoint.blocker,
        checkpoint.next_action,
    )


def _asks(checkpoint: Checkpoint | None) -> bool:
    if checkpoint is None:
        return False
    last = checkpoint.next_action.rstrip(" \n\t\"'`*_)")
    return checkpoint.state is State.NEEDS_INPUT or last.endswith(("?", "？"))
