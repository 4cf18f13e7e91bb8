"""The handoff: the one document that crosses a renewal. Only Afresh composes it."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from lifecycle.checkpoint import Checkpoint
from lifecycle.collected_text import HEADING
from lifecycle.draft import HANDOFF_SECTIONS, MACHINE_PART, opens_section, parse_draft, sections_of
from lifecycle.foreign_text import bounded, cleaned, unfenced
from lifecycle.identifiers import Identifier, lost_from
from lifecycle.redaction import redact
from lifecycle.renewal import Quality
from lifecycle.value import Value

__all__ = ["HANDOFF_SECTIONS", "Handoff", "HandoffFile", "compose", "parse_draft", "read_handoff", "summary_of"]

_T = TypeVar("_T")

ORDERS = "Mission and rules (added by Afresh)"
IDENTIFIERS = "Identifiers (added by Afresh)"
TRANSCRIPT = "From the transcript (added by Afresh)"
"""Titles of sections behind the worker's own."""

_EMPTY = "(nothing was written)"
_FROM_CHECKPOINT = {
    "Completed": "result",
    "Files touched": "files_changed",
    "Commands run": "commands_run",
    "Blockers": "blocker",
    "Next exact action": "next_action",
}
_SAID_BY = {
    Quality.WRITTEN: "Written by the worker and checked by Afresh.",
    Quality.CHECKPOINT: "The worker wrote no usable document: this holds its checkpoint only.",
    Quality.SYNTHESIZED: "Synthesized by Afresh: the worker did not write this. Verify before you rely on it.",
}


class Handoff(Value):
    """What is known when a worker ends. *sections* are its words by title, *supplement* what the machine collected,
    *orders* what the worker was told, *identifiers* those that the document must hold, *transcript* what its rows tell
    beside the words of a worker that said too little.

    *banner* says what a reboot left unknown; it stands above the sections.
    """

    worker_id: str
    mission_id: str | None = None
    assignment_id: str | None = None
    renewal_id: str
    generation: int
    session_id: str | None = None
    model: str | None = None
    tokens: int | None = None
    quality: Quality = Quality.WRITTEN
    created_at: datetime
    sections: dict[str, str] = {}
    checkpoint: Checkpoint | None = None
    orders: str = ""
    identifiers: tuple[Identifier, ...] = ()
    supplement: str = ""
    transcript: str = ""
    banner: str = ""
    notes: tuple[str, ...] = ()


class HandoffFile(Value):
    """A handoff as it was found. *intact* is None where the file makes no claim about its body."""

    worker_id: str | None = None
    mission_id: str | None = None
    assignment_id: str | None = None
    renewal_id: str | None = None
    generation: int | None = None
    session_id: str | None = None
    model: str | None = None
    tokens: int | None = None
    quality: Quality | None = None
    created_at: datetime | None = None
    intact: bool | None = None
    body: str

    @property
    def sections(self) -> dict[str, str]:
        return sections_of(self.body)


def compose(handoff: Handoff) -> str:
    """The document: YAML front matter with the body's sha256, the sections, and behind a line of its own what
    Afresh added. Secrets are redacted. The checkpoint's next action wins over the draft's, which stays below it.
    """
    body = _body(handoff)
    fields: tuple[tuple[str, str | int | None], ...] = (
        ("worker", handoff.worker_id),
        ("mission", handoff.mission_id),
        ("assignment", handoff.assignment_id),
        ("renewal_id", handoff.renewal_id),
        ("generation", handoff.generation),
        ("session", handoff.session_id),
        ("model", handoff.model),
        ("tokens", handoff.tokens),
        ("quality", handoff.quality.value),
        ("created", f"{handoff.created_at:%Y-%m-%dT%H:%M:%SZ}"),
        ("body_sha256", hashlib.sha256(body.encode()).hexdigest()),
    )
    front = "".join(f"{key}: {_quoted(value)}\n" for key, value in fields)
    return f"---\n{front}---\n{body}"


def read_handoff(text: str) -> HandoffFile:
    """Read a document that `compose` made, or any other: then all is body. Never raises."""
    text = text.removeprefix("\ufeff")
    front = re.match(r"---\n((?:[a-z_0-9]{1,40}:[^\n]{0,900}\n){1,40})---\n", text)
    if not front:
        return HandoffFile(body=text)
    body = text[front.end() :]
    found = dict(line.split(":", 1) for line in front[1].splitlines())
    claimed = _read(found, "body_sha256", str)
    return HandoffFile(
        worker_id=_read(found, "worker", str),
        mission_id=_read(found, "mission", str),
        assignment_id=_read(found, "assignment", str),
        renewal_id=_read(found, "renewal_id", str),
        generation=_read(found, "generation", int),
        session_id=_read(found, "session", str),
        model=_read(found, "model", str),
        tokens=_read(found, "tokens", int),
        quality=_read(found, "quality", Quality),
        created_at=_read(found, "created", datetime),
        intact=None if claimed is None else hashlib.sha256(body.encode("utf-8", "replace")).hexdigest() == claimed,
        body=body,
    )


def summary_of(handoff: Handoff, limit: int = 1_200) -> str:
    """What was reached and where it stands, redacted, in one line of at most *limit* characters."""
    checkpoint = handoff.checkpoint
    said = (checkpoint.result if checkpoint else "", handoff.sections.get("Current state", ""))
    flat = " ".join(redact(cleaned(" ".join(said))).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _body(handoff: Handoff) -> str:
    title = f"# Handoff — {_line(handoff.worker_id)} — {_line(handoff.mission_id or 'none')}"
    parts = [title, f"Generated: {handoff.created_at:%Y-%m-%dT%H:%M:%SZ}"]
    if handoff.banner:
        parts.append(f"## Interrupted by a reboot\n\n{_quoted_text(handoff.banner)}")
    parts += [f"## {name}\n\n{_section(handoff, name)}" for name in HANDOFF_SECTIONS]
    parts += [MACHINE_PART, _SAID_BY[handoff.quality]]
    if handoff.checkpoint:
        parts.append(f"## Checkpoint\n\n{_block(handoff.checkpoint)}")
    if handoff.orders.strip():
        parts.append(f"## {ORDERS}\n\n{_quoted_text(handoff.orders)}")
    if handoff.supplement.strip():
        parts.append(f"{HEADING}\n\n{_quoted_text(handoff.supplement, whole=True)}")
    if handoff.notes:
        parts.append("## Notes of Afresh\n\n" + "\n".join(f"- {redact(_line(note))}" for note in handoff.notes))
    if handoff.transcript.strip():
        parts.append(f"## {TRANSCRIPT}\n\n{_quoted_text(handoff.transcript, whole=True)}")
    missing = lost_from("\n".join(parts), handoff.identifiers)
    if missing:
        listed = "\n".join(f"- {redact(_line(one.told))}" for one in missing)
        parts.append(f"## {IDENTIFIERS}\n\nUsed last, and not named above:\n\n{listed}")
    return "\n\n".join(parts) + "\n"


def _section(handoff: Handoff, name: str) -> str:
    written = _quoted_text(handoff.sections.get(name, ""))
    field = _FROM_CHECKPOINT.get(name)
    said = _quoted_text(getattr(handoff.checkpoint, field)) if handoff.checkpoint and field else ""
    if name == "Next exact action" and said:
        return said if written in {"", said} else f"{said}\n\nThe draft says:\n\n{written}"
    return written or said or _EMPTY


def _quoted_text(text: str, *, whole: bool = False) -> str:
    """A worker's text that can neither end its section nor leave a code fence open behind it."""
    text = redact(cleaned(text)).replace(MACHINE_PART, "").strip("\n").rstrip()
    lines = (text if whole else bounded(text)).split("\n")
    fence = ""
    for number, outside in unfenced(lines):
        if outside:
            if opens_section(lines[number]):
                lines[number] = f"> {lines[number].lstrip()}"
            lines[number] = re.sub(r"^( {0,3})#{1,2}(?=[ \t])", r"\1###", lines[number])
            fence = fence or next(iter(re.findall(r"^ {0,3}(`{3,}|~{3,})[^`\n]*$", lines[number])), "")
    return "\n".join([*lines, fence] if fence else lines)


def _block(checkpoint: Checkpoint) -> str:
    fields = (
        ("STATE", checkpoint.state.value),
        ("FILES_CHANGED", checkpoint.files_changed),
        ("COMMANDS_RUN", checkpoint.commands_run),
        ("RESULT", checkpoint.result),
        ("BLOCKER", checkpoint.blocker),
        ("NEXT_ACTION", checkpoint.next_action),
    )
    return "\n".join(f"{label}: {_indented(value)}" for label, value in fields)


def _indented(value: str) -> str:
    return bounded(redact(cleaned(value))).strip().replace(MACHINE_PART, "").replace("\n", "\n    ")


def _line(text: str) -> str:
    return " ".join(cleaned(text).split())


def _quoted(value: str | int | None) -> str:
    """JSON on one line, which is YAML too as long as nothing is escaped that YAML escapes otherwise."""
    return json.dumps(_line(value) if isinstance(value, str) else value, ensure_ascii=False)


def _read(found: dict[str, str], key: str, kind: type[_T]) -> _T | None:
    raw = found.get(key, "").strip()
    try:
        plain = json.loads(raw)
    except ValueError:
        plain = raw or None
    try:
        return TypeAdapter(kind).validate_python(plain, strict=kind in {int, str}) if plain is not None else None
    except ValidationError:
        return None
