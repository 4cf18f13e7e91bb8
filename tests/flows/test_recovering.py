"""Runs that die, run twice or are run again: the ledger decides, whatever Prefect says of them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect import get_client
from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId
from prefect.client.schemas.objects import FlowRun, Log, State
from prefect.flow_engine import run_flow
from prefect.settings import PREFECT_API_URL
from prefect.states import AwaitingRetry, Crashed

from deployments import cli
from deployments.prefect_environment import client_environment
from flows.recovery import recover_renewals
from flows.renewal import renew_worker
from flows.sweep import sweep_workers
from lifecycle.renewal import End, Phase
from tests.flows.conftest import Scene, acted

REPOSITORY = Path(__file__).parents[2]


class Renewing:
    """A process that renews the scene's worker, from its start on ready to begin."""

    def __init__(self, scene: Scene, name: str, *, asked_by: str = "sweep") -> None:
        self.scene, self._here, self._go = scene, scene.stage.root / f"{name}.here", scene.stage.root / "go"
        command = [sys.executable, "-m", "tests.flows.renewing_process"]
        api = PREFECT_API_URL.value()
        assert api is not None
        self.log = scene.stage.root / f"{name}.log"
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(
                [*command, scene.worker_id, str(self._here), str(self._go), asked_by],
                cwd=REPOSITORY,
                env={**os.environ, **_as_served(scene), "PREFECT_API_URL": api},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def begin(self) -> None:
        self.scene.stage.wait(self._here.exists, 60, "the process")
        self._go.touch()

    def reach(self, phase: Phase) -> None:
        """Begin, and wait until the renewal stands at *phase*."""
        self.begin()
        self.scene.stage.wait(lambda: self._stands_at() is phase, 60, f"phase {phase}")

    def _stands_at(self) -> Phase | None:
        with self.scene.host() as host:
            renewal = host.ledger.record(self.scene.worker_id).open_renewal
        return renewal.phase if renewal else None

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=60)

    def ended(self) -> tuple[str, str]:
        """The name of its state, and its flow run."""
        out, _ = self.process.communicate(timeout=90)
        name, _, run_id = out.strip().rpartition("\n")[2].partition(" ")
        assert name, self.log.read_text()[-3000:]
        return name, run_id


@pytest.fixture
def processes() -> Iterator[list[Renewing]]:
    started: list[Renewing] = []
    yield started
    for one in started:
        if one.process.poll() is None:
            one.kill()


def _as_served(scene: Scene) -> dict[str, str]:
    """What the runs of `afresh serve` find in their environment, but for where Prefect keeps its files."""
    with scene.host() as host:
        given = client_environment(host.settings)
    return {name: value for name, value in given.items() if name != "PREFECT_HOME"}


async def _logged(run_id: str) -> list[Log]:
    async with get_client() as client:
        only = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[uuid.UUID(run_id)]))
        return await client.read_logs(only, limit=200)


async def _set(run_id: str, state: State[Any]) -> FlowRun:
    async with get_client() as client:
        await client.set_flow_run_state(uuid.UUID(run_id), state, force=True)
        return await client.read_flow_run(uuid.UUID(run_id))


def _requests(scene: Scene) -> int:
    return sum(text.startswith("CONTEXT_HANDOFF_REQUIRED") for text in scene.user_texts())


def _run_again(scene: Scene, run_id: str) -> State[Any]:
    """As Prefect's runner does after `prefect flow-run retry` or the UI's button."""
    again = asyncio.run(_set(run_id, AwaitingRetry()))
    found = run_flow(renew_worker, flow_run=again, parameters={"worker_id": scene.worker_id}, return_type="state")
    assert isinstance(found, State)
    return found


def _swept() -> list[dict[str, Any]]:
    return acted(sweep_workers(renewals="here", return_state=True))


def _look(scene: Scene) -> dict[str, str]:
    """Everything that a look may not change: the ledger's bytes, the pane, the worker's files."""
    files = [
        path for path in (scene.stage.ground.home / "afresh.db", *scene.stage.profile.rglob("*")) if path.is_file()
    ]
    with scene.host() as host:
        files.append(host.settings.ledger_path)
    found = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    return {**found, "pane": scene.stage.screen(), "pid": str(scene.stage.pane_pid)}


@pytest.mark.parametrize("asked_by", ["sweep", "operator"])
def test_two_processes_at_once_make_exactly_one_renewal(scene: Scene, processes: list[Renewing], asked_by: str) -> None:
    processes += [Renewing(scene, "one", asked_by=asked_by), Renewing(scene, "two", asked_by=asked_by)]
    for one in processes:
        scene.stage.wait(one._here.exists, 60, "the process")
    processes[0].begin()

    ends = sorted(one.ended()[0] for one in processes)

    assert ends == ["Renewed", "Spared"]
    with scene.host() as host:
        assert [renewal.end for renewal in host.ledger.renewals_of(scene.worker_id)] == [End.RENEWED]
    assert _requests(scene) == 1
    assert len(scene.stage.starts()) == 2


def test_a_run_that_is_run_again_after_its_end_does_nothing(scene: Scene) -> None:
    first = scene.renew()
    assert first.name == "Renewed"
    before, pid = scene.user_texts(), scene.stage.pane_pid

    again = _run_again(scene, str(first.state_details.flow_run_id))

    assert again.name == "Spared"
    assert "has ended" in (again.message or "")
    assert (scene.user_texts(), scene.stage.pane_pid) == (before, pid)


def test_what_its_steps_say_stands_in_the_log_of_a_run(scene: Scene, processes: list[Renewing]) -> None:
    one = Renewing(scene, "one")
    processes.append(one)
    one.begin()
    name, run_id = one.ended()

    assert name == "Renewed"
    told = [log.message for log in asyncio.run(_logged(run_id)) if log.name == "lifecycle.host"]
    assert {f"swarm1: {phase}" for phase in ("requested", "saved", "stopped", "proved")} <= set(told)


def test_a_blocked_run_that_is_run_again_leaves_the_block_to_its_human(scene: Scene) -> None:
    scene.stage.behave(handoff="partial")
    first = scene.renew()
    assert first.name == "Blocked"
    scene.stage.behave(handoff="good")
    before = scene.user_texts()

    assert _run_again(scene, str(first.state_details.flow_run_id)).name == "Spared"
    assert scene.user_texts() == before
    assert scene.block.reason == "checkpoint_incomplete"


def test_a_run_marked_crashed_that_still_lives_goes_on_alone(scene: Scene, processes: list[Renewing]) -> None:
    scene.stage.behave(held=True)
    living = Renewing(scene, "living")
    processes.append(living)
    living.reach(Phase.REQUESTED)
    with scene.host() as host:
        run_id = host.ledger.renewals_of(scene.worker_id)[0].flow_run_id
    assert run_id
    asyncio.run(_set(run_id, Crashed()))

    assert recover_renewals(renewals="here", return_state=True).message == "nothing was interrupted"
    assert _swept() == []
    second = scene.renew()
    assert (second.name, second.message) == ("Spared", "swarm1: another process is at work on it")

    scene.stage.behave(held=False)
    assert living.ended()[0] == "Renewed"
    assert _requests(scene) == 1
    assert len(scene.stage.starts()) == 2


@pytest.mark.parametrize("by", ["recover", "sweep", "the same run again"])
def test_a_killed_run_is_taken_up_from_its_phase(scene: Scene, processes: list[Renewing], by: str) -> None:
    scene.stage.behave(held=True)
    killed = Renewing(scene, "killed")
    processes.append(killed)
    killed.reach(Phase.REQUESTED)
    killed.kill()
    scene.stage.behave(held=False)
    interrupted = scene.renewal

    if by == "recover":
        entries: list[dict[str, Any]] = recover_renewals(renewals="here", return_state=True).result()  # type: ignore[assignment]
        assert [entry["outcome"] for entry in entries] == ["renewed"]
    elif by == "sweep":
        (entry,) = _swept()
        assert (entry["outcome"], entry["worker_id"]) == ("renewed", scene.worker_id)
    else:
        assert interrupted.flow_run_id
        assert _run_again(scene, interrupted.flow_run_id).name == "Renewed"

    assert (scene.renewal.renewal_id, scene.renewal.end) == (interrupted.renewal_id, End.RENEWED)
    assert _requests(scene) == 1
    assert recover_renewals(renewals="here", return_state=True).message == "nothing was interrupted"


def test_no_run_that_worked_on_a_renewal_begins_another_when_it_is_run_again(
    scene: Scene, processes: list[Renewing]
) -> None:
    killed = Renewing(scene, "killed", asked_by="operator")
    processes.append(killed)
    scene.stage.behave(held=True)
    killed.reach(Phase.REQUESTED)
    killed.kill()
    scene.stage.behave(held=False)
    first = scene.renewal.flow_run_id
    recover_renewals(renewals="here", return_state=True)
    runs = scene.renewal.taken_up_by
    assert len(runs) == 2
    assert runs[0] == first

    assert [_run_again(scene, run).name for run in runs] == ["Spared", "Spared"]
    assert len(scene.stage.starts()) == 2


def test_a_dry_run_shows_what_would_go_on_and_touches_nothing(
    scene: Scene, processes: list[Renewing], capsys: pytest.CaptureFixture[str]
) -> None:
    scene.stage.behave(held=True)
    killed = Renewing(scene, "killed")
    processes.append(killed)
    killed.reach(Phase.REQUESTED)
    killed.kill()
    scene.stage.behave(held=False)
    scene.stage.wait_ready()
    before = _look(scene)
    capsys.readouterr()

    assert cli.run(["recover", "--dry-run"]) == 0

    shown = capsys.readouterr().out
    assert shown.split()[:3] == ["swarm1", scene.renewal.renewal_id, "requested"]
    assert "wait for the answer: its flow run ended before the renewal did" in shown
    assert _look(scene) == before
