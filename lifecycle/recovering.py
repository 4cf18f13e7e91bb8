"""Renewals that nobody works on: open, not blocked, and their flow run is gone."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from lifecycle.errors import LedgerError, Misuse
from lifecycle.host import Host
from lifecycle.lock import is_held
from lifecycle.parking import resting
from lifecycle.releasing import unreleased
from lifecycle.renewal import Phase, Renewal
from lifecycle.value import Value

_NEXT = {
    Phase.OPENED: "ask for the handoff",
    Phase.REQUESTED: "wait for the answer",
    Phase.PARSED: "save the handoff",
    Phase.SAVED: "stop the worker",
    Phase.STOPPING: "finish the stop, then start the worker",
    Phase.STOPPED: "start the worker",
    Phase.RESPAWNED: "send the resume prompt",
    Phase.RESUMED: "wait for the new session's answer",
    Phase.PROVED: "close the renewal",
}


class Interrupted(Value):
    """One renewal without a living flow run: open, or cancelled and its worker not told yet.

    *goes_on* says that a new run takes it up, at the step that *next_step* names. *why* gives the reason, in either
    case. *flow_run_id* is the last run that worked on it.
    """

    worker_id: str
    renewal_id: str
    phase: Phase
    goes_on: bool
    next_step: str
    why: str
    flow_run_id: str | None
    since: datetime


def interrupted(host: Host, worker_ids: Collection[str] | None = None) -> list[Interrupted]:
    """The renewals that rest although nobody blocked them, oldest first; of all workers, or of *worker_ids*.

    The kernel frees the lock of a run that died, so a free lock is the proof that nobody is at work; what Prefect
    says of the run counts for nothing. Nothing is written, taken or typed.
    """
    renewals = [one for one in host.ledger.open_renewals() if worker_ids is None or one.worker_id in worker_ids]
    found = [_interruption(host, one) for one in renewals if one.block is None]
    return sorted((one for one in found if one is not None), key=lambda one: (one.since, one.renewal_id))


def untold(host: Host, worker_ids: Collection[str] | None = None) -> list[Interrupted]:
    """The renewals that were cancelled before the worker could be told; none that a process is at work on."""
    found = []
    for worker in host.workers():
        if not worker.managed or (worker_ids is not None and worker.worker_id not in worker_ids):
            continue
        renewal = unreleased(host, worker)
        if renewal is not None and not is_held(host.paths(worker).lock):
            told = _told(renewal, goes_on=True, why="it was asked, and nothing comes of it")
            found.append(told.model_copy(update={"next_step": "tell the worker to carry on, once it is idle"}))
    return found


def _interruption(host: Host, renewal: Renewal) -> Interrupted | None:
    """None where a process is at work on it."""
    try:
        worker = host.worker(renewal.worker_id)
    except Misuse as error:
        return _told(renewal, goes_on=False, why=f"the worker is no longer declared: {error.detail}")
    if is_held(host.paths(worker).lock):
        return None
    try:
        record, rest = host.ledger.record(worker.worker_id), resting(host, worker)
    except LedgerError as error:
        return _told(renewal, goes_on=False, why=error.detail)
    if record.is_held:
        return _told(
            renewal, goes_on=False, why=f"the worker is held; `afresh release {worker.worker_id}` lets it go on"
        )
    if rest is not None:
        until = f" until {rest.until:%Y-%m-%d %H:%M} UTC" if rest.until else ""
        return _told(renewal, goes_on=False, why=f"parked{until}: {rest.why}")
    return _told(renewal, goes_on=True, why="its flow run ended before the renewal did")


def _told(renewal: Renewal, *, goes_on: bool, why: str) -> Interrupted:
    return Interrupted(
        worker_id=renewal.worker_id,
        renewal_id=renewal.renewal_id,
        phase=renewal.phase,
        goes_on=goes_on,
        next_step=_NEXT[renewal.phase],
        why=why,
        flow_run_id=next(reversed(renewal.taken_up_by), renewal.flow_run_id),
        since=renewal.updated_at,
    )
