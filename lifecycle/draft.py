"""The document that a worker writes before it is renewed, read leniently. Its text is data, never instructions."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from lifecycle.errors import CheckpointRefused
from lifecycle.foreign_text import FENCE, bounded, cleaned, unfenced
from lifecycle.worker import WORKER_ID

HANDOFF_SECTIONS = (
    "Current state",
    "Objective",
    "Completed",
    "In progress",
    "Files touched",
    "Commands run",
    "Blockers",
    "Next exact action",
    "Resume prompt",
)
"""The nine headings of the reference template, in its order."""

MACHINE_PART = "<!-- What follows was added by Afresh. -->"
"""The line behind which a composed handoff is no longer the worker's."""

DRAFT_HEAD, DRAFT_TAIL = 2 * 2**20, 2**19
"""Bytes that are read of the two ends of a longer draft, whose sections keep 108,000 characters in all.

Ten megabytes took a renewal half a minute to weigh, and four times their size in the ledger.
"""

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]*([^\n]*?)[ \t]*#*[ \t]*")
_BOLD_LINE = re.compile(r" {0,3}(?:\*\*|__)([^\n*_]{1,60})(?:\*\*|__)[ \t]*:?[ \t]*")
_TITLE = re.compile(r"handoff\b(?:[ \t]{0,4}[:—–-]+|[ \t]+(?:for|of|from|by)\b)?(.*)", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"[-*+\d.)\s]{0,12}(?:<[^>\n]*>|\[(?!redacted:)[^\]\n]{2,}\]|\{[^}\n]*\}|\.{3}|…|todo|tbd"
    r"|\(?fill (?:this )?in\)?|\(nothing was written\))?[.:]?",
    re.IGNORECASE,
)
_LONGEST_HEADING = 200

_ALSO = {
    "state": "Current state",
    "status": "Current state",
    "goal": "Objective",
    "done": "Completed",
    "files changed": "Files touched",
    "commands": "Commands run",
    "blocker": "Blockers",
    "next action": "Next exact action",
    "next step": "Next exact action",
    "next exact step": "Next exact action",
}
_BY_NAME = {title.lower(): title for title in HANDOFF_SECTIONS} | _ALSO


def read_draft(path: Path, *, worker_id: str) -> str | None:
    """The draft's text, None where there is no file. Of a very long one the middle is left out, and says so.

    Raises:
        CheckpointRefused: `handoff_unreadable`: it is no regular file, or the system refuses.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode):
                return _both_ends(descriptor, found.st_size).decode(errors="replace")
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        msg = f"{path}: the draft cannot be read: {error.strerror}"
        raise CheckpointRefused(msg, worker_id=worker_id, reason="handoff_unreadable") from error
    msg = f"{path}: the draft is no regular file"
    raise CheckpointRefused(msg, worker_id=worker_id, reason="handoff_unreadable")


def _both_ends(descriptor: int, size: int) -> bytes:
    left_out = size - DRAFT_HEAD - DRAFT_TAIL
    if left_out <= 0:
        return os.pread(descriptor, DRAFT_HEAD + DRAFT_TAIL, 0)
    note = f"\n\n[… {left_out:,} bytes left out …]\n\n".encode()
    return os.pread(descriptor, DRAFT_HEAD, 0) + note + os.pread(descriptor, DRAFT_TAIL, size - DRAFT_TAIL)


def parse_draft(
    text: str, worker_id: str, *, mission_id: str | None = None, renewal_id: str | None = None
) -> dict[str, str]:
    """The draft's filled sections by title, in the template's order; each cleaned and bounded, none empty.

    Headings may have any level, case and number, or be a bold line; text before the first one counts as
    current state; other headings stay inside the section they stand in; fenced headings open nothing.

    Raises:
        CheckpointRefused: `handoff_wrong_worker`, `handoff_wrong_mission` or `handoff_stale`: its header names
            another worker, mission or renewal (H12); `handoff_template`: it is empty or the template unfilled.
    """
    header, sections = _taken_apart(cleaned(text))
    for key, reason, ours in (
        ("worker", "handoff_wrong_worker", worker_id),
        ("mission", "handoff_wrong_mission", mission_id),
        ("renewal_id", "handoff_stale", renewal_id),
    ):
        named = header.get(key)
        if named and ours and named.lower() != ours.lower():
            msg = f"the draft is headed {key} {named!r}, and this is {ours!r}"
            raise CheckpointRefused(msg, worker_id=worker_id, reason=reason, evidence=text[:400])
    if not sections:
        what = "holds only the unfilled template" if text.strip() else "is empty"
        msg = f"the draft {what}"
        raise CheckpointRefused(msg, worker_id=worker_id, reason="handoff_template", evidence=text[:400])
    return sections


def sections_of(text: str) -> dict[str, str]:
    """The worker's sections of a composed handoff, without what Afresh added; empty where there are none."""
    return _taken_apart(cleaned(text))[1]


def opens_section(line: str) -> bool:
    return _opened(line) is not None


def _taken_apart(text: str) -> tuple[dict[str, str], dict[str, str]]:
    header, lines = _front_matter(_unwrapped(text.strip("\n").split("\n")))
    collected: dict[str, list[str]] = {}
    section = ""
    for number, outside in unfenced(lines):
        line = lines[number]
        if outside and line.strip() == MACHINE_PART:
            break
        opened = _opened(line) if outside else None
        if opened:
            section = opened[0]
            collected.setdefault(section, []).append(opened[1])
        elif section or not (outside and _is_header_line(line, header)):
            collected.setdefault(section or HANDOFF_SECTIONS[0], []).append(line)
    texts = {title: bounded("\n".join(collected.get(title, ())).strip()) for title in HANDOFF_SECTIONS}
    return header, {title: body for title, body in texts.items() if not _is_unfilled(body)}


def _opened(line: str) -> tuple[str, str] | None:
    """The section that *line* opens, and what stands behind its colon."""
    heading = _HEADING.fullmatch(line) or _BOLD_LINE.fullmatch(line) if len(line) <= _LONGEST_HEADING else None
    if not heading:
        return None
    name, _, rest = heading[heading.lastindex or 1].partition(":")
    name = re.sub(r"^\d{1,2}[.)]\s*", "", name.strip("*_` \t"))
    title = _BY_NAME.get(re.sub(r"[\s_-]+", " ", name).strip("*_` ").lower())
    return (title, rest.strip("*_` \t")) if title else None


def _is_header_line(line: str, header: dict[str, str]) -> bool:
    """Whether *line* is the title or its date; what the title names goes into *header*."""
    heading = _HEADING.fullmatch(line) if len(line) <= _LONGEST_HEADING else None
    title = _TITLE.fullmatch(heading[2].strip("*_` ")) if heading else None
    if not title:
        return line.strip().lower().startswith("generated:")
    worker, *rest = (part.strip("*_`()[] ") for part in re.split(r"\s+[—–-]+\s+", title[1]))
    mission = rest[0] if rest and re.fullmatch(r"[\w.:-]+", rest[0]) else ""
    # "# Handoff — Parser" is a title, "# Handoff — parser — mission-1" names a worker.
    if WORKER_ID.fullmatch(worker) and (mission or re.fullmatch(r"swarm\d+", worker, re.IGNORECASE)):
        header.setdefault("worker", worker)
        if mission.lower() not in {"", "none", "unknown"}:
            header.setdefault("mission", mission)
    return True


def _front_matter(lines: list[str]) -> tuple[dict[str, str], list[str]]:
    """A draft that was made from an older handoff has that one's front matter, and with it that one's ids."""
    if not lines or lines[0].strip() != "---" or "---" not in lines[1:40]:
        return {}, lines
    end = lines.index("---", 1)
    pairs = (line.partition(":") for line in lines[1:end])
    named = {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}
    kept = {key: named[key] for key in ("worker", "mission", "renewal_id") if named.get(key) not in {None, "", "null"}}
    return kept, lines[end + 1 :]


def _unwrapped(lines: list[str]) -> list[str]:
    """The whole draft inside one code fence, without it."""
    inner = [line for line in lines[1:-1] if line.strip()]
    if len(lines) > 2 and inner and inner[0].startswith(("#", "---")):
        opening, closing = FENCE.fullmatch(lines[0]), FENCE.fullmatch(lines[-1].rstrip())
        if opening and closing and opening[2].strip().lower() in {"", "md", "markdown"} and not closing[2].strip():
            return lines[1:-1]
    return lines


def _is_unfilled(text: str) -> bool:
    return all(_PLACEHOLDER.fullmatch(line.strip()) for line in text.split("\n"))
