"""The value of a label line: where it ends, and its words without the decoration."""

from __future__ import annotations

import re
import textwrap

from lifecycle.checkpoint_lines import LabelLine, with_closed_fences

_QUOTE = re.compile(r"(?:[ \t]{0,3}>){1,20}[ \t]?")
_RULE = re.compile(r"[-*_=]{3,}\Z")
_HEADING = re.compile(r"#{1,6}[ \t]")
_GOES_ON = re.compile(r"[ \t]{2}|\t|[ ]?(?:[-*+•◦▪‣–]|\(?(?:\d{1,3}|[a-zA-Z])[.)]|\[[ xX]\])[ \t]")
"""A line after a blank one that still belongs to the value: a list item, or an indented line."""
_FENCE = re.compile(r"(`{3,}(?=[^`]*\Z)|~{3,})")
_CLOSING_HASHES = re.compile(r"(?<=[ \t])#{1,6}\Z")
_WRAPS = ("***", "**", "*", "``", "`")


def where_value_ends(text: str, line: LabelLine, stop: int) -> int:
    """Where the value of a block's last line ends, at *stop* at the latest.

    A paragraph after a blank line is no part of it, unless it is a list, is indented, or was announced by a colon.
    """
    at, end, last, fence, blank = line.value_at, line.value_at, "", "", False
    while at < stop:
        newline = text.find("\n", at, stop)
        until = stop if newline < 0 else newline
        raw = text[at:until]
        below = at != line.value_at
        plain = _QUOTE.sub("", raw, count=1) if below and line.quoted else raw
        words = plain.strip()
        if below and not fence and _is_outside(line, raw, plain):
            break
        if words and blank and last and not fence and not (last.endswith((":", "：")) or _GOES_ON.match(plain)):
            break
        if words:
            last, end = words, until
            fence = _fence_after(words, fence)
        blank = below and not words
        at = until + 1
    return end


def value_of(text: str, line: LabelLine, until: int) -> str:
    """The words between the label and *until*, without decoration; later lines keep their shape."""
    first, _, rest = text[line.value_at : until].partition("\n")
    first = first.strip()
    if line.table:
        return _cells(first, rest)
    if line.style[1].lstrip().startswith("#"):
        first = _CLOSING_HASHES.sub("", first).rstrip()
    if line.quoted and rest:
        rest = "\n".join(
            _QUOTE.sub("", row, count=1) if row.lstrip().startswith(">") else row for row in rest.split("\n")
        )
    value = f"{first}\n{textwrap.dedent(rest)}".strip() if rest else first
    return with_closed_fences(undecorated(_closed(with_closed_fences(value), line.emphasis)))


def undecorated(value: str) -> str:
    """Return *value* without bold, italic or code marks that wrap all of it; those inside stay."""
    stripped = True
    while stripped:
        stripped = False
        for mark in _WRAPS:
            inner = value[len(mark) : -len(mark)]
            if (
                len(value) > 2 * len(mark)
                and value == f"{mark}{inner}{mark}"
                and mark[0] not in inner
                and _is_wrapped(inner, mark)
            ):
                value, stripped = inner.strip(), True
    return value


def _is_wrapped(inner: str, mark: str) -> bool:
    """A single asterisk may be a file pattern: `*.py and lib/*`."""
    return mark != "*" or (inner[0].isalnum() and inner[-1].isalnum())


def _closed(value: str, emphasis: str) -> str:
    """Take away the end of a decoration that was opened before the label."""
    mark = emphasis[::-1]
    if not mark:
        return value
    if value.endswith(mark):
        return value[: -len(mark)].rstrip()
    return value.removeprefix(mark).lstrip()


def _cells(first: str, rest: str) -> str:
    """A table's cell; a row below it whose first cell is empty continues it."""
    cells = [first]
    for row in rest.split("\n"):
        head, _, tail = row.strip().removeprefix("|").partition("|")
        if not row.lstrip().startswith("|") or head.strip():
            break
        cells.append(tail.strip())
    words = (cell.removesuffix("|").rstrip() if not cell.endswith("\\|") else cell for cell in cells)
    return with_closed_fences(undecorated("\n".join(words).replace("\\|", "|").strip()))


def _is_outside(line: LabelLine, raw: str, plain: str) -> bool:
    if line.quoted and plain.strip() and not raw.lstrip().startswith(">"):
        return True
    heading = "#" in line.style[1] and _HEADING.match(plain) is not None
    return heading or _RULE.match(plain) is not None or (line.table and not plain.lstrip().startswith("|"))


def _fence_after(words: str, fence: str) -> str:
    """The fence that is open after a line, if any."""
    if fence:
        closes = words.startswith(fence) and not words.strip(fence[0])
        return "" if closes else fence
    opens = _FENCE.match(words)
    return opens[1] if opens else ""
