"""sweep_workers: one pass over all workers."""

from __future__ import annotations

from typing import Any, Literal

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.asking import request_checkpoint, request_handoff_only
from flows.recovery import go_on
from flows.runs import Due, Outcome, Swept, renew_all
from lifecycle.decision import Action
from lifecycle.ending import block_outright, find_proof
from lifecycle.errors import RenewalInProgress
from lifecycle.host import Host
from lifecycle.lock import held, is_held
from lifecycle.settings import load_settings
from lifecycle.shield import signals_heard
from lifecycle.survey import Finding, survey


@task(task_run_name="survey workers", cache_policy=NO_CACHE)
def survey_workers(host: Host, worker_ids: list[str] | None) -> list[Finding]:
    """Read all workers in one task: a task a worker costs many times more."""
    workers = host.workers() if worker_ids is None else [host.worker(worker_id) for worker_id in worker_ids]
    return survey(host, workers)


@flow(
    name="sweep",
    flow_run_name="sweep",
    description="Look at every worker and do what its context calls for.",
    persist_result=False,
)
def sweep_workers(worker_ids: list[str] | None = None, renewals: Literal["runs", "here"] = "runs") -> State[Any]:
    """Go on with what was interrupted, survey the workers and act.

    *renewals*: each as a run of the `renew` deployment, or `here`, in this process.
    """
    with Host.opened(load_settings()) as host:
        with signals_heard():
            recovered = go_on(host, worker_ids, here=renewals == "here")
        findings = survey_workers(host, worker_ids)
        due = [finding for finding in findings if finding.worker.managed and _is_due(host, finding)]
        with signals_heard():
            swept = recovered + _act(host, due, here=renewals == "here")
    acted = ", ".join(f"{entry.worker_id}: {entry.outcome}" for entry in swept) or "nothing to do"
    return Completed(message=f"{len(findings)} workers; {acted}", data=[entry.model_dump() for entry in swept])


def _is_due(host: Host, finding: Finding) -> bool:
    renewal = finding.record.open_renewal
    if finding.is_parked:
        return False
    if renewal is None:
        return finding.decision.action not in (Action.NONE, Action.NOTIFY)
    if is_held(host.paths(finding.worker).lock):
        return False
    return renewal.block is not None and find_proof(host, finding.worker, renewal)


def _act(host: Host, due: list[Finding], *, here: bool) -> list[Swept]:
    swept, renewals = [], []
    for finding in due:
        if finding.record.open_renewal is not None or finding.decision.action in (Action.RENEW, Action.START):
            renewals.append(_due(finding))
            continue
        swept.append(_act_on_one(host, finding))
    return swept + renew_all(host, renewals, here=here)


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
            outcome: Outcome = _block(host, finding)
        case Action.HANDOFF:
            state = request_handoff_only(finding.worker_id, asked_by="sweep", return_state=True)
            ends: dict[str, Outcome] = {"Stored": "requested", "Parked": "parked"}
            outcome = ends.get(state.name or "", "spared")
        case _:
            state = request_checkpoint(finding.worker_id, asked_by="sweep", return_state=True)
            outcome = "requested" if state.name == "Requested" else "spared"
    return Swept(
        worker_id=finding.worker_id,
        action=finding.decision.action,
        outcome=outcome,
        reason=finding.decision.reason,
    )


def _block(host: Host, finding: Finding) -> Outcome:
    try:
        with held(host.paths(finding.worker).lock, worker_id=finding.worker_id):
            block_outright(host, finding.worker, finding.decision, finding.reading)
    except RenewalInProgress:
        return "spared"
    return "blocked"
