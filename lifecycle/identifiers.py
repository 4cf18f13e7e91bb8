"""Identifiers that must cross a renewal as they are: paths, ports, URLs, commits, ticket ids. Pure.

A summary that rounds one of them off is wrong where it looks right (openclaw #79588: UUIDs lost in summaries).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Literal

from lifecycle.conversation import Conversation, Entry, arguments_of
from lifecycle.foreign_text import encodable
from lifecycle.prompts import is_ours
from lifecycle.value import Value

LAST_MESSAGES = 30
"""How many of the last messages and calls are looked at."""

MOST = 40
"""So many are kept; a handoff that must hold hundreds of them is a listing."""

LONGEST = 300

WORDS_OF_A_PATH = 3
"""So many words with slashes between them are a path, without any other sign of one."""

Kind = Literal["url", "path", "port", "commit", "ticket"]

_SUFFIXES = (
    "c|cc|cfg|conf|cpp|cs|css|csv|db|env|go|h|hpp|html|ini|ipynb|java|js|json|jsonl|jsx|kt|lock|log|md|mjs|php|proto|ps1"
    "|py|pyi|rb|rs|rst|scss|sh|sql|sqlite|svg|swift|tf|toml|ts|tsx|txt|vue|xml|yaml|yml"
)
_BEFORE, _AFTER = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,12}://[^\s<>\"'`|\\\]})，。；、）]{3,300}", re.IGNORECASE)
_PATH = re.compile(
    r"(?<![A-Za-z0-9_./~:<-])"
    r"(?:(?:~|\.{1,2})?/(?:[A-Za-z0-9_@%+=.,-]{1,100}/?){1,40}"
    r"|(?:[A-Za-z0-9_@+.-]{1,100}/){1,40}[A-Za-z0-9_@+.-]{1,100}"
    rf"|[A-Za-z0-9_][A-Za-z0-9_.-]{{0,99}}\.(?:{_SUFFIXES}){_AFTER})"
)
_PORT = re.compile(
    rf"(?:(?:\bports?\b|端口)[ \t]{{0,3}}[:=#号是为]?[ \t]{{0,3}}|[A-Za-z0-9.\]]:)(\d{{2,5}}){_AFTER}", re.IGNORECASE
)
_COMMIT = re.compile(rf"{_BEFORE}(?=[0-9a-f]*[a-f])(?=[a-f]*[0-9])(?:[0-9a-f]{{7,40}}|[0-9a-f]{{64}}){_AFTER}")
_TICKET = re.compile(
    rf"{_BEFORE}(?!(?:UTF|SHA|ISO|MD|RFC|CP|GPT|X|AES|HTTP|TLS)-)[A-Z][A-Z0-9]{{1,9}}-\d{{1,7}}{_AFTER}|(?<![\w&#/])#\d{{1,7}}{_AFTER}"
)
_TIME = re.compile(r"(?<![\w.])\d{1,2}:\d{2}(?::\d{2})?(?!\d)")
_LONGEST_TEXT = 20_000
_CONTENT = frozenset({"content", "patch", "old_string", "new_string", "code"})
_ENDING = ".,;:!?*_"


class Identifier(Value):
    """One identifier, as it was used last."""

    kind: Kind
    text: str

    @property
    def told(self) -> str:
        """The text, with its kind where that does not show."""
        return f"{self.kind} {self.text}" if self.kind in ("port", "commit") else self.text

    def stands_in(self, text: str) -> bool:
        """Whether *text* holds it: a port as a number of its own, a commit also by seven digits or more of it."""
        if self.kind == "port":
            return re.search(rf"(?<![\d.]){self.text}(?!\d)", text) is not None
        if self.kind == "commit":
            found = _COMMIT.findall(text)
            return any(self.text.startswith(one) or one.startswith(self.text) for one in found)
        if self.kind == "ticket":
            return re.search(rf"(?<![A-Za-z0-9]){re.escape(self.text)}(?!\d)", text) is not None
        return re.search(rf"(?<![A-Za-z0-9_]){re.escape(self.text.rstrip('/'))}(?![A-Za-z0-9_])", text) is not None


def identifiers_in(text: str) -> list[Identifier]:
    """All of *text*, each as often as it stands there; what a URL or a path holds is none of its own."""
    found: list[Identifier] = []

    def taken(kind: Kind, match: re.Match[str]) -> str:
        words = (match[1] if match.re.groups else match[0]).rstrip(_ENDING)
        if not _is_one(kind, words):
            return match[0]
        found.append(Identifier(kind=kind, text=words))
        return _blank(match)

    rest = _TIME.sub(_blank, encodable(text))  # its minutes are no port
    for kind, pattern in _PATTERNS:
        rest = pattern.sub(partial(taken, kind), rest)
    return found


def must_survive(
    conversation: Conversation, *, before_row: int | None = None, ours: Sequence[str] = ()
) -> tuple[Identifier, ...]:
    """What the handoff of this conversation must hold: used twice or more in its last messages, or once in the last
    request or an open to-do. Tool results alone use nothing: what only scrolled by is no work.

    *before_row* is the row of our request; *ours* are folders of Afresh's own, whose files need not cross.
    """
    entries = [entry for entry in conversation.entries if before_row is None or entry.row < before_row]
    entries = [entry for entry in entries if not (entry.role == "user" and is_ours(entry.text))]
    asked = next((entry.text for entry in reversed(entries) if entry.role == "user"), "")
    first = [
        *_each(identifiers_in(asked[:_LONGEST_TEXT])),
        *_each(one for todo in conversation.todos for one in identifiers_in(todo.content)),
    ]
    used = Counter(one for entry in entries[-LAST_MESSAGES:] for one in _used_in(entry))
    shown = Counter(one for entry in entries[-LAST_MESSAGES:] for one in _shown_in(entry))
    often = [one for one, times in used.most_common() if times + shown[one] > 1]
    wanted = [one for one in _each([*first, *often]) if not any(folder in one.text for folder in ours)]
    return tuple(wanted[:MOST])


def lost_from(text: str, wanted: Iterable[Identifier]) -> tuple[Identifier, ...]:
    """Those of *wanted* that *text* does not hold."""
    return tuple(one for one in wanted if not one.stands_in(text))


_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("url", _URL),
    ("port", _PORT),
    ("path", _PATH),
    ("ticket", _TICKET),
    ("commit", _COMMIT),
)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _is_one(kind: Kind, words: str) -> bool:
    match kind:
        case "port":
            return 10 <= int(words) <= 65_535
        case "path":
            return len(words) <= LONGEST and _is_path(words)
        case _:
            return len(words) <= LONGEST


def _is_path(words: str) -> bool:
    """A lone slash, `1/2` and `and/or` are none."""
    named = [part for part in re.split(r"[/~]", words) if part.strip(".")]
    is_plain = words[0] not in "~/." and "." not in words
    is_number = words.replace("/", "").replace(".", "").isdigit()
    return bool(named) and not is_number and (len(named) >= WORDS_OF_A_PATH or not is_plain)


def _used_in(entry: Entry) -> list[Identifier]:
    if entry.call is None:
        return identifiers_in(entry.text[:_LONGEST_TEXT])
    named = arguments_of(entry.call).items()
    # What stands in a file that was written is not what was worked with.
    texts = (text for key, text in named if isinstance(text, str) and key not in _CONTENT)
    return identifiers_in("\n".join(texts)[:_LONGEST_TEXT])


def _shown_in(entry: Entry) -> list[Identifier]:
    outcome = entry.call.outcome if entry.call is not None else None
    return _each(identifiers_in((outcome or "")[:_LONGEST_TEXT]))


def _each(found: Iterable[Identifier]) -> list[Identifier]:
    return list(dict.fromkeys(found))
