"""Text from outside - a worker, a file - made fit to be kept and quoted."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

SECTION_HEAD, SECTION_TAIL = 8_000, 4_000
"""Characters that are kept of the two ends of a longer section: 9 sections, 108,000 characters at most."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)?|[@-Z\\-_])?")
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n`]*)")


def encodable(text: str) -> str:
    """*text* without the half surrogate pairs that JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def cleaned(text: str) -> str:
    """*text* with plain newlines and without escape sequences, control and direction characters (S2).

    Tabs and newlines stay. The result can always be encoded.
    """
    text = encodable(text)
    for newline in ("\r\n", "\r", "\x85", "\u2028", "\u2029"):
        text = text.replace(newline, "\n")
    return _UNSEEN.sub("", _ANSI.sub("", text))


def bounded(text: str, head: int = SECTION_HEAD, tail: int = SECTION_TAIL) -> str:
    """*text*, or its two ends with a note of how much was left out between them."""
    left_out = len(text) - head - tail
    if left_out <= 0:
        return text
    return f"{text[:head].rstrip()}\n\n[… {left_out:,} characters left out …]\n\n{text[-tail:].lstrip()}"


def unfenced(lines: list[str]) -> Iterator[tuple[int, bool]]:
    """Every line's number, and whether it is outside code fences. A fence that never closes is no fence."""
    at = 0
    unclosed = {"`": sys.maxsize, "~": sys.maxsize}  # no fence as long as this is closed any more
    while at < len(lines):
        opening = FENCE.fullmatch(lines[at])
        fence = opening[1] if opening else ""
        closing = _closing(lines, at + 1, fence) if fence and len(fence) < unclosed[fence[0]] else None
        if closing is None:
            if fence:
                unclosed[fence[0]] = min(unclosed[fence[0]], len(fence))
            yield at, True
            at += 1
        else:
            yield from ((number, False) for number in range(at, closing + 1))
            at = closing + 1


def _closing(lines: list[str], begin: int, fence: str) -> int | None:
    for number in range(begin, len(lines)):
        found = FENCE.fullmatch(lines[number])
        if found and found[1].startswith(fence) and not found[2].strip():
            return number
    return None
