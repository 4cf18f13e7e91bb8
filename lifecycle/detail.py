"""All that one screen shows of one worker besides its row: what waits, its newest handoff, its generations."""

from __future__ import annotations

from datetime import datetime

from lifecycle.blocked import Waiting, waiting
from lifecycle.host import Host
from lifecycle.ledger import StoredHandoff
from lifecycle.renewal import End, Renewal
from lifecycle.status import WorkerStatus
from lifecycle.value import Value

SHOWN = 30
"""Generations that are looked back on."""


class Generation(Value):
    """One session that Afresh gave the worker: *baseline* tokens when it began, *tokens* when it was renewed or now.

    A figure is None where nobody read it. *seconds* is how long the renewal took that ended it.
    """

    generation: int
    baseline: int | None = None
    tokens: int | None = None
    ended_at: datetime | None = None
    seconds: float | None = None
    quality: str | None = None


class ShownHandoff(StoredHandoff):
    """A stored handoff with its text; *intact* says whether the file still is what was stored."""

    text: str
    intact: bool


class WorkerDetail(Value):
    """What is known of one worker beyond its row."""

    worker_id: str
    waiting: Waiting | None
    handoff: ShownHandoff | None
    generations: tuple[Generation, ...]


def detail_of(host: Host, status: WorkerStatus) -> WorkerDetail:
    """Read the ledger and the newest handoff. Nothing is written."""
    name = status.worker_id
    return WorkerDetail(
        worker_id=name,
        waiting=next((one for one in waiting(host) if one.worker_id == name), None),
        handoff=_newest_handoff(host, name),
        generations=generations(host.ledger.renewals_of(name, limit=SHOWN), status),
    )


def generations(renewals: list[Renewal], status: WorkerStatus) -> tuple[Generation, ...]:
    """The sessions that *renewals* (newest first) ended, oldest first, and the one that lives. Pure."""
    ended = [one for one in reversed(renewals) if one.end is End.RENEWED]
    baselines = {one.generation + 1: one.acknowledgement.baseline for one in ended if one.acknowledgement is not None}
    past = [
        Generation(
            generation=one.generation,
            baseline=baselines.get(one.generation),
            tokens=one.reading.tokens if one.reading is not None else None,
            ended_at=one.updated_at,
            seconds=round((one.updated_at - one.opened_at).total_seconds(), 3),
            quality=one.saved.quality.value if one.saved is not None else None,
        )
        for one in ended
        if one.generation < status.generation
    ]
    now = Generation(generation=status.generation, baseline=baselines.get(status.generation), tokens=status.tokens)
    return (*past, now)


def _newest_handoff(host: Host, worker_id: str) -> ShownHandoff | None:
    stored = next(iter(host.ledger.handoffs_of(worker_id)), None)
    if stored is None:
        return None
    text, intact = host.stored_text(stored)
    return ShownHandoff(**dict(stored), text=text, intact=intact)
