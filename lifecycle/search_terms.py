"""The words by which a text is found: identifiers also by their parts, Chinese, Japanese and Korean by pairs.

The same words are made of what is indexed and of what is asked, so that both meet whatever the tokenizer behind
them does. It gets nothing but letters and digits: no text can be a query operator.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

MOST_TERMS = 64
"""Terms of a query that count. A question of a page has no more that tell."""

LONGEST_TERM = 64
"""A longer run (base64, a minified line) is nobody's search word; its beginning stands for it."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_RUN = re.compile(rf"(?P<cjk>[{_CJK}]+)|(?P<word>[^\W{_CJK}]+(?:[-./:@]+[^\W{_CJK}]+)*)")
_PART = re.compile(r"[^\W_]+")
_SEAM = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)")


def indexed(text: str) -> str:
    """What is put into the index for *text*: its terms in order, between spaces."""
    return " ".join(_terms(text, asked=False))


def query(text: str) -> str:
    """*text* as a full-text query: its terms, each quoted, joined by OR. Empty where it holds no word at all."""
    found = dict.fromkeys(_terms(text, asked=True))
    return " OR ".join(f'"{term}"' for term in list(found)[:MOST_TERMS])


def asked_terms(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_terms(text, asked=True)))[:MOST_TERMS]


def _terms(text: str, *, asked: bool) -> Iterator[str]:
    for run in _RUN.finditer(unicodedata.normalize("NFKC", text)):
        yield from _of_cjk(run["cjk"], asked=asked) if run["cjk"] else _of_word(run["word"])


def _of_cjk(run: str, *, asked: bool) -> Iterator[str]:
    """Pairs, as no space says where a word ends. Single characters are indexed too, and asked only where alone."""
    if len(run) == 1 or not asked:
        yield from run
    for at in range(len(run) - 1):
        yield run[at : at + 2]


def _of_word(word: str) -> Iterator[str]:
    """`parse_state-db` is found by `parse`, `state`, `db`, and best by itself."""
    parts = [part for piece in _PART.findall(word) for part in _SEAM.split(piece) if part]
    for part in parts:
        yield part.casefold()[:LONGEST_TERM]
    if len(parts) > 1:
        yield "".join(parts).casefold()[:LONGEST_TERM]
