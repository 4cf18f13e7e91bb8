"""afresh artifact: tool results that were kept out of a handoff. It runs in a worker's own shell: little is loaded."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from deployments.commands.options import AsJson
from deployments.output import print_json, say, tell
from lifecycle.errors import Misuse

LONGEST_OUTPUT = 20_000
"""Characters: who asks is an agent, and its context is what all this is about."""

SEARCHED_FOR = timedelta(seconds=2)

group = typer.Typer(help="Large tool results that were kept out of a handoff.")


def add_to(app: typer.Typer) -> None:
    app.add_typer(group, name="artifact")


@group.command("show")
def show(
    handle: Annotated[str, typer.Argument(metavar="HANDLE", help="As an [[OFFLOAD: …]] line names it.")],
    lines: Annotated[
        str | None, typer.Option(metavar="FROM:TO", help="Only these lines, counted from 1.", show_default=False)
    ] = None,
    grep: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Only lines that match, numbered.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a kept result: at most 20,000 characters, so narrow it down with --lines or --grep."""
    from lifecycle.artifacts import read
    from lifecycle.bounded_search import matching

    text = read(_home() / "artifacts", handle)
    first, last = _range(lines, len(text.splitlines()))
    chosen = matching(text, grep, within=SEARCHED_FOR) if grep else list(enumerate(text.splitlines(), 1))
    found = [(number, line) for number, line in chosen if first <= number <= last]
    shown, size = [], 0
    for number, line in found:
        cut = line[: LONGEST_OUTPUT - size]
        shown.append((number, cut))
        size += len(cut) + 1
        if size >= LONGEST_OUTPUT:
            break
    left_out = len(found) - len(shown)
    if as_json:
        entries = [{"number": number, "text": line} for number, line in shown]
        print_json({"handle": handle, "lines": len(text.splitlines()), "shown": entries, "left_out": left_out})
        return
    for number, line in shown:
        say(f"{number}:{line}" if grep else line)
    if left_out or size >= LONGEST_OUTPUT:
        at = shown[-1][0]
        tell(
            f"afresh: stopped in line {at} after {LONGEST_OUTPUT:,} characters; {left_out:,} more lines: --lines {at}:"
        )


def _home() -> Path:
    return Path(os.environ.get("AFRESH_HOME") or "~/.afresh").expanduser()


def _range(lines: str | None, count: int) -> tuple[int, int]:
    if lines is None:
        return 1, count
    found = re.fullmatch(r"(\d{0,12}):(\d{0,12})|(\d{1,12})", lines.strip())
    if found is None:
        msg = f"--lines {lines!r}: give FROM:TO, for example 10:60"
        raise Misuse(msg)
    if found[3]:
        return int(found[3]), int(found[3])
    return int(found[1] or 1), int(found[2] or count)
