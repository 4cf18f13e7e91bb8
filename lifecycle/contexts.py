"""The contexts of many workers: what must be counted for one is counted while others are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress

from lifecycle.agents import Agent
from lifecycle.errors import ConfigurationError, LedgerError
from lifecycle.host import Host
from lifecycle.processes import Process
from lifecycle.reading import Asked, ContextReading
from lifecycle.record import WorkerRecord
from lifecycle.screen import PaneLook
from lifecycle.worker import Worker


def contexts_of(
    host: Host,
    workers: Iterable[Worker],
    records: Mapping[str, WorkerRecord],
    panes: Mapping[str, tuple[PaneLook, Process | None]],
) -> dict[str, ContextReading]:
    """The readings of those *workers* whose record and pane are known; the others are left to a look of their own."""
    asked: dict[Agent, list[Asked]] = defaultdict(list)
    for worker in workers:
        record, seen = records.get(worker.worker_id), panes.get(worker.worker_id)
        if record is not None and seen is not None and (agent := _agent(host, worker)) is not None:
            process = seen[1]
            one = Asked(
                profile=worker.profile,
                worker_id=worker.worker_id,
                since=process.started_at if process else None,
                overhead=record.overhead,
                known=record.last_good,
            )
            asked[agent].append(one)
    readings = (reading for agent, each in asked.items() for reading in agent.read_contexts(each, now=host.now()))
    found = {}
    for reading in readings:
        # Whose record cannot be read is told so by its own look.
        with suppress(LedgerError):
            found[reading.worker_id] = host.with_asked(reading)
    return found


def _agent(host: Host, worker: Worker) -> Agent | None:
    try:
        return host.agent(worker)
    except ConfigurationError:
        return None
