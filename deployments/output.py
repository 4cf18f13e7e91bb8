"""What a command prints: one JSON document, or text for people; errors as one line on standard error."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lifecycle.errors import LifecycleError, Misuse
from lifecycle.value import Value

DONE, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130

NARROWEST = 30
"""Columns that a last column needs to be read; with fewer it gets lines of its own."""


def print_json(value: Value | Sequence[Value] | dict[str, Any] | list[Any]) -> None:
    """Print one JSON document on standard output."""
    print(json.dumps(_plain(value), ensure_ascii=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, Value):
        return value.model_dump(mode="json")
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def say(line: str = "") -> None:
    print(line, flush=True)


def tell(line: str) -> None:
    """Progress and warnings, which never mix with a JSON document. That nobody reads them any more ends nothing."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:  # a pipe or a terminal that is gone; a renewal between stop and start must go on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def exit_code_of(error: LifecycleError) -> int:
    return MISUSED if isinstance(error, Misuse) else FAILED


def page_width() -> int | None:
    """Columns of the terminal; None where a program reads, for which nothing is wrapped."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def aligned(rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Lines with the cells of each column under each other. The last column is wrapped to *width* under itself."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    lines: list[str] = []
    for row in rows:
        cells = "".join(f"{cell.ljust(size)}  " for cell, size in zip(row, widths, strict=False))
        lines += _with_last(cells, row[-1], width)
    return lines


def _with_last(cells: str, last: str, width: int | None) -> list[str]:
    if width is None or len(cells) + len(last) <= width:
        return [f"{cells}{last}".rstrip()]
    if width - len(cells) < max([NARROWEST, *map(len, last.split())]):
        return [cells.rstrip(), *indented(last, width)]
    first, *more = _wrapped(last, width - len(cells)) or [""]
    return [f"{cells}{first}", *(f"{' ' * len(cells)}{line}" for line in more)]


def indented(text: str, width: int | None, by: str = "  ") -> list[str]:
    """Lines of *text* behind an indent, wrapped to *width* where there is one."""
    lines = text.splitlines()
    if width is not None:
        lines = [part for line in lines for part in _wrapped(line, max(width - len(by), NARROWEST)) or [""]]
    return [f"{by}{line}".rstrip() for line in lines]


def _wrapped(text: str, width: int) -> list[str]:
    """A path or an id is never broken: it is there to be copied."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def ago(seconds: float) -> str:
    """An age in the largest unit that leaves a number of at least one."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"


def stamp(at: datetime) -> str:
    """A moment in UTC, to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S}Z"
