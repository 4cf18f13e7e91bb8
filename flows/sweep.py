"""sweep_workers: one pass over all workers."""

from __future__ import annotations

from typing import Any, Literal

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.events import emit_event
from prefect.states import Completed, Failed

from flows.artifacts import show_fleet
from flows.asking import request_checkpoint, request_handoff_only
from flows.hosting import SWEPT, host_of_run, sweeps_of
from flows.recovery import go_on, tell_cancelled
from flows.reports import report
from flows.runs import Due, Swept, outcome_of, renew_all
from lifecycle import outage
from lifecycle.decision import Action
from lifecycle.ending import block_outright, find_proof
from lifecycle.errors import LifecycleError, OtherHost, RenewalInProgress
from lifecycle.host import Host
from lifecycle.lock import held
from lifecycle.screen import PaneState
from lifecycle.shield import signals_heard
from lifecycle.survey import Finding, Survey, survey


@task(task_run_name="survey workers", cache_policy=NO_CACHE)
def survey_workers(host: Host, worker_ids: list[str] | None) -> Survey:
    """Read all workers in one task: a task a worker costs many times more."""
    workers = host.workers() if worker_ids is None else [host.worker(worker_id) for worker_id in worker_ids]
    return survey(host, workers)


@flow(
    name="sweep",
    flow_run_name="sweep",
    description="Look at every worker and do what its context calls for.",
    persist_result=False,
)
def sweep_workers(
    worker_ids: list[str] | None = None, renewals: Literal["runs", "here"] = "runs", host: str = ""
) -> State[Any]:
    """Go on with what was interrupted, survey the workers and act.

    *renewals*: each as a run of the `renew` deployment, or `here`, in this process. *host* must be this one, where it
    is named.
    """
    with host_of_run() as this:
        try:
            this.must_be(host)
        except OtherHost as error:
            return Failed(name="Refused", message=error.detail)
        with signals_heard():
            recovered = go_on(this, worker_ids, here=renewals == "here", host_name=host)
        found = survey_workers(this, worker_ids)
        managed = [finding for finding in found.findings if finding.worker.managed]
        due, failed = _due_among(this, managed)
        taken_up = {entry.worker_id for entry in recovered} | {finding.worker_id for finding in due}
        free = [one.worker for one in managed if one.pane.state is PaneState.READY and one.worker_id not in taken_up]
        told = tell_cancelled(this, free)
        with signals_heard():
            swept = recovered + failed + told + _act(this, due, here=renewals == "here", host_name=host)
        this.ledger.stamp(outage.SWEPT, at=this.now())
        emit_event(SWEPT, resource=sweeps_of(this.settings.host_name))
        if worker_ids is None:
            show_fleet(this, found, {entry.worker_id for entry in swept})
    swept += [_failed(one.worker_id, one.detail) for one in found.unexamined]
    acted = ", ".join(f"{entry.worker_id}: {entry.outcome}" for entry in swept) or "nothing to do"
    handled = {entry.worker_id for entry in swept}
    left = [_left_alone(finding) for finding in managed if finding.worker_id not in handled]
    count = len(found.findings) + len(found.unexamined)
    return Completed(message=f"{count} workers; {acted}", data=[entry.model_dump() for entry in swept + left])


def _due_among(host: Host, findings: list[Finding]) -> tuple[list[Finding], list[Swept]]:
    """The findings that call for an act, and the workers for which that could not be told."""
    due, failed = [], []
    for finding in findings:
        try:
            if _is_due(host, finding):
                due.append(finding)
        except LifecycleError as error:
            failed.append(_failed(finding.worker_id, error.detail))
    return due, failed


def _failed(worker_id: str, why: str) -> Swept:
    return Swept(worker_id=worker_id, action=Action.NONE, outcome="failed", reason=why)


def _left_alone(finding: Finding) -> Swept:
    return Swept(
        worker_id=finding.worker_id, action=finding.decision.action, outcome="none", reason=finding.decision.reason
    )


def _is_due(host: Host, finding: Finding) -> bool:
    renewal = finding.record.open_renewal
    if finding.is_parked:
        return False
    if renewal is None:
        return finding.decision.action not in (Action.NONE, Action.NOTIFY)
    if renewal.block is None:
        return False
    try:
        with held(host.paths(finding.worker).lock, worker_id=finding.worker_id):
            return find_proof(host, finding.worker, host.ledger.renewal(renewal.renewal_id))
    except RenewalInProgress:
        return False


def _act(host: Host, due: list[Finding], *, here: bool, host_name: str) -> list[Swept]:
    swept, renewals = [], []
    for finding in due:
        if finding.record.open_renewal is not None or finding.decision.action in (Action.RENEW, Action.START):
            renewals.append(_due(finding))
            continue
        swept.append(_act_on_one(host, finding))
    return swept + renew_all(host, renewals, here=here, host_name=host_name)


def _due(finding: Finding) -> Due:
    renewal, session = finding.record.open_renewal, finding.reading.session_id
    stands = f"{renewal.renewal_id}:{renewal.phase}:{renewal.updated_at:%H%M%S}" if renewal else session
    return Due(
        worker_id=finding.worker_id,
        action=Action.START if finding.decision.action is Action.START else Action.RENEW,
        reason=finding.decision.reason,
        occasion=f"{finding.record.generation}:{stands}",
    )


def _act_on_one(host: Host, finding: Finding) -> Swept:
    match finding.decision.action:
        case Action.BLOCK:
            return _block(host, finding)
        case Action.HANDOFF:
            state = request_handoff_only(finding.worker_id, asked_by="sweep", return_state=True)
        case _:
            state = request_checkpoint(finding.worker_id, asked_by="sweep", return_state=True)
    outcome = outcome_of(state)
    reason = finding.decision.reason if outcome == "requested" else state.message or finding.decision.reason
    return Swept(worker_id=finding.worker_id, action=finding.decision.action, outcome=outcome, reason=reason)


def _block(host: Host, finding: Finding) -> Swept:
    swept = Swept(worker_id=finding.worker_id, action=Action.BLOCK, outcome="blocked", reason=finding.decision.reason)
    try:
        with held(host.paths(finding.worker).lock, worker_id=finding.worker_id):
            blocked = block_outright(host, finding.worker, finding.decision, finding.reading)
    except RenewalInProgress as error:
        return swept.model_copy(update={"outcome": "spared", "reason": error.detail})
    except LifecycleError as error:
        return swept.model_copy(update={"outcome": "failed", "reason": error.detail})
    report(host, blocked)
    return swept
