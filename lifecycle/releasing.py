"""Telling a worker that was asked for a handoff, and is not renewed, to carry on with its task."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from lifecycle import prompts
from lifecycle.delivery import deliver
from lifecycle.errors import LifecycleError, RenewalInProgress
from lifecycle.host import Host
from lifecycle.idle import wait_idle
from lifecycle.input_line import GONE
from lifecycle.lock import held
from lifecycle.parking import resting
from lifecycle.renewal import Delivery, Phase, Renewal
from lifecycle.screen import PaneState
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker

log = logging.getLogger(__name__)

FOR_A_HUMAN = (*GONE, PaneState.DIALOG, PaneState.SETUP, PaneState.REFUSED, PaneState.COPY_MODE)

FREE_WITHIN = timedelta(seconds=5)
"""How long an input line may take to come free behind an answer that is written already; Hermes needs 0.3 s."""

OWED_FOR = timedelta(days=1)
"""How long after the end of a renewal its worker is still told; later, people have long told it something else."""


def release(host: Host, worker: Worker, renewal: Renewal) -> Renewal:
    """Tell the worker once, with proof, into a free input line; where there is none, a later sweep does."""
    if not _is_owed(host, worker, renewal):
        return renewal
    try:
        return _told(host, worker, renewal) if _comes_free(host, worker) else renewal
    except LifecycleError as error:
        log.warning("%s: not released: %s", worker.worker_id, error)
        return renewal


def unreleased(host: Host, worker: Worker) -> Renewal | None:
    """The renewal of which a worker that was asked has not been told yet that nothing comes of it. Only looks."""
    try:
        return _late(host, worker)
    except LifecycleError as error:
        log.warning("%s: not looked at for a release: %s", worker.worker_id, error)
        return None


def release_late(host: Host, worker: Worker) -> bool:
    """Tell an idle worker that could not be told when its renewal was blocked or closed; whether it was told now."""
    try:
        if _late(host, worker) is None:
            return False
        with held(host.paths(worker).lock, worker_id=worker.worker_id):
            renewal = _late(host, worker)
            if renewal is None or wait_idle(host, worker, timedelta(seconds=1)) is None:
                return False
            _told(host, worker, renewal)
    except RenewalInProgress:
        return False
    except LifecycleError as error:
        log.warning("%s: not released: %s", worker.worker_id, error)
        return False
    return True


def _late(host: Host, worker: Worker) -> Renewal | None:
    """The worker's newest renewal, if it rests blocked or closed and the agent that it asked still waits."""
    renewal = next(iter(host.ledger.renewals_of(worker.worker_id, limit=1)), None)
    if renewal is None or not _is_owed(host, worker, renewal):
        return None
    ended = not renewal.is_open and host.now() - renewal.updated_at < OWED_FOR
    if not ended and renewal.block is None:
        return None
    process, asked = host.process(worker), _asked_at(renewal)
    return renewal if process is not None and asked is not None and process.started_at <= asked else None


def _asked_at(renewal: Renewal) -> datetime | None:
    if renewal.request is not None:
        return renewal.request.row.at
    return renewal.delivery.began_at if renewal.delivery is not None else None


def _is_owed(host: Host, worker: Worker, renewal: Renewal) -> bool:
    record = host.ledger.record(worker.worker_id)
    told = renewal.released or (not renewal.is_open and record.released == renewal.renewal_id)
    if told or _asked_at(renewal) is None or renewal.phase.reached(Phase.STOPPING):
        return False
    return worker.policy.release_on_block and not record.is_held and resting(host, worker) is None


def _told(host: Host, worker: Worker, renewal: Renewal) -> Renewal:
    name, ledger = worker.worker_id, host.ledger

    def remember(intent: Delivery) -> None:
        ledger.remember(name, release=intent)

    deliver(
        host,
        worker,
        prompts.cancelled(renewal_id=renewal.renewal_id),
        kind="release",
        intent=ledger.record(name).release,
        remember=remember,
        queued_for=host.settings.deadlines.delivery,
    )
    with ledger.transaction():
        ledger.remember(name, release=None, released=renewal.renewal_id)
        if renewal.is_open:
            renewal = ledger.put(renewal.model_copy(update={"released": True, "updated_at": host.now()}))
    host.event("renewal.released", worker, renewal.renewal_id)
    return renewal


def _comes_free(host: Host, worker: Worker) -> bool:
    """Whether the input line is free, or will be in a moment because the turn's last word is written already."""

    def settled() -> PaneState | None:
        look, process = host.look_with_process(worker)
        is_settled = look.state is PaneState.READY or look.state in FOR_A_HUMAN
        return look.state if is_settled or not host.turn(worker, process).answered else None

    try:
        return wait_until(settled, FREE_WITHIN, host.clock) is PaneState.READY
    except DeadlinePassed:
        return False
