"""renew_worker: one worker through the eight steps, each a task."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any, Literal

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from flows.hosting import host_of_run
from flows.reports import report
from lifecycle.decision import Action
from lifecycle.ending import block, close
from lifecycle.errors import ApiFailure, LifecycleError, Misuse, NotNow, ParksHere, RenewalInProgress
from lifecycle.host import Host
from lifecycle.lock import held, one_of
from lifecycle.parking import is_hopeless, park, resting
from lifecycle.redaction import redact
from lifecycle.renewal import Blocked, End, OpenedRenewal, Outcome, Parked, Renewal, Renewed, Spared, Stored
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker
from tasks.handoff import detect_context_pressure, parse_checkpoint, persist_handoff, request_handoff
from tasks.session import mark_healthy, respawn_worker, send_resume_prompt, stop_worker

PLACE_WITHIN = timedelta(hours=1)
"""How long a renewal waits for one of the host's places before it leaves the worker to the next sweep."""


@flow(
    name="renew",
    flow_run_name="renew {worker_id}",
    description="Renew one worker: handoff, clean session, proof that it works again.",
    persist_result=False,
)
def renew_worker(
    worker_id: str,
    force: bool = False,
    why: str = "",
    asked_by: Literal["operator", "sweep"] = "operator",
    asked_at: datetime | None = None,
    host: str = "",
) -> State[Any]:
    """Renew one worker. An operator's order is consent; a sweep's needs `automatic`. Of orders that cross, one is done.

    Args:
        worker_id: The worker, a managed one.
        force: End a busy turn too, after a synthesized handoff is saved.
        why: Why, for the record.
        asked_by: Who gives the order. A sweep's is refused where automatic renewal is off.
        asked_at: When the order was given, if that was before this run was scheduled.
        host: The host that must be this one, where it is named.
    """
    ordered = asked_at or flow_run.scheduled_start_time
    with host_of_run() as this:
        try:
            this.must_be(host)
            worker = this.worker(worker_id)
            with held(this.paths(worker).lock, worker_id=worker_id):
                outcome = renew(this, worker, forced=force, by_hand=asked_by == "operator", why=why, asked_at=ordered)
        except Misuse as error:
            return Failed(name="Refused", message=error.detail)
        except RenewalInProgress as error:
            outcome = Spared(worker_id=worker_id, reason=error.detail)
        return ended(this, outcome)


def renew(
    host: Host,
    worker: Worker,
    *,
    forced: bool,
    by_hand: bool,
    why: str,
    wanted: Action = Action.RENEW,
    asked_at: datetime | None = None,
) -> Outcome:
    """The renewal, or with *wanted* HANDOFF its first half; errors turn into a rest or a block.

    The caller holds the worker's lock.
    """
    parked = resting(host, worker)
    if parked is not None:
        return parked
    try:
        with ExitStack() as place:
            if not _takes_place(host, worker, place):
                reason = f"none of the {host.settings.max_parallel_renewals} places was free; the next sweep comes back"
                return Spared(worker_id=worker.worker_id, reason=reason)
            opened = detect_context_pressure(
                host,
                worker,
                forced=forced,
                by_hand=by_hand,
                why=why,
                flow_run_id=str(flow_run.id or ""),
                wanted=wanted,
                asked_at=asked_at,
            )
            if isinstance(opened, Spared):
                return opened
            return eight_steps(host, host.governed(worker, opened.reading), opened)
    except (Misuse, RenewalInProgress):
        raise
    except LifecycleError as error:
        renewal = host.ledger.record(worker.worker_id).open_renewal
        if renewal is None:
            raise
        worker = host.governed(worker, renewal.reading)
        if isinstance(error, ParksHere):
            return rest(host, worker, renewal, error)
        if isinstance(error, NotNow):
            close(host, worker, renewal, End.SPARED, error.detail)
            return Spared(worker_id=worker.worker_id, reason=error.detail)
        return block(host, worker, renewal, error)


def rest(host: Host, worker: Worker, renewal: Renewal, error: ParksHere) -> Parked | Blocked:
    """Park the renewal, or call a human where its provider has failed again and again."""
    if not is_hopeless(renewal, error.trouble):
        return park(host, worker, renewal, error)
    tries = renewal.parks + 1
    failed = ApiFailure(f"{error.detail}; asked {tries} times", worker_id=error.worker_id, evidence=error.evidence)
    return block(host, worker, renewal, failed)


def _takes_place(host: Host, worker: Worker, place: ExitStack) -> bool:
    """Take one of the host's places before the worker is looked at: what is decided there is acted on at once."""
    places = host.settings.max_parallel_renewals

    def is_free() -> bool:
        free = place.enter_context(one_of(host.settings.home / "locks", places))
        if not free:
            host.progress(worker.worker_id, f"waits for one of the host's {places} places")
        return free

    try:
        return wait_until(is_free, PLACE_WITHIN, host.clock, every=timedelta(seconds=1))
    except DeadlinePassed:
        return False


def eight_steps(host: Host, worker: Worker, opened: OpenedRenewal) -> Renewed | Stored:
    """Each step takes the proof that only the one before it can give. A handoff that is only stored ends half-way."""
    asked = request_handoff(host, worker, opened)
    parsed = parse_checkpoint(host, worker, asked)
    saved = persist_handoff(host, worker, parsed)
    if host.ledger.renewal(opened.renewal_id).purpose == "handoff":
        return Stored(renewal=close(host, worker, host.ledger.renewal(opened.renewal_id), End.SPARED, "handoff only"))
    with host.bringing_back():
        stopped = stop_worker(host, worker, saved)
        running = respawn_worker(host, worker, stopped)
    prompt = send_resume_prompt(host, worker, running, saved)
    return mark_healthy(host, worker, prompt)


def ended(host: Host, outcome: Outcome) -> State[Any]:
    """The state of a run that ends with *outcome*, which its page tells in full."""
    report(host, outcome)
    return state_of(outcome)


def state_of(outcome: Outcome) -> State[Any]:
    """The Prefect state that shows *outcome*. Names other than Prefect's own are listed in the automations."""
    match outcome:
        case Renewed(renewal=renewal):
            return Completed(name="Renewed", message=f"{renewal.worker_id}: generation {renewal.generation + 1}")
        case Blocked(block=placed, renewal=renewal):
            return Failed(name="Blocked", message=f"{renewal.worker_id}: {placed.reason}: {placed.detail}")
        case Parked(until=until, why=why):
            until_then = f"until {until:%Y-%m-%d %H:%M} UTC: " if until else ""
            return Completed(name="Parked", message=f"{outcome.worker_id}: parked {until_then}{redact(why)}")
        case Stored(renewal=renewal):
            return Completed(name="Stored", message=str(renewal.saved.archive if renewal.saved else ""))
        case Spared(reason=reason):
            return Completed(name="Spared", message=redact(reason))
