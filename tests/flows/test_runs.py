"""Renewals that are started as runs of the `renew` deployment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

import pytest
from prefect import get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.deployments.runner import RunnerDeployment
from prefect.states import Completed

from flows import runs
from flows.renewal import renew_worker
from flows.runs import Due, renew_all
from lifecycle.decision import Action
from tests.flows.conftest import Scene

DUE = Due(worker_id="swarm1", action=Action.RENEW, reason="over the limit", occasion="1:session")


async def _end(run_id: UUID, state: State[Any]) -> None:
    async with get_client() as client:
        await client.set_flow_run_state(run_id, state, force=True)


@pytest.fixture
def started(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Callable[[], UUID]:
    """One sweep's start; gives the id of the run that it found or began."""
    cast("RunnerDeployment", renew_worker.to_deployment(name="renew")).apply()
    seen: list[UUID] = []
    original = runs._run_of

    def noted(key: str, due: Due, host_name: str) -> FlowRun:
        run = original(key, due, host_name)
        seen.append(run.id)
        return run

    monkeypatch.setattr(runs, "_run_of", noted)

    def start() -> UUID:
        with scene.host() as host:
            (swept,) = renew_all(host, [DUE], here=False)
        assert swept.outcome == "requested"
        return seen[-1]

    return start


def test_a_run_that_waits_its_turn_is_not_begun_again(started: Callable[[], UUID]) -> None:
    assert started() == started()


def test_a_run_that_has_ended_stands_in_no_later_sweeps_way(started: Callable[[], UUID]) -> None:
    found = []
    for _ in range(3):
        found.append(started())
        asyncio.run(_end(found[-1], Completed(name="Spared", message="not now")))
    assert len(set(found)) == 3
