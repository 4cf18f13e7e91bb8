"""What crosses a renewal, computed from a conversation, texts and orders alone: for previews, and to measure. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from lifecycle.budgets import PackSettings, SynthesisSettings
from lifecycle.collected import Collected
from lifecycle.collected_text import render
from lifecycle.conversation import Conversation
from lifecycle.draft import sections_of
from lifecycle.errors import CheckpointRefused
from lifecycle.fitting import default_counter
from lifecycle.handoff import Handoff, compose, read_handoff
from lifecycle.judging import Judged, Material, judge
from lifecycle.orders import Orders, claimed_by, rendered
from lifecycle.pack import Hit, Pack, PackMaterial, build
from lifecycle.proofs import Quality, SavedHandoff
from lifecycle.resumption import resumption_of
from lifecycle.rules import rules_in
from lifecycle.synthesis import Synthesis, as_supplement, collect
from lifecycle.value import Value

COLLECTED_TOKENS = 1_500
"""What the collected part of a document has here where the caller says nothing else."""


class Sources(Value):
    """Where a crossing is computed from. *reply* and *draft* are the worker's, None where it says nothing.

    *orders* is empty and *collected* None to see what crosses by the worker's words alone.
    """

    worker_id: str
    mission_id: str | None = None
    assignment_id: str | None = None
    renewal_id: str
    generation: int = 1
    at: datetime
    conversation: Conversation = Conversation()
    reply: str | None = None
    draft: str | None = None
    draft_path: Path | None = None
    written_at: datetime | None = None
    asked_row: int | None = None
    previous: str | None = None
    orders: Orders = Orders()
    collected: Collected | None = None
    hits: tuple[Hit, ...] = ()
    archive: Path = Path("handoff.md")
    ours: tuple[str, ...] = ()


class Crossing(Value):
    """*refused* says why the worker's answer was not taken, so that the transcript stands in for it.

    *complaints* are what one corrective request would have said; the document is the one without an answer to it.
    """

    quality: Quality
    refused: str = ""
    complaints: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    asks_human: bool = False
    dropped: str = ""
    handoff: str
    pack: Pack


def cross(
    sources: Sources,
    *,
    pack: PackSettings | None = None,
    synthesis: SynthesisSettings | None = None,
    collected_tokens: int = COLLECTED_TOKENS,
    count: Callable[[str], int] | None = None,
) -> Crossing:
    """The document and the pack that a new session would get, and what the gate says of the worker's words."""
    count = count or default_counter()
    judged, refused = _judged(sources, count)
    complaints = judged.gate.complaints if judged is not None else ()
    from_rows = _synthesized(sources, synthesis, count)
    made = from_rows if judged is None else None
    draft = sources.draft if judged is not None else None
    quality = Quality.SYNTHESIZED if made is not None else Quality.WRITTEN if draft is not None else Quality.CHECKPOINT
    checkpoint = judged.checkpoint if judged is not None else made.checkpoint if made is not None else None
    sections = sections_of(made.document if made is not None else draft or "")
    orders = sources.orders
    claimed = () if made is not None else claimed_by(rules_in("\n\n".join(sections.values()), "the handoff"), orders)
    asks = judged.gate.asks_human if judged is not None else made is not None and made.asks_human
    handoff = compose(
        Handoff(
            worker_id=sources.worker_id,
            mission_id=sources.mission_id,
            assignment_id=sources.assignment_id,
            renewal_id=sources.renewal_id,
            generation=sources.generation,
            session_id=sources.conversation.session_id,
            quality=quality,
            created_at=sources.at,
            sections=sections,
            checkpoint=checkpoint,
            orders=rendered(orders, claimed),
            identifiers=judged.wanted if judged is not None else made.wanted if made is not None else (),
            supplement=render(sources.collected, budget=collected_tokens, count=count) if sources.collected else "",
            transcript=as_supplement(from_rows.document) if judged is not None else "",
            notes=complaints,
        )
    )
    action = checkpoint.next_action if checkpoint is not None else ""
    saved = SavedHandoff(
        renewal_id=sources.renewal_id,
        archive=sources.archive,
        sha256="",
        quality=quality,
        next_action=action,
        summary="",
        state="HANDOFF",
        answered_row=0,
        asks_human=asks,
    )
    interrupted = sources.collected.interrupted if sources.collected is not None else ()
    built = build(
        PackMaterial(
            worker_id=sources.worker_id,
            generation=sources.generation + 1,
            renewal_id=sources.renewal_id,
            archive=sources.archive,
            sha256="",
            quality=quality.value,
            made_at=sources.at,
            handoff=read_handoff(handoff).body,
            next_action=action,
            resumption=resumption_of(saved, finished=orders.finished),
            unknown=tuple(f"{call.tool}: {call.told}" for call in interrupted),
            orders=orders,
            claimed=claimed,
            hits=sources.hits,
        ),
        pack,
        count=count,
    )
    return Crossing(
        quality=quality,
        refused=refused,
        complaints=complaints,
        lost=tuple(one.text for one in judged.gate.lost) if judged is not None else (),
        asks_human=asks,
        dropped=made.dropped if made is not None else "",
        handoff=handoff,
        pack=built,
    )


def _judged(sources: Sources, count: Callable[[str], int]) -> tuple[Judged | None, str]:
    if sources.reply is None:
        return None, ""
    material = Material(
        worker_id=sources.worker_id,
        mission_id=sources.mission_id,
        renewal_id=sources.renewal_id,
        reply=sources.reply,
        draft=sources.draft,
        draft_path=sources.draft_path,
        written_at=sources.written_at,
        asked_row=sources.asked_row,
        previous=sources.previous,
        conversation=sources.conversation,
        ours=sources.ours,
    )
    try:
        return judge(material, count=count), ""
    except CheckpointRefused as refusal:
        return None, f"{refusal.reason}: {refusal.detail}"


def _synthesized(sources: Sources, settings: SynthesisSettings | None, count: Callable[[str], int]) -> Synthesis:
    return collect(
        sources.conversation,
        worker_id=sources.worker_id,
        mission_id=sources.mission_id,
        renewal_id=sources.renewal_id,
        settings=settings,
        ours=sources.ours,
        count=count,
    )


__all__ = ["Crossing", "Sources", "cross"]
