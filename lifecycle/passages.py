"""A document in passages: small enough to be quoted, cut where its author would cut it."""

from __future__ import annotations

import re

from lifecycle.value import Value

SIZE = 300
"""Estimated tokens of a passage at most."""

OVERLAP = 32
"""Estimated tokens that a passage repeats of the one before, where the cut falls inside a section."""

_HEADING = re.compile(r"#{1,6} +(.{1,200})")
_WIDE = re.compile(
    r"[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003134f]"
)


class Passage(Value):
    """A part of a document, and the heading that it stands under."""

    heading: str
    text: str


def passages_of(text: str, *, has_headings: bool = True) -> list[Passage]:
    """*text* in passages of at most `SIZE` estimated tokens. Nothing is lost but blank ends.

    Without headings, as in a tool's output, a line that begins with `#` is a line like any other.
    """
    found: list[Passage] = []
    heading, lines, size, fresh = "", list[str](), 0, False

    def close() -> None:
        if fresh and (body := "\n".join(lines).strip()):
            found.append(Passage(heading=heading, text=body))

    for line in text.splitlines():
        if has_headings and (title := _HEADING.fullmatch(line.rstrip())):
            close()
            heading, lines, size, fresh = title[1].strip(), [], 0, False
            continue
        for piece in _pieces(line):
            cost = estimate(piece) + 1
            if size + cost > SIZE:
                close()
                lines = _tail(lines)
                size, fresh = sum(estimate(kept) + 1 for kept in lines), False
            lines.append(piece)
            size += cost
            fresh = fresh or bool(piece.strip())
    close()
    return found


def estimate(text: str) -> int:
    """Tokens of *text*, rather too many: one for a wide character, one for three others."""
    wide = len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // 3)


def _pieces(line: str) -> list[str]:
    """A line that is longer than a passage in pieces that fit beside the overlap."""
    room = SIZE - OVERLAP - 2
    if estimate(line) <= room:
        return [line]
    step = room if _WIDE.search(line) else room * 3
    return [line[at : at + step] for at in range(0, len(line), step)]


def _tail(lines: list[str]) -> list[str]:
    """The last lines of a passage, as many as the overlap holds; of a long one its end."""
    kept: list[str] = []
    left = OVERLAP
    for line in reversed(lines):
        if estimate(line) > left:
            if not kept:
                kept.append(line[-left:])
            break
        kept.insert(0, line)
        left -= estimate(line) + 1
    return kept
