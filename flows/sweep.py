"""sweep_workers: one pass over all workers."""

from __future__ import annotations

import contextvars
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Literal

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import FlowRun, State
from prefect.deployments import run_deployment
from prefect.states import Completed

from flows.asking import request_checkpoint, request_handoff_only
from flows.renewal import renew_worker
from lifecycle.decision import Action
from lifecycle.ending import block_outright, find_proof
from lifecycle.host import Host
from lifecycle.lock import is_held
from lifecycle.settings import load_settings
from lifecycle.shield import signals_heard
from lifecycle.survey import Finding, survey
from lifecycle.value import Value

RENEW_DEPLOYMENT = "renew/renew"


class Swept(Value):
    """What a sweep did for one worker."""

    worker_id: str
    action: Action
    outcome: Literal["renewed", "spared", "blocked", "parked", "requested", "none"]
    reason: str
    renewal_id: str | None = None


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
    """Survey the workers and act. *renewals*: each as a run of the `renew` deployment, or `here`, in this process."""
    with Host.opened(load_settings()) as host:
        findings = survey_workers(host, worker_ids)
        due = [finding for finding in findings if finding.worker.managed and _is_due(host, finding)]
        with signals_heard():
            swept = _act(host, due, here=renewals == "here")
    acted = ", ".join(f"{entry.worker_id}: {entry.outcome}" for entry in swept) or "nothing to do"
    return Completed(message=f"{len(findings)} workers; {acted}", data=[entry.model_dump() for entry in swept])


def _is_due(host: Host, finding: Finding) -> bool:
    renewal = finding.record.open_renewal
    if renewal is None:
        return finding.decision.action not in (Action.NONE, Action.NOTIFY)
    if is_held(host.paths(finding.worker).lock):
        return False
    return renewal.block is None or find_proof(host, finding.worker, renewal)


def _act(host: Host, due: list[Finding], *, here: bool) -> list[Swept]:
    swept, renewals = [], []
    for finding in due:
        if finding.record.open_renewal is not None or finding.decision.action is Action.RENEW:
            renewals.append(finding)
            continue
        swept.append(_act_on_one(host, finding))
    return swept + (_renew_here(host, renewals) if here else [_start_run(host, finding) for finding in renewals])


def _act_on_one(host: Host, finding: Finding) -> Swept:
    match finding.decision.action:
        case Action.BLOCK:
            block_outright(host, finding.worker, finding.decision, finding.reading)
            outcome: Literal["blocked", "requested", "spared"] = "blocked"
        case Action.HANDOFF:
            state = request_handoff_only(finding.worker_id, asked_by="sweep", return_state=True)
            outcome = "requested" if state.name == "Stored" else "spared"
        case _:
            state = request_checkpoint(finding.worker_id, asked_by="sweep", return_state=True)
            outcome = "requested" if state.name == "Requested" else "spared"
    return Swept(
        worker_id=finding.worker_id,
        action=finding.decision.action,
        outcome=outcome,
        reason=finding.decision.reason,
    )


def _start_run(host: Host, finding: Finding) -> Swept:
    """Start the renewal as a run of its own. The key keeps sweeps from piling up runs while one waits for a place."""
    started = run_deployment(
        RENEW_DEPLOYMENT,
        parameters={"worker_id": finding.worker_id, "why": finding.decision.reason, "asked_by": "sweep"},
        timeout=0,
        idempotency_key=_key(finding, host.now()),
        as_subflow=False,
    )
    run_id = str(started.id) if isinstance(started, FlowRun) else ""
    host.event("renewal.started", finding.worker, flow_run_id=run_id)
    return Swept(worker_id=finding.worker_id, action=Action.RENEW, outcome="requested", reason=finding.decision.reason)


def _key(finding: Finding, now: datetime) -> str:
    renewal = finding.record.open_renewal
    stands = f"{renewal.renewal_id}:{renewal.phase}" if renewal else finding.reading.session_id
    return f"{finding.worker_id}:{finding.record.generation}:{stands}:{now:%Y%m%d%H}"


def _renew_here(host: Host, findings: list[Finding]) -> list[Swept]:
    if not findings:
        return []
    if len(findings) == 1:
        return [_renew_one(findings[0])]
    with ThreadPoolExecutor(max_workers=host.settings.max_parallel_renewals) as pool:
        running = [pool.submit(contextvars.Context().run, _renew_one, finding) for finding in findings]
        return [future.result() for future in running]


def _renew_one(finding: Finding) -> Swept:
    state = renew_worker(finding.worker_id, why=finding.decision.reason, asked_by="sweep", return_state=True)
    outcomes: dict[str, Literal["renewed", "spared", "blocked"]] = {"Renewed": "renewed", "Spared": "spared"}
    return Swept(
        worker_id=finding.worker_id,
        action=Action.RENEW,
        outcome=outcomes.get(state.name or "", "blocked"),
        reason=state.message or "",
    )
