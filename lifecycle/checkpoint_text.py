"""The text of a reply, made legible: no escapes, one kind of line end, plain spaces; JSON strings unwrapped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

# Every pattern here is linear on any input: quantifiers are possessive or bounded, runs begin at their first character.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]*+(?:\x07|\x1b\\|\x9c)"  # titles, links
    r"|\x1b[()*+#%][0-9A-Za-z@]"  # character sets
    r"|\x1b[=>78DEHMNOZc]"
)
_LINE_END = re.compile(r"\r{1,3}\n|[\r\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]+")
_SPACE = re.compile(r"[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_INVISIBLE = re.compile(r"[\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")
_STRAY_JOINER = re.compile(r"[\u200c\u200d](?=[\x00-\x7f]|\Z)|(?<![^\x00-\x7f])[\u200c\u200d]+")
"""Joiners that join nothing; between two non-ASCII characters they belong to the script or the emoji."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LINE_TAIL = re.compile(r"(?<![ \t])[ \t]++(?=\n|\Z)")
_BLANK_LINES = re.compile(r"\n{3,}+")


def legible(text: str) -> str:
    """Return *text* without terminal escapes, control and invisible characters, trailing blanks, runs of blank lines.

    Lines end with a line feed, spaces of every kind are plain, a lone surrogate is U+FFFD.
    """
    text = _LINE_END.sub("\n", _ESCAPE.sub("", text))
    if not text.isascii():
        text = _SURROGATE.sub("\ufffd", text)
        text = _STRAY_JOINER.sub("", _INVISIBLE.sub("", _SPACE.sub(" ", text)))
    return _BLANK_LINES.sub("\n\n", _LINE_TAIL.sub("", _CONTROL.sub("", text)))


def strings_of_json(text: str) -> list[str]:
    """Return the strings that the JSON document *text* holds, in their order; none if it is no JSON."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return []
    try:
        return list(_strings(json.loads(text, strict=False)))
    except (ValueError, RecursionError):
        return []


def _strings(document: object) -> Iterator[str]:
    waiting = [document]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting.extend(reversed(item.values()))
        elif isinstance(item, list):
            waiting.extend(reversed(item))
