"""What each face takes as written, and how our text looks in its input line.

Typed text is code to Hermes: the TUI runs `{!command}` and a leading `!` in a shell without asking, and both faces
take a leading `/word` as a command. Measured on 0.19.
"""

from __future__ import annotations

import re
from pathlib import Path

from lifecycle.agents.hermes.compacting import is_compact_command
from lifecycle.agents.hermes.display import input_settings
from lifecycle.agents.hermes.face_cli import TALLEST_INPUT
from lifecycle.errors import TextNotSendable
from lifecycle.screen import Face, PaneLook

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Everything but tab and line feed: keys to a terminal. A carriage return is Enter."""

_LEADING_PATH = re.compile(r"[\"']?(?:/|~|\.{1,2}/|file://|[A-Za-z]:[\\/])")
"""A slash command, or a file that is attached and cut off the text."""

_REFERENCE = re.compile(r"(?<![\w/])@(?:(?:diff|staged)\b|(?:file|folder|git|url):)")
"""The classic face replaces it by what it names (agent/context_references.py)."""

_LEAKED = re.compile(r"\[20[01]~|0[01]~|\^\[\[|<\d+;\d+;\d+[Mm]")
"""Remains of terminal sequences, which Hermes takes out of what is typed (hermes_cli/input_sanitize.py)."""

_COMPLETED = re.compile(r"(?:/|@)\S*$")
"""The end of a text at which Enter takes a path completion instead of sending (the TUI's TAB_PATH_RE, and more)."""

_PASTED = re.compile(r"\[Pasted text #\d+: (?P<lines>\d+) lines → (?P<path>.+)\]", re.DOTALL)
_TOKEN = re.compile(r"\[\[(?P<preview>.*)\]\]")
HEAD, TAIL = 16, 28
"""Characters of a collapsed paste that the TUI shows of its beginning and its end."""


def check_sendable(text: str, face: Face, profile: Path, *, busy: bool) -> None:
    """Refuse *text* that this face would run, complete, collapse for good or swallow.

    The one command that is let through is Afresh's own for compacting, in the very form that it has for this face.

    Raises:
        TextNotSendable: with the reason; nothing was typed.
    """
    body = text.strip()
    if is_compact_command(body, face):
        return
    complaint = _complaint(body) or (_complaint_of_tui(body) if face is Face.TUI else _complaint_of_cli(body))
    if not complaint and face is Face.TUI and busy and input_settings(profile).collapses(body):
        complaint = "sent during a turn, a paste this long reaches the model as a placeholder, and the text is lost"
    if complaint:
        msg = f"not typed into Hermes's {face.value}: {complaint}"
        raise TextNotSendable(msg, evidence=body[:200])


def queues_while_busy(profile: Path, face: Face) -> bool:
    """Whether our prompts, which are long, wait whole for the end of a running turn, by the profile's configuration.

    A TUI that collapses pastes keeps only the placeholder (see `check_sendable`). `/busy` changes the mode at run
    time, which no file shows.
    """
    settings = input_settings(profile)
    return settings.queues(face) and not (face is Face.TUI and settings.collapses_long_pastes)


def shows_text(look: PaneLook, text: str) -> bool:
    """Whether the input line holds *text* and nothing else, whole or as the face's placeholder for it.

    Line breaks and spaces are not compared: a face wraps long lines as it likes.
    """
    wanted, typed = text.strip(), look.typed
    if not wanted or not typed:
        return False
    if _squeezed(typed) == _squeezed(wanted):
        return True
    if look.face is Face.TUI:
        return _is_token_of(typed, wanted)
    if typed.count("\n") == TALLEST_INPUT - 1:  # the last rows of a text that is scrolled
        return _squeezed(wanted).endswith(_squeezed(typed))
    return _is_paste_of(typed, wanted)


def _complaint(body: str) -> str:
    if not body:
        return "there is no text"
    if found := _CONTROL.search(body):
        return f"it holds the control character {found[0]!r}"
    if _LEADING_PATH.match(body):
        return "it begins like a command or a path"
    if found := _LEAKED.search(body):
        return f"{found[0]!r} would be taken out of it"
    return ""


def _complaint_of_cli(body: str) -> str:
    found = _REFERENCE.search(body)
    return f"{found[0]!r} would be replaced by what it names" if found else ""


def _complaint_of_tui(body: str) -> str:
    if "{!" in body:
        return "{! runs a command in a shell"
    if body.startswith("!"):
        return "a leading ! runs the text in a shell"
    if body.endswith("\\"):
        return "a backslash at the end keeps it from being sent"
    if _COMPLETED.search(body):
        return "it ends in a path or an @word, which Enter would complete instead of sending; end with a plain word"
    return ""


def _is_paste_of(typed: str, wanted: str) -> bool:
    """The classic face's placeholder names a file that holds the paste; where it is gone, the lines are counted."""
    found = _PASTED.fullmatch(typed.replace("\n", ""))
    if not found:
        return False
    try:
        return Path(found["path"]).read_bytes().decode().strip() == wanted
    except (OSError, UnicodeDecodeError):
        return int(found["lines"]) == wanted.count("\n") + 1


def _is_token_of(typed: str, wanted: str) -> bool:
    """The TUI's token: `[[ head.. [23 lines] .. tail ]]`, or the whole of a short text."""
    found = _TOKEN.fullmatch(typed.replace("\n", " "))
    if not found:
        return False
    flat = re.sub(r"\s+", " ", wanted).replace("]]", "] ]")
    lines = _compact(wanted.count("\n") + 1)
    if len(flat) <= HEAD + TAIL + 4:
        expected = f"{flat} [{lines} lines]"
    else:
        expected = f"{flat[:HEAD]}.. [{lines} lines] .. {flat[-TAIL:]}"
    return _squeezed(found["preview"]) == _squeezed(expected)


def _compact(number: int) -> str:
    """As JavaScript's compact notation with one decimal: 1.2k."""
    return str(number) if number < 1000 else f"{number / 1000:.1f}".removesuffix(".0") + "k"


def _squeezed(text: str) -> str:
    return "".join(text.split())
