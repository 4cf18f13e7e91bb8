"""Atomic facts that are planted in a session, and when one counts as received."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, get_args

from lifecycle.value import Value

Kind = Literal["recall", "artefact", "continuation", "decision", "rule", "must_abstain"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Fact(Value):
    """*needles* must stand in one line, each as a word or number of its own: a value without what it is the value of
    is of no use. One that ends in `…` may go on. *told* is how whoever knows it says it.

    A fact of `must_abstain` is one that must not be claimed: it was never said, was undone, or was taken back. *back*
    are the needles of the line that takes it back: where that stands behind the claim, the claim is none.
    """

    kind: Kind
    told: str
    needles: tuple[str, ...]
    back: tuple[str, ...] = ()

    def counts_in(self, text: str) -> bool:
        """Whether a reader of *text* has the fact; of `must_abstain`, whether they are not told it."""
        lines = text.split("\n")
        stands = [number for number, line in enumerate(lines) if holds(line, self.needles)]
        if self.kind != "must_abstain":
            return bool(stands)
        if not stands or not self.back:
            return not stands
        return any(holds(line, self.back) for line in lines[stands[-1] :])


def holds(line: str, needles: Iterable[str]) -> bool:
    return all(_pattern(needle).search(line) is not None for needle in needles)


def share(facts: Iterable[Fact], text: str) -> tuple[int, int]:
    """How many of *facts* count in *text*, and how many there are."""
    found = [fact.counts_in(text) for fact in facts]
    return sum(found), len(found)


def _pattern(needle: str) -> re.Pattern[str]:
    goes_on = needle.endswith("…")
    words = needle.removesuffix("…")
    before = r"(?<![A-Za-z0-9_])" if _is_word(words[0]) else ""
    after = r"(?![A-Za-z0-9_]|\.\d)" if _is_word(words[-1]) and not goes_on else ""
    return re.compile(f"{before}{re.escape(words)}{after}", re.IGNORECASE)


def _is_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")
