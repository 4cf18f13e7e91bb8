"""Hermes's command line: whose agent a process is, and the same command without the old conversation."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from lifecycle.processes import Process

_PROFILE = ("-p", "--profile")
_RESUMES = ("-c", "--continue", "-r", "--resume")
_ASKS = ("-q", "--query")
_TAKES_VALUE = frozenset(
    {*_PROFILE, *_RESUMES, *_ASKS, "-m", "--model", "-t", "--toolsets", "-s", "--skills", "--provider"}
    | {"--max-turns", "--source", "--image"}
)
_VALUE_IS_OPTIONAL = ("-c", "--continue")
_CHAT = "chat"


def arguments_of(command: tuple[str, ...]) -> tuple[str, ...] | None:
    """The arguments of an interactive Hermes; None for another program, or for another of Hermes's commands."""
    interpreted = bool(command) and Path(command[0]).name.startswith("python")
    for index, word in enumerate(command[: 3 if interpreted else 1]):
        is_script = Path(word).name == "hermes"
        is_module = word == "-m" and command[index + 1 : index + 2] == ("hermes_cli.main",)
        if is_script or is_module:
            rest = command[index + (2 if is_module else 1) :]
            return rest if _first_word(rest) in {None, _CHAT} else None
    return None


def profile_of(process: Process) -> Path | None:
    """The profile that an interactive Hermes runs on; None for any other process, or one that cannot be read.

    As Hermes decides it: `-p`, else a HERMES_HOME inside `profiles`, else the root's `active_profile`.
    """
    arguments = arguments_of(process.command)
    if arguments is None or not process.environment:
        return None
    named = process.environment.get("HERMES_HOME")
    home = Path(named) if named else Path(process.environment.get("HOME") or Path.home()) / ".hermes"
    inside = home.parent.name == "profiles"
    root = home.parent.parent if inside else home
    name = _value_of(_PROFILE, arguments)
    if name is None and inside:
        return home
    name = name or _active_profile(root)
    return root / "profiles" / name if name and name != "default" else root


def without_old_conversation(command: tuple[str, ...]) -> tuple[str, ...]:
    """*command* without what resumes a session or asks a first question."""
    kept: list[str] = []
    words = list(command)
    while words:
        word = words.pop(0)
        option, equals, _ = word.partition("=")
        if option not in {*_RESUMES, *_ASKS}:
            kept.append(word)
            continue
        if not equals and words and _is_value(option, words[0]):
            words.pop(0)
    return tuple(kept)


def resumes(words: Iterable[str]) -> bool:
    """Whether these words of a Hermes command resume an old session."""
    return any(word.partition("=")[0] in _RESUMES for word in words)


def script_resumes(text: str) -> bool:
    """Whether a launcher script calls Hermes so that it resumes. Operators' wrappers do (hermes-workspace)."""
    for line in text.splitlines():
        if line.lstrip().startswith("#") or "hermes" not in line.lower():
            continue
        try:
            words = shlex.split(line)
        except ValueError:
            words = line.split()
        called = next((at for at, word in enumerate(words) if _names_hermes(word)), None)
        if called is not None and resumes(words[called + 1 :]):
            return True
    return False


def _names_hermes(word: str) -> bool:
    """The program, or a variable that holds it; an assignment is neither."""
    return "=" not in word and (Path(word).name == "hermes" or (word.startswith("$") and "HERMES" in word))


def _first_word(arguments: tuple[str, ...]) -> str | None:
    words = list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            return word
        if "=" not in word and word in _TAKES_VALUE and words and _is_value(word, words[0]):
            words.pop(0)
    return None


def _is_value(option: str, following: str) -> bool:
    return option not in _VALUE_IS_OPTIONAL or not (following.startswith("-") or following == _CHAT)


def _value_of(options: tuple[str, ...], arguments: tuple[str, ...]) -> str | None:
    for index, word in enumerate(arguments):
        option, equals, value = word.partition("=")
        if option in options:
            return value if equals else next(iter(arguments[index + 1 :]), None)
    return None


def _active_profile(root: Path) -> str | None:
    try:
        return (root / "active_profile").read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None
