"""What a renewal would carry over if the worker said nothing: reading, gate and pack, with nothing written or typed."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from lifecycle.checkpoint import render_checkpoint
from lifecycle.collecting import collect as collect_by_machine
from lifecycle.conversation import Conversation
from lifecycle.crossing import Crossing, Sources, cross
from lifecycle.errors import LifecycleError
from lifecycle.gathering import gather
from lifecycle.host import Host
from lifecycle.identifiers import must_survive
from lifecycle.launching import launch_of
from lifecycle.mission import Mission
from lifecycle.pack import PackSection
from lifecycle.policy import Limits
from lifecycle.reading import ContextReading
from lifecycle.record import WorkerRecord
from lifecycle.renewal import Phase, Renewal
from lifecycle.steps.ordering import working_folder
from lifecycle.synthesis import collect
from lifecycle.value import Value
from lifecycle.worker import Worker

UNOPENED = "preview"
"""The id of a renewal that is not opened."""


class GatePreview(Value):
    """What the gate says of the document that the transcript makes, and what it will ask of the worker's own.

    *must_survive* are the identifiers that a handoff written now must hold.
    """

    accepted: bool
    refused: str = ""
    complaints: tuple[str, ...] = ()
    must_survive: tuple[str, ...] = ()
    asks_human: bool = False


class PackPreview(Value):
    """The pack's tokens, section by section, and what its budget would leave out."""

    tokens: int
    budget: int
    sections: tuple[PackSection, ...]
    dropped: tuple[str, ...]
    text: str


class Preview(Value):
    """*rules* and *claimed* are how many lines would cross; *error* says why nothing can be shown."""

    at: datetime
    tokens: int | None = None
    tokens_source: str = ""
    limits: Limits | None = None
    gate: GatePreview | None = None
    rules: int = 0
    pack: PackPreview | None = None
    error: str = ""


def preview(host: Host, worker: Worker) -> Preview:
    """The preview of *worker*'s next renewal. It writes nothing, types nothing, and takes no snapshot.

    Earlier handoffs are not searched, because that would bring their index up to date.
    """
    try:
        return _previewed(host, worker)
    except (LifecycleError, OSError) as error:
        return Preview(at=host.now(), error=str(error))


def _previewed(host: Host, worker: Worker) -> Preview:
    process, record = host.process(worker), host.ledger.record(worker.worker_id)
    reading = host.read(worker, process, overhead=record.overhead)
    worker = host.governed(worker, reading)
    since = process.started_at if process else None
    found = host.agent(worker).conversation(worker, since=since)
    mission, renewal = host.mission(worker), _stand_in(host, worker, record, reading)
    orders = gather(worker, mission, found, cwd=working_folder(worker, renewal), before=record.orders)
    sources = _sources(host, worker, mission, renewal, found).model_copy(
        update={
            "orders": orders,
            "collected": collect_by_machine(host, worker, renewal, session_id=found.session_id, keep=False),
        }
    )
    settings = host.settings
    crossing = cross(
        sources, pack=settings.pack, synthesis=settings.synthesis, collected_tokens=settings.collect.tokens
    )
    return Preview(
        at=host.now(),
        tokens=reading.tokens,
        tokens_source=reading.source.value,
        limits=reading.limits(worker.policy),
        gate=_gate(host, sources, crossing),
        rules=len(orders.rules) + len(orders.greenlight),
        pack=PackPreview(
            tokens=crossing.pack.tokens,
            budget=settings.pack.tokens,
            sections=crossing.pack.sections,
            dropped=(*([crossing.dropped] if crossing.dropped else []), *crossing.pack.dropped),
            text=crossing.pack.text,
        ),
    )


def _stand_in(host: Host, worker: Worker, record: WorkerRecord, reading: ContextReading) -> Renewal:
    """The open renewal, or one that is never written anywhere."""
    if record.open_renewal is not None:
        return record.open_renewal
    now = host.now()
    launch = record.launch
    with suppress(LifecycleError):  # the plan says so
        launch = launch_of(host, worker, host.process(worker), remembered=record.launch)
    return Renewal(
        renewal_id=UNOPENED,
        worker_id=worker.worker_id,
        generation=record.generation,
        opened_at=now,
        updated_at=now,
        reading=reading,
        launch=launch,
    )


def _sources(host: Host, worker: Worker, mission: Mission, renewal: Renewal, found: Conversation) -> Sources:
    """With the worker's own answer, where an open renewal has one already."""
    paths = host.paths(worker)
    parsed = renewal.parsed if renewal.phase.reached(Phase.PARSED) else None
    return Sources(
        worker_id=worker.worker_id,
        mission_id=mission.mission_id,
        assignment_id=mission.assignment_id,
        renewal_id=renewal.renewal_id,
        generation=renewal.generation,
        at=host.now().replace(microsecond=0),
        conversation=found,
        reply=parsed.answer or None if parsed is not None else None,
        draft=parsed.draft_text if parsed is not None and parsed.answer else None,
        archive=paths.archived(renewal.opened_at, renewal.renewal_id),
        ours=(str(paths.handoffs), str(paths.home)),
    )


def _gate(host: Host, sources: Sources, crossing: Crossing) -> GatePreview:
    """The gate over the worker's own words, or over what the transcript says where there are none."""
    if sources.reply is None:
        made = collect(
            sources.conversation,
            worker_id=sources.worker_id,
            mission_id=sources.mission_id,
            renewal_id=sources.renewal_id,
            settings=host.settings.synthesis,
            ours=sources.ours,
        )
        own = {"reply": render_checkpoint(made.checkpoint), "draft": made.document}
        crossing = cross(sources.model_copy(update={**own, "collected": None}), pack=host.settings.pack)
    wanted = must_survive(sources.conversation, before_row=sources.asked_row, ours=sources.ours)
    return GatePreview(
        accepted=not crossing.refused and not crossing.complaints,
        refused=crossing.refused,
        complaints=crossing.complaints,
        must_survive=tuple(one.text for one in wanted),
        asks_human=crossing.asks_human,
    )
