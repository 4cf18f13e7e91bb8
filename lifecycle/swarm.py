"""Keeping the files that other programs of the swarm read true. A failure is logged and never ends a renewal."""

from __future__ import annotations

import logging
from typing import Literal

from pydantic import JsonValue

from lifecycle import runtime_file
from lifecycle.advice import accepts_work
from lifecycle.errors import LifecycleError
from lifecycle.host import Host
from lifecycle.memory_events import append_event
from lifecycle.reading import ContextReading
from lifecycle.renewal import Block, Renewal, ToldBefore
from lifecycle.runtime_file import read_runtime
from lifecycle.worker import Worker

log = logging.getLogger(__name__)


def tell_swarm(host: Host, worker: Worker, **changes: JsonValue) -> None:
    """Write *changes* into the worker's runtime.json."""
    path = host.paths(worker).runtime_json
    try:
        runtime_file.update(path, changes, worker_id=worker.worker_id, clock=host.clock)
    except LifecycleError as error:
        log.warning("%s: %s", worker.worker_id, error)


def told_now(host: Host, worker: Worker) -> ToldBefore:
    """What the worker's runtime.json says now."""
    found = read_runtime(host.paths(worker).runtime_json)
    return ToldBefore(
        state=found.state,
        phase=found.phase,
        checkpoint_status=found.checkpoint_status,
        blocked_reason=found.blocked_reason,
        needs_human=found.needs_human,
    )


def told_of(placed: Block) -> dict[str, JsonValue]:
    """What runtime.json says of a worker while *placed* stands."""
    return {**_BLOCKED, "blockedReason": f"{placed.reason}: {placed.detail}"}


def tell_closed(host: Host, worker: Worker, renewal: Renewal, reading: ContextReading | None, *, is_up: bool) -> None:
    """Take back what a block of *renewal* wrote, as far as it still stands, and say whether the worker takes work.

    Of a worker that was not blocked nothing else is known, so nothing else is written.
    """
    changes: dict[str, JsonValue] = {}
    if renewal.told_before is not None:
        before, now = _as_told(renewal.told_before), _as_told(told_now(host, worker))
        ours = ("state", "phase", "checkpointStatus", "needsHuman")
        changes = {key: before[key] for key in ours if now[key] == _BLOCKED[key]}
        changes["blockedReason"] = before["blockedReason"]
    if not is_up:
        changes |= {"state": "offline", "phase": "stopped", "needsHuman": True}
    record = host.ledger.record(worker.worker_id)
    takes_work = is_up and reading is not None and accepts_work(reading, record, worker.policy)
    tell_swarm(host, worker, **changes, acceptingWork=takes_work)


_BLOCKED: dict[str, JsonValue] = {
    "state": "blocked",
    "phase": "blocked",
    "checkpointStatus": "blocked",
    "needsHuman": True,
}


def _as_told(told: ToldBefore) -> dict[str, JsonValue]:
    """By the keys of runtime.json; what was not there is what the reference system takes it for."""
    return {
        "state": told.state or "idle",
        "phase": told.phase or "unknown",
        "checkpointStatus": told.checkpoint_status or "none",
        "blockedReason": told.blocked_reason,
        "needsHuman": told.needs_human,
    }


def read_now(host: Host, worker: Worker) -> ContextReading | None:
    """A reading for the swarm's files; None where its pane cannot be seen."""
    try:
        return host.read(worker, host.process(worker))
    except LifecycleError as error:
        log.warning("%s: %s", worker.worker_id, error)
        return None


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


def note_handoff_written(host: Host, worker: Worker, *, who: str) -> None:
    """Append `handoff-written` to the worker's memory because someone says so; the caller saw that the file is there.

    Raises:
        MemoryNotWritten
    """
    mission, path = host.mission(worker), host.paths(worker).shared_latest
    append_event(
        host.paths(worker),
        kind="handoff-written",
        summary=f"Handoff written, says {who}",
        mission_id=mission.mission_id,
        assignment_id=mission.assignment_id,
        event={"sharedHandoffPath": str(path)},
        at=host.now(),
    )
    host.event("handoff.noted", worker, who=who, path=str(path))
