"""Keeping the files that other programs of the swarm read true. A failure is logged and never ends a renewal."""

from __future__ import annotations

import logging
from typing import Literal

from pydantic import JsonValue

from lifecycle import runtime_file
from lifecycle.errors import LifecycleError
from lifecycle.host import Host
from lifecycle.memory_events import append_event
from lifecycle.renewal import Renewal
from lifecycle.worker import Worker

log = logging.getLogger(__name__)


def tell_swarm(host: Host, worker: Worker, **changes: JsonValue) -> None:
    """Write *changes* into the worker's runtime.json."""
    path = host.paths(worker).runtime_json
    try:
        runtime_file.update(path, changes, worker_id=worker.worker_id, clock=host.clock)
    except LifecycleError as error:
        log.warning("%s: %s", worker.worker_id, error)


def remember_in_swarm(
    host: Host,
    worker: Worker,
    renewal: Renewal,
    kind: Literal["handoff-requested", "handoff-written", "resume", "blocked"],
    summary: str,
    **event: JsonValue,
) -> None:
    """Append a memory event in the reference system's format."""
    try:
        append_event(
            host.paths(worker),
            kind=kind,
            summary=summary,
            mission_id=renewal.mission_id,
            assignment_id=renewal.assignment_id,
            event=event,
            at=host.now(),
        )
    except LifecycleError as error:
        log.warning("%s: %s", worker.worker_id, error)
