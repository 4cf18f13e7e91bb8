"""Large tool results of an ending session, kept outside the handoff and named in it."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from lifecycle import artifacts
from lifecycle.collected import KeptResult
from lifecycle.prompts import one_line
from lifecycle.redaction import redact
from lifecycle.trail import LargeResult

TOLD, COMPLAINT = 120, 160
"""Characters of a summary's two parts: what was called, and its first complaint."""

_COMPLAINS = re.compile(
    r"\b(?:[a-z_]{0,60}(?:errors?|exceptions?)|traceback|fail(?:ed|ures?|s)?|fatal|panic(?:ked)?|denied)\b",
    re.IGNORECASE,
)
_ALL_WELL = re.compile(r"\b(?:0|no) (?:errors?|failures?|failed)\b", re.IGNORECASE)


def keep_results(folder: Path, large: Iterable[LargeResult]) -> tuple[KeptResult, ...]:
    """Keep each result and say in one line what it is.

    Raises:
        OSError: one cannot be written.
    """
    kept = []
    for result in large:
        handle, characters = artifacts.keep(folder, result.text)
        kept.append(KeptResult(handle=handle, tool=result.tool, characters=characters, summary=summary_of(result)))
    return tuple(kept)


def summary_of(result: LargeResult) -> str:
    """One line by rule: what was called, how it ended, how many lines, and the first that complains."""
    lines = result.text.splitlines()
    told = one_line(result.told, TOLD).replace("`", "'")
    ended = "" if result.exit_code is None else f" -> exit {result.exit_code}"
    called = f"ran `{told}`{ended}" if result.tool == "terminal" else f"`{told}`{ended}"
    parts = [f"{called}, {len(lines):,} line{'' if len(lines) == 1 else 's'}"]
    if result.exit_code != 0:
        found = next((number for number, line in enumerate(lines) if _complains(line)), None)
        if found is not None:
            parts.append(f"line {found + 1}: {one_line(lines[found], COMPLAINT)}")
    return redact("; ".join(parts))


def show_command(home: Path) -> str:
    """What prints a kept result, typed into any shell of this host."""
    beside = Path(sys.executable).with_name("afresh")
    found = str(beside) if beside.exists() else shutil.which("afresh")
    program = shlex.quote(found) if found else f"{shlex.quote(sys.executable)} -m deployments.cli"
    return f"AFRESH_HOME={shlex.quote(str(home))} {program} artifact show"


def _complains(line: str) -> bool:
    head = line[:1_000]
    return _COMPLAINS.search(head) is not None and _ALL_WELL.search(head) is None
