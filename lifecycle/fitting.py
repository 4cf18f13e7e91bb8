"""Fitting texts into a budget of tokens, saying what was left out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lifecycle.tokens import EncodingUnavailable, TokenCounter, byte_bound, counter

HEAD = 0.7
"""The share of a cut text that is kept of its beginning; the rest is kept of its end."""


def default_counter() -> TokenCounter:
    """The counter of tiktoken, or bytes where it has no ranks."""
    try:
        return counter()
    except EncodingUnavailable:
        return byte_bound


def fitted(text: str, tokens: int, count: TokenCounter, *, where: str = "") -> str:
    """*text* where it has at most *tokens*, else its two ends with a note between; empty where not even that fits.

    *where* names where the whole text stands.
    """
    if tokens <= 0:
        return ""
    # No token is shorter than a byte, so most texts need no counting.
    if len(text.encode("utf-8", "replace")) <= tokens or count(text) <= tokens:
        return text

    def cut(kept: int) -> str:
        head, tail = int(kept * HEAD), kept - int(kept * HEAD)
        note = f"\n[… {len(text) - kept:,} characters left out{where} …]\n"
        return (
            f"{text[:head].rstrip()}{note}{text[len(text) - tail :].lstrip()}" if tail else text[:head].rstrip() + note
        )

    kept = largest(lambda size: count(cut(size)) <= tokens, min(len(text) - 1, tokens * 8))
    return cut(kept) if kept > 0 else ""


def last_that_fit(lines: Sequence[str], tokens: int, count: TokenCounter) -> tuple[list[str], int]:
    """As many of the last *lines* as fit, and how many older ones do not."""
    kept = largest(lambda size: count("\n".join(lines[len(lines) - size :])) <= tokens, len(lines))
    return list(lines[len(lines) - kept :]), len(lines) - kept


def largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest size up to *most* that fits, 0 where none does; a size fits where a larger one does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
