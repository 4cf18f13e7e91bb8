"""What a conversation shows of the work, each piece bounded and dated, so that the oldest can go first. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

from lifecycle.conversation import Conversation, Entry, Todo, arguments_of, exit_code
from lifecycle.fitting import fitted
from lifecycle.foreign_text import bounded, cleaned
from lifecycle.prompts import is_ours, one_line
from lifecycle.redaction import redact
from lifecycle.tokens import TokenCounter
from lifecycle.transcript import ToolCall

LAST_REQUESTS = 40
LAST_CALLS = 25
LAST_FILES = 50
LAST_MESSAGES = 40
LAST_FAILURES = 3
LAST_TODOS = 20
SHORT = 300
QUOTED_HEAD, QUOTED_TAIL = 900, 350
"""Characters kept of the two ends of a longer request."""

REQUESTS, MESSAGES = 5_500, 3_500
"""Characters of all requests but the last and of all messages: with these they fit into a section."""

MESSAGE_HEAD, MESSAGE_TAIL = 350, 150
NOT_STATED = "not stated by the worker"

PART = 0.15
"""The share of the budget that any one text may have: first request, last request, last words, an older summary."""

_KINDS = ("summary", "message", "request", "failure", "command", "file")
_TRACEBACK = re.compile(
    r"^(?:Traceback \(most recent|\w*(?:Error|Exception): |error(?:\[\w+\])?: |fatal: )", re.MULTILINE
)


@dataclass(frozen=True)
class Piece:
    """One thing that can be left out. *row* is its age."""

    row: int
    kind: str
    text: str


@dataclass(frozen=True)
class Pieces:
    """The pieces, oldest first, and what is never left out: the objective, the last request, open calls and to-dos."""

    objective: str
    last_request: str
    last_words: str
    open_calls: list[str]
    todos: tuple[Todo, ...]
    droppable: tuple[Piece, ...]
    dropped: tuple[Piece, ...] = ()

    def without_oldest(self, number: int) -> Pieces:
        gone, kept = self.droppable[:number], self.droppable[number:]
        return replace(self, droppable=kept, dropped=(*self.dropped, *gone))

    @property
    def told_dropped(self) -> str:
        """What was left out, in a sentence; empty where nothing was."""
        if not self.dropped:
            return ""
        counted = Counter(piece.kind for piece in self.dropped)
        told = ", ".join(f"{counted[kind]} {kind}{'s' * (counted[kind] > 1)}" for kind in _KINDS if counted[kind])
        return f"Left out for the budget, oldest first: {told}."

    @property
    def requests(self) -> str:
        return "\n\n".join(filter(None, [*self._of("request"), self.last_request]))

    @property
    def messages(self) -> str:
        return "\n\n".join(self._of("message"))

    @property
    def summary(self) -> str:
        return "\n".join(self._of("summary"))

    @property
    def files(self) -> list[str]:
        return self._of("file")

    @property
    def commands(self) -> list[str]:
        return self._of("command")

    @property
    def shell(self) -> list[str]:
        """The commands alone, without the other tools."""
        prefix = "terminal: "
        return [text.removeprefix(prefix) for text in self.commands if text.startswith(prefix)]

    @property
    def failures(self) -> list[str]:
        return self._of("failure")

    def _of(self, kind: str) -> list[str]:
        return [piece.text for piece in self.droppable if piece.kind == kind]


def pieces_of(found: Conversation, *, tokens: int, count: TokenCounter) -> Pieces:
    """The pieces of *found*, no single text of it longer than its share of *tokens*."""
    part = int(tokens * PART)
    asked = [entry for entry in found.requests if not is_ours(entry.text)]
    answers = [entry for entry in found.entries if entry.role == "assistant"]
    calls = [entry for entry in found.entries if entry.call is not None]
    pieces = [
        *([Piece(0, "summary", quoted(found.summary, part, count))] if found.summary else []),
        *_newest(
            [Piece(entry.row, "request", quoted(entry.text, part, count)) for entry in asked[-LAST_REQUESTS:-1]],
            REQUESTS,
        ),
        *_newest(_messages(found, part, count), MESSAGES),
        *_failures(calls),
        *_commands(calls),
        *_files(calls),
    ]
    return Pieces(
        objective=quoted(asked[0].text, part, count) if asked else "",
        last_request=quoted(asked[-1].text, part, count) if asked else "",
        last_words=quoted(answers[-1].text, part, count) if answers else "",
        open_calls=[told(entry.call) for entry in calls if entry.call and entry.call.outcome is None][-LAST_CALLS:],
        todos=tuple(_short(todo) for todo in found.todos[:LAST_TODOS]),
        droppable=tuple(sorted((piece for piece in pieces if piece.text), key=lambda piece: piece.row)),
    )


def told(call: ToolCall) -> str:
    """A call in one line."""
    arguments = arguments_of(call)
    what = arguments.get("command") or arguments.get("path") or call.arguments
    return one_line(redact(f"{call.name}: {what}"), SHORT)


def quoted(text: str, tokens: int, count: TokenCounter) -> str:
    """The words of others, bounded; quoted, so that none of their lines is a heading of the document."""
    kept = bounded(redact(cleaned(text)).strip(), QUOTED_HEAD, QUOTED_TAIL)
    return "\n".join(f"> {line}" for line in fitted(kept, tokens, count).splitlines())


def _messages(found: Conversation, part: int, count: TokenCounter) -> list[Piece]:
    """What the worker said before its last words."""
    said = [entry for entry in found.entries if entry.role == "assistant"]
    texts = ((entry.row, bounded(entry.text, MESSAGE_HEAD, MESSAGE_TAIL)) for entry in said[-LAST_MESSAGES - 1 : -1])
    return [Piece(row, "message", quoted(text, part, count)) for row, text in texts]


def _newest(pieces: list[Piece], characters: int) -> list[Piece]:
    """As many of the last ones as have together no more than so many characters."""
    kept: list[Piece] = []
    for piece in reversed(pieces):
        characters -= len(piece.text) + 2
        if characters < 0:
            break
        kept.append(piece)
    return kept[::-1]


def _failures(calls: list[Entry]) -> list[Piece]:
    found: list[Piece] = []
    for entry in reversed(calls):
        call = entry.call
        if call is None or call.outcome is None or len(found) == LAST_FAILURES:
            continue
        code = exit_code(call)
        if code not in (None, 0) or (code is None and _TRACEBACK.search(call.outcome)):
            ending = one_line(redact(_output(call))[-SHORT:], SHORT)
            found.append(
                Piece(entry.row, "failure", f"{told(call)} → {'failed' if code is None else f'exit {code}'}: {ending}")
            )
    return found[::-1]


def _output(call: ToolCall) -> str:
    arguments = arguments_of(call.model_copy(update={"arguments": call.outcome or ""}))
    return str(arguments.get("output") or arguments.get("error") or call.outcome)


def _commands(calls: list[Entry]) -> list[Piece]:
    """The last distinct calls, each where it was made last."""
    found: dict[str, Piece] = {}
    for entry in calls:
        if entry.call is not None:
            code = exit_code(entry.call)
            line = told(entry.call) + (f" → exit {code}" if code is not None else "")
            found.pop(line, None)
            found[line] = Piece(entry.row, "command", line)
    return list(found.values())[-LAST_CALLS:]


def _files(calls: list[Entry]) -> list[Piece]:
    """The files that were written last, each where it was written last, with how often."""
    found: dict[str, int] = {}
    times: Counter[str] = Counter()
    for entry in calls:
        for path in entry.call.files if entry.call is not None else ():
            named = one_line(redact(path), SHORT)
            found.pop(named, None)
            found[named] = entry.row
            times[named] += 1
    kept = list(found.items())[-LAST_FILES:]
    return [Piece(row, "file", path + (f" ({times[path]} times)" if times[path] > 1 else "")) for path, row in kept]


def _short(todo: Todo) -> Todo:
    return todo.model_copy(update={"content": one_line(redact(todo.content), SHORT)})
