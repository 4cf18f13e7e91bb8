"""Renewals of the real Hermes Agent: what they cost besides the agent's own time, and how soon a row is seen."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from prefect import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.testing.utilities import prefect_test_harness

from deployments.demo.script import Script
from deployments.demo.scripted_model import ScriptedModel
from lifecycle.delivery import deliver
from lifecycle.host import Host
from lifecycle.renewal import Phase, Renewal
from lifecycle.settings import load_settings
from lifecycle.waiting import SystemClock, wait_until
from tests.agents.hermes_stage import HermesStage
from tests.bench.measure import Figure
from tests.flows.conftest import Scene

MISSION = "Mission: keep the seed ledger of this folder, ledger.txt, one line an entry, in order. Begin with entry 1."
TASKS = 8
AGENTS = (Phase.PARSED, Phase.STOPPED, Phase.RESPAWNED, Phase.PROVED)
"""Phases that end when the agent has answered, has exited, shows its input line, and has answered again."""

PATIENT = {"delivery": 15, "handoff_answer": 60, "idle_before_stop": 30, "exit": 15, "term": 5, "ready": 90,
           "resume_answer": 60}  # fmt: skip


class CountedSleeps(SystemClock):
    """Counts how often a wait looks again."""

    def __init__(self) -> None:
        self.sleeps = 0

    def sleep(self, span: timedelta) -> None:
        self.sleeps += 1
        super().sleep(span)


def with_hermes(_: Path, *, runs: int = 5) -> Iterator[Figure]:
    with (
        prefect_test_harness(server_startup_timeout=120),
        ScriptedModel(Script()) as model,
        pytest.MonkeyPatch.context() as patch,
    ):
        stage = HermesStage(_hermes(), model, "cli")
        try:
            stage.start()
            stage.wait_ready(90)
            scene = Scene(stage, patch, deadlines=PATIENT)
            scene.configure(policy={"cooldown": 0})
            stage.answer_to(stage.say(MISSION))
            stage.wait_ready(30)
            spans = [_renewed(scene) for _ in range(runs)]
            yield _overhead(spans)
            yield from _seen(scene, runs * 2)
        finally:
            stage.ground.clear()


def _hermes() -> Path:
    return Path(os.environ.get("AFRESH_TEST_HERMES") or Path(__file__).parents[2] / ".agent" / "bin" / "hermes")


def _overhead(spans: list[dict[str, float]]) -> Figure:
    middle = {name: statistics.median(one[name] for one in spans) for name in spans[0]}
    return Figure(
        name="renewal of a real Hermes Agent, besides its exit, start and answers",
        value=statistics.median(one["own"] / one["total"] for one in spans) * 100, unit="% of the whole", target=15,
        better="less", detail={f"{name}, s": took for name, took in middle.items()},
    )  # fmt: skip


def _renewed(scene: Scene) -> dict[str, float]:
    """Seconds of each phase of one renewal; `total` is the run's, `own` is that without what the agent takes."""
    scene.stage.fill(70_000)
    # By hand, for a sweep calls a human after four within an hour.
    assert scene.renew().name == "Renewed"
    scene.stage.wait_ready(30)
    renewal = scene.renewal
    total = scene.stage.wait(lambda: _total(renewal), 30, "the end of the eight tasks")
    times = {Phase(name): at for name, at in renewal.phase_times.items()}
    spans = {
        later.value: (times[later] - times[earlier]).total_seconds()
        for earlier, later in zip(list(Phase), list(Phase)[1:], strict=False)
    }
    return {**spans, "total": total, "own": total - sum(spans[phase] for phase in AGENTS)}


def _total(renewal: Renewal) -> float | None:
    async def span() -> float | None:
        run_id = UUID(renewal.flow_run_id)
        async with get_client() as client:
            run = await client.read_flow_run(run_id)
            tasks = await client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run_id])))
        ends = [task.end_time for task in tasks if task.end_time is not None]
        if len(ends) < TASKS or run.start_time is None:
            return None
        ended: datetime = max(ends)
        return (ended - run.start_time).total_seconds()

    return asyncio.run(span())


def _seen(scene: Scene, turns: int) -> Iterator[Figure]:
    """Between the time of a row in state.db and the moment at which a wait of Afresh has it."""
    clock = CountedSleeps()
    rows, answers, waited = [], [], 0.0
    with Host.opened(load_settings(), clock=clock) as host:
        worker = host.worker(scene.worker_id)
        agent = host.agent(worker)
        for number in range(turns):
            text = f"say the number {number}"
            began = time.monotonic()
            row = deliver(host, worker, text, kind="bench")
            rows.append(_since(row.at))
            reply = wait_until(partial(agent.find_reply, worker, row, text), timedelta(seconds=60), clock)
            answers.append(_since(reply.at))
            waited += time.monotonic() - began
            scene.stage.wait_ready(30)
    for name, found in (("delivery", rows), ("answer", answers)):
        yield Figure(
            name=f"{name} seen after its row's time, the slowest of {turns}", value=max(found), unit="s", target=0.5,
            better="less", detail={"median, s": statistics.median(found)},
        )  # fmt: skip
    yield Figure(name="looks while waiting", value=clock.sleeps / waited, unit="a second", target=5, better="less")


def _since(at: datetime) -> float:
    return (datetime.now(UTC) - at).total_seconds()
