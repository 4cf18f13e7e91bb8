"""Step 1: is a renewal due, and does all exist that brings the worker back?"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from lifecycle.archive import obstacles
from lifecycle.decision import Action
from lifecycle.ending import close
from lifecycle.errors import PreflightFailed, Stuck
from lifecycle.host import Host
from lifecycle.launching import launch_of
from lifecycle.record import WorkerRecord
from lifecycle.renewal import End, OpenedRenewal, Phase, Renewal, Spared, new_renewal_id
from lifecycle.screen import PaneState
from lifecycle.steps.standing import amend
from lifecycle.survey import DOWN, Finding, examine
from lifecycle.worker import Worker

MOST_TAKE_UPS = 3
"""So many runs may end at one phase before a human is called."""


def detect_context_pressure(
    host: Host,
    worker: Worker,
    *,
    forced: bool = False,
    by_hand: bool = False,
    why: str = "",
    flow_run_id: str | None = None,
    wanted: Action = Action.RENEW,
    asked_at: datetime | None = None,
) -> OpenedRenewal | Spared:
    """Open a renewal if one is due, or take up the open one.

    *wanted* is the action that the caller carries out: a renewal, or a handoff that is only stored.
    *asked_at* is when the order was given: a renewal that has ended since has carried it out.
    *by_hand* is an operator's consent: it needs no pressure and no `automatic`. *forced* also ends a busy turn.

    Raises:
        PreflightFailed, LaunchUnknown: the renewal is open and something that it needs is missing.
    """
    record = host.ledger.record(worker.worker_id)
    if record.open_renewal is not None:
        worker = host.governed(worker, record.open_renewal.reading)
        unwanted = _no_longer_wanted(host, worker, record, record.open_renewal, by_hand=by_hand or forced)
        if unwanted is not None:
            return unwanted
        taken_up = take_up(host, worker, record, flow_run_id)
        if taken_up is not None:
            return taken_up
        by_hand = True  # its renewal had stopped it: that it comes back needs no other consent
    elif done := _done_already(host, worker, flow_run_id, asked_at):
        return Spared(worker_id=worker.worker_id, reason=done)
    finding = examine(host, worker, by_hand=by_hand or forced)
    chosen = decide_renewal(finding, forced=forced, wanted=wanted)
    if isinstance(chosen, Spared):
        return chosen
    now = host.now()
    mission = host.mission(worker)
    renewal = Renewal(
        renewal_id=new_renewal_id(now),
        worker_id=worker.worker_id,
        generation=record.generation,
        opened_at=now,
        updated_at=now,
        phase_times={"opened": now},
        forced=forced,
        purpose="handoff" if wanted is Action.HANDOFF else "renew",
        by_hand=by_hand or forced,
        why=why or finding.decision.reason,
        flow_run_id=flow_run_id,
        taken_up_by=(flow_run_id,) if flow_run_id else (),
        reading=finding.reading,
        substitute=chosen,
        mission_id=mission.mission_id,
        assignment_id=mission.assignment_id,
    )
    with host.ledger.transaction():
        host.ledger.open(renewal)
        host.ledger.remember(worker.worker_id, stale_renewed_in=finding.reading.session_id)
        if renewal.substitute == "reboot":
            # From here on the renewal is what brings it back; whoever closes it decides that it stays down.
            host.ledger.remember(worker.worker_id, was_alive=False)
        host.event("renewal.opened", worker, renewal.renewal_id, why=renewal.why, tokens=finding.reading.tokens)
    return _opened(_preflight(host, worker, renewal))


def take_up(host: Host, worker: Worker, record: WorkerRecord, flow_run_id: str | None) -> OpenedRenewal | Spared | None:
    """Go on with the open renewal; None where a reboot undid what it had reached, so that it is closed.

    Raises:
        PreflightFailed, LaunchUnknown
        Stuck: run after run has ended at its phase.
    """
    renewal = record.open_renewal
    if renewal is None:
        return None
    if renewal.block is not None:
        return Spared(worker_id=worker.worker_id, reason=f"blocked ({renewal.block.reason}): answer it first")
    if flow_run_id and flow_run_id not in renewal.taken_up_by:
        _refuse_stuck(renewal)
        by = (*renewal.taken_up_by, flow_run_id)
        renewal = amend(host, renewal, taken_up_by=by, take_ups=renewal.take_ups + 1)
    if record.was_cut_off_before(host.boot_id()) and host.look(worker).state in DOWN:
        if renewal.phase.reached(Phase.RESPAWNED):
            # Its new session went down before it was proved. A phase never goes back: the next one starts it.
            close(host, worker, renewal, End.SPARED, "the host rebooted under the new session; it is brought back anew")
            return None
        host.ledger.remember(worker.worker_id, was_alive=False)  # as where one is opened for it
        if not renewal.phase.reached(Phase.PARSED):
            renewal = amend(host, renewal, substitute="reboot", delivery=None)
    return _opened(_preflight(host, worker, renewal) if renewal.launch is None else renewal)


def _refuse_stuck(renewal: Renewal) -> None:
    """What ended three runs at one phase, whatever it was, ends the fourth one too: a human is called."""
    if renewal.take_ups >= MOST_TAKE_UPS:
        runs = renewal.taken_up_by[-MOST_TAKE_UPS:]
        msg = f"{renewal.worker_id}: {MOST_TAKE_UPS} flow runs took it up at {renewal.phase}, and each ended there"
        raise Stuck(msg, worker_id=renewal.worker_id, evidence="flow runs:\n" + "\n".join(runs))


def _no_longer_wanted(
    host: Host, worker: Worker, record: WorkerRecord, renewal: Renewal, *, by_hand: bool
) -> Spared | None:
    """Why an open renewal may not go on: what an operator said since counts, until the worker is down for it."""
    if renewal.block is not None or renewal.has_stopped_worker:
        return None
    if record.is_held:
        return Spared(worker_id=worker.worker_id, reason=f"held ({record.held_why}); nothing is typed or stopped")
    automatic = worker.automatic if record.automatic is None else record.automatic
    if by_hand or renewal.by_hand or automatic:
        return None
    reason = "automatic renewal was switched off while it was open"
    close(host, worker, renewal, End.SPARED, reason)
    return Spared(worker_id=worker.worker_id, reason=reason)


def _done_already(host: Host, worker: Worker, flow_run_id: str | None, asked_at: datetime | None) -> str:
    """Why an order is carried out already: its run was run again, or another one came first."""
    for renewal in host.ledger.renewals_of(worker.worker_id):
        if flow_run_id and flow_run_id in renewal.taken_up_by:
            return f"renewal {renewal.renewal_id} of this run has ended; nothing is begun again"
        if asked_at is not None and renewal.end is End.RENEWED and renewal.updated_at > asked_at:
            return f"renewed by {renewal.renewal_id} since it was asked for"
    return ""


def decide_renewal(
    finding: Finding, *, forced: bool, wanted: Action
) -> Literal["synthesize", "reboot"] | Spared | None:
    """Whether the finding calls for a renewal: how its handoff is to be made (None: asked for), or why not."""
    if finding.decision.action is Action.START and wanted is Action.RENEW:
        return "reboot"
    due = finding.decision.action in (Action.RENEW, wanted)
    if forced and (due or finding.decision.waits) and finding.pane.state is PaneState.BUSY:
        return "synthesize"
    return None if due else Spared(worker_id=finding.worker_id, reason=finding.decision.reason)


def _preflight(host: Host, worker: Worker, renewal: Renewal) -> Renewal:
    remembered = host.ledger.record(worker.worker_id).launch
    launch = launch_of(host, worker, host.process(worker), remembered=remembered)
    missing = [*host.agent(worker).preflight(worker, launch), *obstacles(host.paths(worker))]
    if missing:
        msg = f"{worker.worker_id}: {'; '.join(missing)}"
        raise PreflightFailed(msg, worker_id=worker.worker_id)
    with host.ledger.transaction():
        host.ledger.remember(worker.worker_id, launch=launch)
        return amend(host, renewal, launch=launch)


def _opened(renewal: Renewal) -> OpenedRenewal:
    if renewal.reading is None:
        msg = f"{renewal.renewal_id} was opened without a reading"
        raise PreflightFailed(msg, worker_id=renewal.worker_id)
    return OpenedRenewal(renewal_id=renewal.renewal_id, worker_id=renewal.worker_id, reading=renewal.reading)
