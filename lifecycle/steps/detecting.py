"""Step 1: is a renewal due, and does all exist that brings the worker back?"""

from __future__ import annotations

import os
from typing import Literal

from lifecycle.archive import obstacles
from lifecycle.decision import Action
from lifecycle.errors import PreflightFailed
from lifecycle.host import Host
from lifecycle.renewal import OpenedRenewal, Renewal, Spared, new_renewal_id
from lifecycle.screen import PaneState
from lifecycle.steps.standing import amend
from lifecycle.survey import Finding, examine
from lifecycle.worker import Worker


def detect_context_pressure(
    host: Host,
    worker: Worker,
    *,
    forced: bool = False,
    by_hand: bool = False,
    why: str = "",
    flow_run_id: str | None = None,
    wanted: Action = Action.RENEW,
) -> OpenedRenewal | Spared:
    """Open a renewal if one is due, or take up the open one.

    *wanted* is the action that the caller carries out: a renewal, or a handoff that is only stored.
    *by_hand* is an operator's consent: it needs no pressure and no `automatic`. *forced* also ends a busy turn.

    Raises:
        PreflightFailed, LaunchUnknown: the renewal is open and something that it needs is missing.
    """
    record = host.ledger.record(worker.worker_id)
    taken_up = record.open_renewal
    if taken_up is not None:
        if taken_up.block is not None:
            return Spared(
                worker_id=worker.worker_id,
                reason=f"blocked ({taken_up.block.reason}): answer it first",
            )
        if taken_up.launch is None:
            taken_up = _preflight(host, worker, taken_up)
        return _opened(taken_up)
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
        why=why or finding.decision.reason,
        flow_run_id=flow_run_id,
        reading=finding.reading,
        substitute=chosen,
        mission_id=mission.mission_id,
        assignment_id=mission.assignment_id,
    )
    host.ledger.open(renewal)
    host.ledger.remember(worker.worker_id, stale_renewed_in=finding.reading.session_id)
    host.event("renewal.opened", worker, renewal.renewal_id, why=renewal.why, tokens=finding.reading.tokens)
    return _opened(_preflight(host, worker, renewal))


def decide_renewal(finding: Finding, *, forced: bool, wanted: Action) -> Literal["synthesize"] | Spared | None:
    """Whether the finding calls for a renewal: how its handoff is to be made (None: asked for), or why not."""
    due = finding.decision.action in (Action.RENEW, wanted)
    if forced and (due or finding.decision.waits) and finding.pane.state is PaneState.BUSY:
        return "synthesize"
    return None if due else Spared(worker_id=finding.worker_id, reason=finding.decision.reason)


def _preflight(host: Host, worker: Worker, renewal: Renewal) -> Renewal:
    agent = host.agent(worker)
    process = host.process(worker)
    wanted = {name: os.environ[name] for name in host.settings.pass_env if name in os.environ}
    launch = agent.launch_spec(worker, process, wanted)
    missing = [*agent.preflight(worker, launch), *obstacles(host.paths(worker))]
    if missing:
        msg = f"{worker.worker_id}: {'; '.join(missing)}"
        raise PreflightFailed(msg, worker_id=worker.worker_id)
    host.ledger.remember(worker.worker_id, launch=launch)
    return amend(host, renewal, launch=launch)


def _opened(renewal: Renewal) -> OpenedRenewal:
    if renewal.reading is None:
        msg = f"{renewal.renewal_id} was opened without a reading"
        raise PreflightFailed(msg, worker_id=renewal.worker_id)
    return OpenedRenewal(renewal_id=renewal.renewal_id, worker_id=renewal.worker_id, reading=renewal.reading)
