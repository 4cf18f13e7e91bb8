"""The dry run of a renewal as lines: reading, gate, and the pack section by section."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lifecycle.preview import GatePreview, PackPreview, Preview

NAMED = 8
"""So many identifiers are named on the page; --json has them all."""


def preview_lines(preview: Preview) -> Iterator[str]:
    if preview.error:
        yield f"  nothing can be previewed: {preview.error}"
        return
    if preview.limits is not None:
        limits = preview.limits
        tokens = f"{preview.tokens:,}" if preview.tokens is not None else "unknown"
        yield (
            f"  reading  {tokens} tokens ({preview.tokens_source}); "
            f"limits {limits.soft:,} / {limits.handoff:,} / {limits.hard:,}"
        )
    if preview.gate is not None:
        yield from _gate_lines(preview.gate)
    yield f"  rules    {preview.rules} cross verbatim"
    if preview.pack is not None:
        yield from _pack_lines(preview.pack)


def _gate_lines(gate: GatePreview) -> Iterator[str]:
    verdict = "accepts" if gate.accepted else "complains of"
    said = [gate.refused or "; ".join(gate.complaints)]
    yield ": ".join(filter(None, [f"  gate     {verdict} what the transcript says", *said]))
    if gate.must_survive:
        more = f" and {len(gate.must_survive) - NAMED} more" if len(gate.must_survive) > NAMED else ""
        yield f"           must hold {', '.join(gate.must_survive[:NAMED])}{more}"
    if gate.asks_human:
        yield "           a person was asked: the new session would wait for the answer"


def _pack_lines(pack: PackPreview) -> Iterator[str]:
    yield f"  pack     {pack.tokens:,} of {pack.budget:,} tokens, without passages of earlier handoffs"
    for section in pack.sections:
        cut = f" of {section.wanted:,}" if section.wanted > section.tokens + 1 else ""
        yield f"           {section.tokens:>6,}{cut}  {section.name}"
    for dropped in pack.dropped:
        yield f"           left out: {dropped}"
