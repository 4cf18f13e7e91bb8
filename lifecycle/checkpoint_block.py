"""Which label lines form a block. Blocks are never mixed; the last complete one is chosen.

A block in the order of the template may hold other label-like lines inside its values. A block in another order must be
six label lines in a row: with a seventh among them nobody can say which one is the field. Lines of one style (case and
decoration) are tried as a block before lines of several are.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import NamedTuple

from lifecycle.checkpoint_lines import REQUIRED, Label, LabelLine, first_of_paragraph, lines_of
from lifecycle.checkpoint_value import value_of, where_value_ends

_ONE_WORD = re.compile(r"[\W_]*+\w+[\W_]*\Z")
_BLANK_LINE = re.compile(r"\n[ \t>]{0,60}+\n")
_HEADER = re.compile(
    r"^[ \t>#*_]{0,20}+handoff[ \t]{1,4}[—–-]{1,2}[ \t]{1,4}[*_`]{0,3}"
    r"([A-Za-z][A-Za-z0-9-]{0,63})[*_`]{0,3}[ \t]{1,4}[—–-]{1,2}[ \t]",
    re.MULTILINE | re.IGNORECASE | re.ASCII,
)
_JUST_ABOVE = 400
"""Characters above a block in which a handoff's heading belongs to it."""

Six = tuple[LabelLine, ...]


class Block(NamedTuple):
    """The words of one complete block."""

    state: str
    files_changed: str
    commands_run: str
    result: str
    blocker: str
    next_action: str
    renewal_id: str = ""
    worker: str = ""
    header: str = ""
    """The worker that a handoff's heading just above the block names."""


class Found(NamedTuple):
    """What a text holds: a block, or else what it lacks."""

    block: Block | None
    begun: bool
    """At least a part of a block stands outside of a code fence."""
    missing: tuple[Label, ...]
    fenced: bool
    """A complete block stands in a code fence."""


def find_block(text: str) -> Found:
    """Look for the last complete block in a legible *text*."""
    lines = lines_of(text)
    required = [line for line in lines.live if line.label in REQUIRED]
    if six := _last_complete(text, required):
        return Found(_block(text, six, lines.live), begun=True, missing=(), fenced=False)
    fenced = _last_complete(text, [line for line in lines.fenced if line.label in REQUIRED]) is not None
    states = [number for number, line in enumerate(required) if line.label is Label.STATE]
    attempt = {line.label for line in (required[states[-1] :] if len(states) > 1 else required)}
    missing = tuple(label for label in REQUIRED if label not in attempt)
    return Found(None, begun=bool(states) or len(attempt) > 2, missing=missing, fenced=fenced)


def _last_complete(text: str, lines: list[LabelLine]) -> Six | None:
    styles: dict[tuple[str, str], list[LabelLine]] = {}
    for line in lines:
        styles.setdefault(line.style, []).append(line)
    found: list[Six] = []
    for any_order in (False, True):
        for group in ([*styles.values()], [lines]):
            taken = _spans(found)
            for members in group:
                for gap, run in _outside(taken, members):
                    sixes = _in_a_row(text, run, below_block=gap > 0) if any_order else _in_order(text, run)
                    found += (six for six in sixes if _is_of_one_piece(text, six))
    return max(found, key=lambda six: six[-1].start, default=None)


def _in_order(text: str, lines: list[LabelLine]) -> Iterator[Six]:
    """Blocks in the template's order, from the last to the first.

    A STATE line inside such a block is a part of a value, unless a block of its own begins there: a complete one, or
    after a blank line one that looks the same or says nothing but a state.
    """
    none = len(lines)
    following: dict[Label, int] = {}
    looking_alike: dict[tuple[str, str], int] = {}
    limit = none
    for at in range(none - 1, -1, -1):
        line = lines[at]
        if line.label is Label.STATE:
            places = [at, *(following.get(label, none) for label in REQUIRED[1:])]
            complete = places == sorted(places) and places[-1] < min(limit, looking_alike.get(line.style, none))
            if complete:
                yield tuple(lines[place] for place in places)
            if first_of_paragraph(text, line.start):
                looking_alike[line.style] = at
                complete = complete or _says_one_word(text, line)
            if complete:
                limit = at
        following[line.label] = at


def _in_a_row(text: str, lines: list[LabelLine], *, below_block: bool) -> Iterator[Six]:
    """Blocks in any order: six different label lines in a row, with nothing label-like directly above or below.

    Only another block whose lines stand in the same order may follow without a blank line.
    """
    at, follows = 0, False
    while at + 6 <= len(lines):
        six = tuple(lines[at : at + 6])
        order = [line.label for line in six]
        again = [line.label for line in lines[at + 6 : at + 12]] == order
        if (
            len(set(order)) == 6
            and (follows or first_of_paragraph(text, six[0].start) or not (at or below_block))
            and (again or at + 6 == len(lines) or first_of_paragraph(text, lines[at + 6].start))
        ):
            yield six
            at, follows = at + 6, again
        else:
            at, follows = at + 1, False


def _is_of_one_piece(text: str, six: Six) -> bool:
    """Whether the style changes at most from line to line: behind a blank line, another style is another text."""
    return not any(
        line.style != following.style and _BLANK_LINE.search(text, line.value_at, following.start)
        for line, following in pairwise(six)
    )


def _spans(found: list[Six]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for start, end in sorted((six[0].start, six[-1].start) for six in found):
        if not spans or start > spans[-1][1]:
            spans.append((start, end))
        elif end > spans[-1][1]:
            spans[-1] = (spans[-1][0], end)
    return spans


def _outside(spans: list[tuple[int, int]], lines: list[LabelLine]) -> Iterator[tuple[int, list[LabelLine]]]:
    """The lines between the spans, one run for each gap; gap 0 is above the first span."""
    starts = [start for start, _ in spans]
    for gap, run in groupby(lines, key=lambda line: bisect_right(starts, line.start)):
        free = [line for line in run if gap == 0 or line.start > spans[gap - 1][1]]
        if free:
            yield gap, free


def _says_one_word(text: str, line: LabelLine) -> bool:
    value = value_of(text, line, _line_end(text, line.value_at))
    return len(value) < 80 and _ONE_WORD.match(value) is not None


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _block(text: str, six: Six, lines: list[LabelLine]) -> Block:
    first, last = six[0], six[-1]
    above = [line for line in lines if line.label not in REQUIRED and line.start < first.start]
    inside = [
        line
        for line in lines
        if line.label not in REQUIRED and first.start < line.start < last.start and line.style == first.style
    ]
    stop = next((line.start for line in lines if line.start > last.start and _ends_block(text, line, first)), len(text))
    end = where_value_ends(text, last, stop)
    below = [line for line in lines if last.start < line.start < stop and _belongs_below(text, line, first, end)]
    opened = sorted((*_joined(text, above, first), *six, *inside, *below), key=lambda line: line.start)
    values: dict[str, str] = {}
    for line, following in zip(opened, [*opened[1:], None], strict=True):
        until = following.start if following else end if line is last else _line_end(text, line.value_at)
        values.setdefault(line.label.lower(), value_of(text, line, until))
    header = _HEADER.findall(text, max(0, opened[0].start - _JUST_ABOVE), opened[0].start)
    return Block(**values, header=header[-1] if header else "")


def _ends_block(text: str, line: LabelLine, first: LabelLine) -> bool:
    """Whether a label line below a complete block begins another one, which then is not complete."""
    if line.label not in REQUIRED or line.style != first.style:
        return False
    return line.label is not Label.STATE or first_of_paragraph(text, line.start) or _says_one_word(text, line)


def _belongs_below(text: str, line: LabelLine, first: LabelLine, end: int) -> bool:
    if line.label in REQUIRED or (line.start >= end and text[end : line.start].strip(" \t\n>")):
        return False
    return line.label is Label.RENEWAL_ID or line.style == first.style


def _joined(text: str, above: list[LabelLine], first: LabelLine) -> list[LabelLine]:
    """Of the optional lines above a block those that stand directly above it, without a blank line between."""
    joined: list[LabelLine] = []
    below = first
    for line in reversed(above):
        if _line_end(text, line.value_at) + 1 != below.start:
            break
        joined.append(line)
        below = line
    return joined
