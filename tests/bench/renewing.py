"""Renewals of the real Hermes Agent: what they cost besides the agent's own time, and how soon a row is seen."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.testing.utilities import prefect_test_harness

from deployments.demo.script import Script
from deployments.demo.scripted_model import ScriptedModel
from lifecycle.agents.hermes.agent import HermesAgent
from lifecycle.delivery import deliver
from lifecycle.host import Host
from lifecycle.input_line import LONG_OVER
from lifecycle.renewal import Phase, Renewal
from lifecycle.settings import load_settings
from lifecycle.waiting import UNCHANGED, wait_until
from tests.agents.hermes_stage import HermesStage
from tests.bench.acts import Acts
from tests.bench.measure import Figure
from tests.flows.conftest import Scene

MISSION = "Mission: keep the seed ledger of this folder, ledger.txt, one line an entry, in order. Begin with entry 1."
TASKS = 8
PACE = 80.0
"""Tokens a second that a large model writes."""

PATIENT = {"delivery": 15, "handoff_answer": 60, "idle_before_stop": 30, "exit": 15, "term": 5, "ready": 90,
           "resume_answer": 60}  # fmt: skip


class Looks:
    """Counts how often a wait looks into the agent's database."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.taken = 0
        for name in ("find_sent", "find_reply"):
            patch.setattr(HermesAgent, name, self._counted(getattr(HermesAgent, name)))

    def _counted(self, look: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.taken += 1
            return look(*args, **kwargs)

        return counted


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
            acts = Acts(patch)
            yield _overhead("which answers at once", [_renewed(scene, acts) for _ in range(runs)])
            model.change(pace=PACE)
            yield _overhead(f"which writes {PACE:.0f} tokens a second", [_renewed(scene, acts) for _ in range(runs)])
            model.change(pace=None)
            yield from _seen(scene, Looks(patch), runs * 2)
        finally:
            stage.ground.clear()


def _hermes() -> Path:
    return Path(os.environ.get("AFRESH_TEST_HERMES") or Path(__file__).parents[2] / ".agent" / "bin" / "hermes")


def _overhead(model: str, spans: list[dict[str, float]]) -> Figure:
    middle = {name: statistics.median(one[name] for one in spans) for name in spans[0]}
    return Figure(
        name=f"renewal of a real Hermes Agent with a model {model}, besides its exit, start and answers",
        value=statistics.median(one["own"] / one["total"] for one in spans) * 100, unit="% of the whole", target=15,
        better="less", detail={f"{name}, s": took for name, took in middle.items()},
    )  # fmt: skip


def _renewed(scene: Scene, acts: Acts) -> dict[str, float]:
    """Seconds of each phase of one renewal, and of the agent's acts; `own` is the whole without those.

    What the agent's turns take behind their answers, and what it takes to write a row of what was entered, is in
    `own`.
    """
    scene.stage.fill(70_000)
    # A sweep finds a worker at rest: what is typed at the very end of a turn waits for that end.
    filled = time.monotonic()
    scene.stage.wait(lambda: time.monotonic() - filled > LONG_OVER.total_seconds(), 30)
    worked = time.process_time()
    # By hand, for a sweep calls a human after four within an hour.
    assert scene.renew().name == "Renewed"
    worked = time.process_time() - worked
    scene.stage.wait_ready(30)
    renewal = scene.renewal
    total = scene.stage.wait(lambda: _total(renewal), 30, "the end of the eight tasks")
    times = {Phase(name): at for name, at in renewal.phase_times.items()}
    spans = {
        later.value: (times[later] - times[earlier]).total_seconds()
        for earlier, later in zip(list(Phase), list(Phase)[1:], strict=False)
    }
    agents = _agents(scene, acts, renewal)
    own = total - sum(agents.values())
    tails = _tails(scene, acts, renewal)
    return {**spans, "total": total, **agents, "own": own, "turns' ends within own": tails, "processor time": worked}


def _agents(scene: Scene, acts: Acts, renewal: Renewal) -> dict[str, float]:
    """Seconds of what only the agent can do."""
    assert renewal.request is not None
    assert renewal.resume is not None
    handoff, resumed = _answered(scene, renewal)
    return {
        "agent's exit": acts.exit(renewal),
        "agent's start": acts.start(renewal),
        "agent's handoff": acts.answer(renewal.request.row.at, handoff),
        "agent's resume": acts.answer(renewal.resume.row.at, resumed),
    }


def _tails(scene: Scene, acts: Acts, renewal: Renewal) -> float:
    handoff, resumed = _answered(scene, renewal)
    stopping = renewal.phase_times[Phase.STOPPING].timestamp()
    return acts.turn_end(handoff, stopping) + acts.turn_end(resumed, acts.next_enter(resumed))


def _answered(scene: Scene, renewal: Renewal) -> tuple[float, float]:
    """The times of the rows with the two answers."""
    assert renewal.parsed is not None
    assert renewal.acknowledgement is not None
    rows = renewal.parsed.reply_row, renewal.acknowledgement.reply_row
    with closing(sqlite3.connect(f"file:{scene.stage.profile / 'state.db'}?mode=ro", uri=True)) as state:
        found = dict(state.execute("SELECT id, timestamp FROM messages WHERE id IN (?, ?)", rows).fetchall())
    return found[rows[0]], found[rows[1]]


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


def _seen(scene: Scene, looks: Looks, turns: int) -> Iterator[Figure]:
    """Between the time of a row in state.db and the moment at which a wait of Afresh has it."""
    rows, answers, waited, waits = [], [], 0.0, 0
    with Host.opened(load_settings()) as host:
        worker = host.worker(scene.worker_id)
        agent = host.agent(worker)
        for number in range(turns):
            text = f"say the number {number}"
            began = time.monotonic()
            row = deliver(host, worker, text, kind="bench")
            rows.append(_since(row.at))
            waits += 2
            look, stamp = partial(agent.find_reply, worker, row, text), partial(agent.stamp, worker)
            reply = wait_until(look, timedelta(seconds=60), host.clock, UNCHANGED, stamp=stamp, at_once=False)
            answers.append(_since(reply.at))
            waited += time.monotonic() - began
            scene.stage.wait_ready(30)
    for name, found in (("delivery", rows), ("answer", answers)):
        yield Figure(
            name=f"{name} seen after its row's time, the slowest of {turns}", value=max(found), unit="s", target=0.5,
            better="less", detail={"median, s": statistics.median(found)},
        )  # fmt: skip
    yield Figure(
        name="looks while waiting, behind the first", value=(looks.taken - waits) / waited, unit="a second", target=5,
        better="less", detail={"looks": looks.taken, "waits": waits, "s": waited},
    )  # fmt: skip


def _since(at: datetime) -> float:
    return (datetime.now(UTC) - at).total_seconds()
