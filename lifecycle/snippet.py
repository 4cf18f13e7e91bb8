"""The words of a passage around what was asked for, on one line."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from lifecycle.foreign_text import cleaned
from lifecycle.search_terms import asked_terms

WIDTH = 160
"""Characters of a snippet at most."""


def snippet(text: str, query: str, width: int = WIDTH) -> str:
    """The stretch of *text* that holds most of the different terms of *query*; its beginning where none is seen.

    Terms are looked for by their beginnings, so what was found by its stem is mostly shown too.
    """
    flat = " ".join(cleaned(text).split())
    if len(flat) <= width:
        return flat
    places = sorted(_places(flat, asked_terms(query)))
    start = max(0, _densest(places, width - 40) - 20) if places else 0
    start = flat.rfind(" ", 0, start + 1) + 1 if start else 0
    piece = flat[start : start + width]
    return f"{'…' if start else ''}{piece}{'…' if start + width < len(flat) else ''}"


def _places(flat: str, terms: Iterable[str]) -> list[tuple[int, str]]:
    folded = unicodedata.normalize("NFC", flat).casefold()
    # Folding may change lengths ("ß"); a snippet that is a character off is still one.
    found: list[tuple[int, str]] = []
    for term in terms:
        stem = term if len(term) < 5 else term[: max(4, len(term) - 3)]
        at = folded.find(stem)
        while at >= 0 and len(found) < 500:
            if at == 0 or not folded[at - 1].isalnum() or not term.isascii():
                found.append((min(at, len(flat) - 1), term))
            at = folded.find(stem, at + len(stem))
    return found


def _densest(places: list[tuple[int, str]], width: int) -> int:
    """Where the stretch of *width* begins that holds most different terms; the first of equals."""
    return max(
        (start for start, _ in places),
        key=lambda start: (len({term for at, term in places if start <= at < start + width}), -start),
    )
