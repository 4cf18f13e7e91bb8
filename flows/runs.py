"""Renewals that are due, each as a flow run: of the `renew` deployment, or here, in this process."""

from __future__ import annotations

import contextvars
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, cast

from prefect.client.schemas.objects import FlowRun, State
from prefect.deployments import run_deployment

from flows.renewal import renew_worker
from lifecycle.decision import Action
from lifecycle.host import Host
from lifecycle.value import Value


def deployment_of(flow: str, host_name: str) -> str:
    """The deployment of *flow* on a host with a work pool of its own; that of `afresh serve` without a name."""
    return f"{flow}/{flow}-{host_name}" if host_name else f"{flow}/{flow}"


Outcome = Literal["renewed", "spared", "blocked", "parked", "requested", "none", "failed"]

_OUTCOMES: dict[str, Outcome] = {
    "Renewed": "renewed",
    "Spared": "spared",
    "Blocked": "blocked",
    "Parked": "parked",
    "Stored": "requested",
    "Requested": "requested",
}


def outcome_of(state: State[Any]) -> Outcome:
    """What the end of a run means for its worker. A run that was refused, crashed or cancelled has failed."""
    return _OUTCOMES.get(state.name or "", "failed")


class Due(Value):
    """A renewal to begin or to go on with. *occasion* is the same as long as it is due for the same cause."""

    worker_id: str
    action: Action
    reason: str
    occasion: str


class Swept(Value):
    """What a sweep did for one worker; *reason* says why where it did nothing or failed."""

    worker_id: str
    action: Action
    outcome: Outcome
    reason: str
    renewal_id: str | None = None


def renew_all(host: Host, due: Sequence[Due], *, here: bool, host_name: str = "") -> list[Swept]:
    """Run each renewal: *here* and wait for all, at most so many at once as the host has places; or start runs.

    *host_name* names the host whose work pool the runs are for; without one they are for `afresh serve`.
    """
    if not here:
        return [_started(host, one, host_name) for one in due]
    if len(due) < 2:
        return [_renewed(one) for one in due]
    with ThreadPoolExecutor(max_workers=host.settings.max_parallel_renewals) as pool:
        running = [pool.submit(contextvars.Context().run, _renewed, one) for one in due]
        return [future.result() for future in running]


def _started(host: Host, due: Due, host_name: str) -> Swept:
    """Start a run, unless the last one of this occasion has not ended: sweeps pile up none while one waits its turn."""
    key = f"{due.worker_id}:{due.occasion}:{host.now():%Y%m%d%H}"
    run = _run_of(key, due, host_name)
    while run.state is not None and run.state.is_final():
        run = _run_of(f"{key}:{run.id}", due, host_name)
    host.event("renewal.started", host.worker(due.worker_id), flow_run_id=str(run.id))
    return Swept(worker_id=due.worker_id, action=due.action, outcome="requested", reason=due.reason)


def _run_of(key: str, due: Due, host_name: str) -> FlowRun:
    """The run of the `renew` deployment that has this key; a new one where none has."""
    parameters = {"worker_id": due.worker_id, "why": due.reason, "asked_by": "sweep"}
    if host_name:
        parameters["host"] = host_name
    name = deployment_of("renew", host_name)
    run = run_deployment(name, parameters=parameters, timeout=0, idempotency_key=key, as_subflow=False)
    return cast("FlowRun", run)  # typed as it is for callers that await it


def _renewed(due: Due) -> Swept:
    state = renew_worker(due.worker_id, why=due.reason, asked_by="sweep", return_state=True)
    return Swept(worker_id=due.worker_id, action=due.action, outcome=outcome_of(state), reason=state.message or "")
