"""The label lines of a reply: where a checkpoint's fields may open, and which of them stand in a code fence."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple


class Label(StrEnum):
    """The labels that Afresh reads, in the order in which it asks for them."""

    STATE = "STATE"
    FILES_CHANGED = "FILES_CHANGED"
    COMMANDS_RUN = "COMMANDS_RUN"
    RESULT = "RESULT"
    BLOCKER = "BLOCKER"
    NEXT_ACTION = "NEXT_ACTION"
    RENEWAL_ID = "RENEWAL_ID"
    WORKER = "WORKER"


REQUIRED = tuple(Label)[:6]

_MOST_LINES = 20_000
"""Label lines looked at, counted from the end: what has more is a log, and the last block is the one that counts."""

_COLONS = ":：﹕︰∶꞉"
_EMOJI = "\u2022\u2023\u2190-\u2bff\u25e6\u2013\u2014\xb7\ufe0f\U0001f000-\U0001faff"
_BETWEEN = r"(?:\\?[ \t_-]){1,3}"
_LINE = re.compile(
    rf"""^(?:
    (?P<quote>[ \t>]{{0,60}}+) (?P<item>(?:[-*+\u2022]|\d{{1,3}}[.)])[ \t]{{1,4}}+)?+
    (?: (?P<ticks>`{{3,}}+) (?P<ticks_info>[^`\n]*+) | (?P<waves>~{{3,}}+) (?P<waves_info>[^\n]*+) ) $
    |
    (?P<lead>(?: [ \t>\#*_`+|{_EMOJI}-] | \(?\d{{1,3}}[.)][ \t] | \[[ xX\u2713\u2714]?\] | \d\ufe0f?\u20e3 ){{0,60}}+)
    (?P<label> state | files{_BETWEEN}changed | commands{_BETWEEN}run | result | blocker | next{_BETWEEN}action
             | renewal{_BETWEEN}id | worker(?:{_BETWEEN}id)? )
    (?P<close>[ \t*_`\#]{{0,20}}+)
    (?= [{_COLONS}\|\n] | \Z)
    )""",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE | re.ASCII,
)
_CELL = re.compile(rf"[{_COLONS}]?[ \t]*\|")
_EMPHASIS_AT_END = re.compile(r"[*_`]+\Z")
_STYLE_NOISE = re.compile(r"[^\x00-\x7f]+ ?|\d+")
_VALUE_FENCE = re.compile(r"[ \t]*(`{3,})[^`\n]*$", re.MULTILINE)
_BLANK_ABOVE = re.compile(r"(?:\A|\n)[ \t>]*\n\Z")


class LabelLine(NamedTuple):
    """A line that may open a field. Offsets count from the start of the text."""

    label: Label
    start: int
    value_at: int
    style: tuple[str, str]
    """Case and decoration: the lines of one block mostly share theirs."""
    emphasis: str
    """Opened before the label and not closed after it."""
    quoted: bool
    table: bool


class Fence(NamedTuple):
    """A code fence by the rules of CommonMark, which close it by its own character and at least its own length."""

    start: int
    content_at: int
    mark: str
    length: int
    indent: int
    depth: int
    content_end: int = -1
    end: int = -1
    """Both are -1 while nothing closed it."""


class Lines(NamedTuple):
    """The label lines of a text, apart by whether a code fence holds them."""

    live: list[LabelLine]
    fenced: list[LabelLine]


def lines_of(text: str) -> Lines:
    """Find the label lines of a legible *text*."""
    live: deque[LabelLine] = deque(maxlen=_MOST_LINES)
    fenced: deque[LabelLine] = deque(maxlen=_MOST_LINES)
    for line, fence in _walk(text):
        if line:
            (fenced if fence else live).append(line)
    return Lines(list(live), list(fenced))


def out_of_its_fence(text: str) -> str:
    """Return what stands in the one closed fence that is all of *text*, else *text* itself."""
    if not text.lstrip(" \t\n>").startswith(("```", "~~~")):
        return text
    first = next((fence for _, fence in _walk(text) if fence and fence.end >= 0), None)
    if first is None or (text[: first.start] + text[first.end :]).strip(" \t\n>"):
        return text
    return text[first.content_at : first.content_end]


def with_closed_fences(value: str) -> str:
    """Return *value* with its last code fence closed, or dropped if it is empty, so that no text after it is code."""
    if "```" not in value and "~~~" not in value:
        return value
    fence = next((fence for line, fence in _walk(value) if line is None and fence and fence.end < 0), None)
    if fence is None or fence.depth:  # the end of a quotation closes its fence
        return value
    if not value[fence.start :].strip(" \t`~"):
        return value[: fence.start].rstrip()
    return f"{value}\n{' ' * fence.indent}{fence.mark * fence.length}"


def _walk(text: str) -> Iterator[tuple[LabelLine | None, Fence | None]]:
    """Yield the label lines, each with the fence that holds it, and every fence at its end."""
    fence: Fence | None = None
    for found in _LINE.finditer(text):
        if fence and _quote_depth(found) < fence.depth:
            yield None, fence._replace(content_end=found.start(), end=found.start())
            fence = None
        if found["label"] is None:
            if fence is None:
                fence = _opened_by(found)
            elif _closes(found, fence):
                yield None, fence._replace(content_end=found.start(), end=found.end())
                fence = None
        elif line := _label_line(text, found):
            yield line, fence
            if fence is None and (inline := _VALUE_FENCE.match(text, line.value_at)):
                fence = Fence(line.start, inline.end() + 1, "`", len(inline[1]), len(found["lead"]), 0)
    if fence:
        yield None, fence


def first_of_paragraph(text: str, start: int) -> bool:
    """Whether the line at *start* is the first of its paragraph."""
    return start == 0 or _BLANK_ABOVE.search(text[max(0, start - 80) : start]) is not None


def _quote_depth(found: re.Match[str]) -> int:
    return (found["quote"] if found["label"] is None else found["lead"]).count(">")


def _opened_by(found: re.Match[str]) -> Fence:
    run = found["ticks"] or found["waves"]
    indent = len(found["quote"].rpartition(">")[2]) + len(found["item"] or "")
    return Fence(found.start(), found.end() + 1, run[0], len(run), indent, found["quote"].count(">"))


def _closes(found: re.Match[str], fence: Fence) -> bool:
    run = found["ticks"] or found["waves"]
    info = found["ticks_info"] or found["waves_info"] or ""
    indent = len(found["quote"].rpartition(">")[2])
    return (
        run[0] == fence.mark
        and len(run) >= fence.length
        and not info.strip()
        and found["item"] is None
        and indent <= fence.indent + 3
        and found["quote"].count(">") == fence.depth
    )


def _label_line(text: str, found: re.Match[str]) -> LabelLine | None:
    lead, close, at = found["lead"], found["close"].strip(" \t#"), found.end()
    opened = _EMPHASIS_AT_END.search(lead)
    emphasis = opened[0] if opened else ""
    table = "|" in lead
    if table and (cell := _CELL.match(text, at)):
        at, emphasis = cell.end(), ""
    elif text[at : at + 1] in ("", "\n"):
        if "#" not in lead and not (emphasis and close):
            return None  # a bare word is no heading
        emphasis = ""
    elif text[at] == "|":
        return None
    else:
        at += 1
        run = close or emphasis[::-1]
        if bool(emphasis) != bool(close) and text.startswith(run, at):  # the decoration ends behind the colon
            at, close = at + len(run), run
        if close:
            emphasis = ""
    style = (_case(found["label"]), _STYLE_NOISE.sub("", lead))
    return LabelLine(_label(found["label"]), found.start(), at, style, emphasis, ">" in lead, table)


def _label(words: str) -> Label:
    name = "_".join(re.findall("[A-Z]+", words.upper()))
    return Label.WORKER if name.startswith(Label.WORKER) else Label(name)


def _case(words: str) -> str:
    return "upper" if words.isupper() else "lower" if words.islower() else "mixed"
