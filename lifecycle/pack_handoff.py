"""The handoff inside a resume pack: its sections by weight, each cut to its share. Pure."""

from __future__ import annotations

import re

from lifecycle.collected_text import HEADING, shortened
from lifecycle.draft import MACHINE_PART, sections_of
from lifecycle.fitting import fitted, largest, last_that_fit
from lifecycle.foreign_text import unfenced
from lifecycle.sharing import shared
from lifecycle.tokens import TokenCounter

COLLECTED = HEADING.removeprefix("## ")
TRANSCRIPT = "From the transcript (added by Afresh)"

WEIGHTS = {
    "Current state": 3.0,
    "In progress": 3.0,
    "Next exact action": 3.0,
    "Interrupted by a reboot": 4.0,
    "Identifiers (added by Afresh)": 3.0,
    COLLECTED: 8.0,
    "Completed": 2.0,
    "Blockers": 2.0,
    "Files touched": 2.0,
    "Resume prompt": 2.0,
    "Objective": 1.0,
    "Commands run": 1.0,
    "Checkpoint": 1.0,
}
"""What a section weighs where not all of them fit; others weigh 1, and the transcript has what is left over."""

SHORTEST = 100
"""Characters of a line that still tell what it is about."""

_WHERE = "; the whole handoff has them"
_ELSEWHERE = {"Mission and rules (added by Afresh)"}
_HEADING = re.compile(r"## ([^\n]+)")
_HANDLE = re.compile(r"^(?:.*\[\[OFFLOAD: [^\]\n]{1,300}\]\].*|### Large results, kept.*)$", re.MULTILINE)
_LISTED = 0.6
"""A section with so many items or quoted lines among its lines is cut at its older end."""


def parts_of(body: str) -> dict[str, str]:
    """The sections of a composed handoff by title, the worker's first, then Afresh's; empty ones left out."""
    found = {name: text for name, text in sections_of(body).items() if text}
    before, _, machine = body.partition(f"\n{MACHINE_PART}\n")
    for text, wanted in ((before, {"Interrupted by a reboot"}), (machine, None)):
        for name, lines in _headed(text).items():
            if name not in _ELSEWHERE and (wanted is None or name in wanted):
                found[name] = _HANDLE.sub("", "\n".join(lines)).strip()
    kept = {name: text for name, text in found.items() if text}
    return kept or ({"Text": body.strip()} if body.strip() else {})


def cut_handoff(parts: dict[str, str], tokens: int, count: TokenCounter) -> str:
    """As much of the *parts* as fits into *tokens*, each under its title and with a note of what is left out."""
    needs = {name: count(f"### {name}\n{text}\n\n") + 2 for name, text in parts.items()}
    if sum(needs.values()) > tokens and COLLECTED in parts:
        parts = {**parts, COLLECTED: shortened(parts[COLLECTED], needs[COLLECTED], count) or parts[COLLECTED]}
        needs[COLLECTED] = count(f"### {COLLECTED}\n{parts[COLLECTED]}\n\n") + 2
    grants = shared({name: need for name, need in needs.items() if name != TRANSCRIPT}, WEIGHTS, tokens)
    # The rows of a session have what its worker's words and the machine leave over.
    grants[TRANSCRIPT] = max(0, min(needs.get(TRANSCRIPT, 0), tokens - sum(grants.values())))
    kept = []
    for name, text in parts.items():
        room = grants[name] - count(f"### {name}\n\n") - 2
        cut = text if grants[name] >= needs[name] else _cut(name, text, room, count)
        if cut.strip():
            kept.append(f"### {name}\n{cut}")
    return "\n\n".join(kept)


def handles_in(body: str) -> list[str]:
    """The lines that name kept results, below the one that says how to see them."""
    found = [line.strip().removeprefix("### ") for line in _HANDLE.findall(body)]
    return found if any("[[OFFLOAD" in line for line in found) else []


def _cut(name: str, text: str, tokens: int, count: TokenCounter) -> str:
    if name == COLLECTED and (lists := shortened(text, tokens, count)) and count(lists) <= tokens:
        return lists
    lines = text.split("\n")
    items = sum(line.lstrip().startswith(("- ", "* ", "> ")) for line in lines)
    # What was said is told in its order: without its middle, words would stand there that later ones took back.
    if name != TRANSCRIPT and items < _LISTED * len(lines):
        return _begun(lines, tokens, count) or fitted(text, tokens, count, where=_WHERE)
    note = "[… {} older lines left out; the whole handoff has them …]"
    kept, dropped = last_that_fit(lines, tokens - count(note.format(len(lines))) - 1, count)
    return "\n".join([note.format(dropped), *kept]) if dropped and kept else "\n".join(kept)


def _begun(lines: list[str], tokens: int, count: TokenCounter) -> str:
    """All lines, the long ones cut to their beginning; empty where little would be left of each."""
    note = f"[… of longer lines only the beginning{_WHERE} …]"

    def cut(size: int) -> str:
        return "\n".join([note, *(line if len(line) <= size else f"{_whole_words(line[:size])}…" for line in lines)])

    size = largest(lambda size: count(cut(size)) <= tokens, max(map(len, lines)))
    return cut(size) if size >= SHORTEST else ""


def _whole_words(line: str) -> str:
    """*line* without the word that it was cut in, unless that is very long."""
    whole, _, word = line.rpartition(" ")
    return whole if whole and len(word) < SHORTEST // 2 else line


def _headed(text: str) -> dict[str, list[str]]:
    """The text below each heading of the second level, outside fences."""
    found: dict[str, list[str]] = {}
    section = ""
    lines = text.split("\n")
    for number, outside in unfenced(lines):
        heading = _HEADING.fullmatch(lines[number]) if outside else None
        if heading:
            section = heading[1].strip()
            found.setdefault(section, [])
        elif section:
            found[section].append(lines[number])
    return found
