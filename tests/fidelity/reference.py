"""The reference system's rules, as described: any file is a handoff, and its path is all that is told."""

from __future__ import annotations

import re

PROMPT = """\
RESUME_AFTER_HANDOFF. You were restarted. Read the shared handoff {path}, your local copies in ~/memory/handoffs and \
runtime.json. Continue from "Next exact action". Reply with a fresh checkpoint after re-grounding."""

_LINE = re.compile(r"^\s*([A-Z_ -]{3,24})\s*:\s*(.*)$", re.IGNORECASE)
_SIX = ("STATE", "FILES_CHANGED", "COMMANDS_RUN", "RESULT", "BLOCKER", "NEXT_ACTION")
_STATES = {"DONE", "BLOCKED", "NEEDS_INPUT", "HANDOFF", "IN_PROGRESS"}


def told(file: str | None) -> str:
    """What the new worker is told; nothing where no file is there, for then it is not renewed."""
    return PROMPT.format(path="/srv/memory/handoffs/swarm/swarm1-latest.md") if file is not None else ""


def read(file: str | None) -> str:
    """What it knows once it has read the whole file, which nobody checks that it does."""
    return f"{told(file)}\n{file}" if file is not None else ""


def checkpoint(text: str) -> dict[str, str] | None:
    """Its parser: lines of six labels with `**` taken away, values of several lines, the state's first word."""
    found: dict[str, list[str]] = {}
    label = ""
    for line in text.replace("**", "").split("\n"):
        match = _LINE.match(line)
        name = re.sub(r"[ -]", "_", match[1].strip()).upper() if match else ""
        if match and name in _SIX:
            label = name
            found[label] = [match[2]]
        elif label:
            found[label].append(line)
    values = {name: "\n".join(lines).strip() for name, lines in found.items()}
    if not all(values.get(name) for name in _SIX) or values["STATE"].split()[0].upper() not in _STATES:
        return None
    return values
