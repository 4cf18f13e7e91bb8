"""The sweep flow over a thousand workers of whom ten are due: what Prefect adds, beside one task a worker."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from prefect import flow, get_client, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import State
from prefect.deployments.runner import RunnerDeployment
from prefect.testing.utilities import prefect_test_harness

from flows.renewal import renew_worker
from flows.runs import Due, renew_all
from flows.sweep import survey_workers, sweep_workers
from lifecycle.decision import Action
from lifecycle.host import Host
from lifecycle.settings import load_settings
from tests.bench.crew import crew_of
from tests.bench.measure import Figure

DUE = 10


@task(cache_policy=NO_CACHE)
def look_at_one(worker_id: str) -> str:
    return worker_id


@flow(name="one task a worker", persist_result=False)
def one_task_each(worker_ids: list[str], due: list[Due]) -> None:
    """What a sweep costs of Prefect where each worker is a task of its own, which does nothing; it starts the same."""
    for future in look_at_one.map(worker_ids):
        future.result()
    with Host.opened(load_settings()) as host:
        renew_all(host, due, here=False)


def sweep(_folder: Path, workers: int = 1_000, *, runs: int = 5, runs_of_each: int = 3) -> Iterator[Figure]:
    """Prefect's part is the flow's time without what the survey itself takes."""
    with prefect_test_harness(server_startup_timeout=120), crew_of(workers, due=DUE) as crew:
        # Nobody takes its runs: what a renewal costs is another figure.
        cast("RunnerDeployment", renew_worker.to_deployment(name="renew")).apply()
        with crew.host() as host:
            _survey(host)
        times, counts = [], []
        for _ in range(runs + 1):
            with crew.host() as host:
                own = _survey(host)
            began = time.perf_counter()
            state: State[Any] = sweep_workers(return_state=True)
            times.append((time.perf_counter() - began, own))
            counts.append(asyncio.run(_task_runs(state.state_details.flow_run_id)))
            assert sum(entry["outcome"] == "requested" for entry in state.result()) == DUE
        each, due = [], [_due(name) for name in crew.names[:DUE]]
        for _ in range(runs_of_each):
            began = time.perf_counter()
            one_task_each(crew.names, due)
            each.append(time.perf_counter() - began)
        ours = statistics.median(whole - own for whole, own in times[1:])
        theirs = statistics.median(each)
        yield Figure(
            name=f"sweep of {workers:,} workers with {DUE} renewals due, Prefect's part", value=theirs / ours,
            unit="times faster", target=5, better="more", against="one task a worker",
            detail={"one task a worker, s": theirs, "Prefect's part, s": ours,
                    "the whole sweep, s": statistics.median(whole for whole, _ in times[1:]),
                    "its survey, s": statistics.median(own for _, own in times[1:])},
        )  # fmt: skip
        yield Figure(name="the same, task runs", value=max(counts), unit="task runs", target=25, better="less")


def _due(worker_id: str) -> Due:
    return Due(worker_id=worker_id, action=Action.RENEW, reason="measured", occasion="bench")


def _survey(host: Host) -> float:
    began = time.perf_counter()
    survey_workers.fn(host, None)
    return time.perf_counter() - began


async def _task_runs(run_id: UUID | None) -> int:
    async with get_client() as client:
        await asyncio.sleep(3)  # Prefect writes task runs from events, a moment later
        return len(await client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run_id]))))
