"""What both faces are read into, and how wide text is on a screen."""

from __future__ import annotations

import unicodedata

from lifecycle.screen import PaneState
from lifecycle.value import Value

PROMPTS = "❯>$#›»→"
"""Prompt symbols that Hermes's skins use."""


class Seen(Value):
    """One reading of a face. *transcript* is what stands above the input line and its status."""

    state: PaneState
    typed: str = ""
    dialog: str = ""
    background: bool = False
    transcript: tuple[str, ...] = ()


def cells(text: str) -> int:
    """Columns that *text* takes: two for a wide character, none for a combining one."""
    return sum(_width(character) for character in text)


def cut_at(text: str, column: int) -> str:
    """The part of *text* that ends left of *column*."""
    used = 0
    for index, character in enumerate(text):
        used += _width(character)
        if used > column:
            return text[:index]
    return text


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Cf", "Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def question_in(lines: list[str]) -> str:
    """The words of a dialog's lines, without their frame, on one line."""
    words = [line.strip().strip("│║╭╮╰╯╔╗╚╝─═┃ ") for line in lines]
    return " · ".join(word for word in words if word)[:400]
