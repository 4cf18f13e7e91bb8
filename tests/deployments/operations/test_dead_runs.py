"""A run whose machine is gone: nobody is left to say so, and the server must."""

from __future__ import annotations

from contextlib import suppress

import psutil
import pytest
from prefect.client.orchestration import get_client
from prefect.deployments import run_deployment
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from deployments.server import Running, recorded
from lifecycle.settings import load_settings
from tests.agents.stage import Stage
from tests.deployments.operations.stand import Program, Stand, awaited
from tests.ports import free_port

pytestmark = [pytest.mark.operations, pytest.mark.prefect, pytest.mark.timeout(900)]


def test_a_run_that_died_with_its_prefect_worker_is_crashed_for_want_of_heartbeats(stage: Stage) -> None:
    stage.fill(20_000)
    stand = Stand("here", stage, f"port = {free_port('127.0.0.1')}", more="[deadlines]\nhandoff_answer = 600")
    server, worker = Program(stage, "server"), None
    try:
        found = awaited(lambda: recorded(load_settings(environ=stage.ground.environment)), 60, "its record", server.log)
        awaited(Running(url=found.url).is_healthy, 180, "the server", server.log)
        stand.json("deploy", "--wait", "120")
        worker = Program(stage, "worker")
        stage.behave(handoff="silent")
        access = {PREFECT_API_URL: found.api, PREFECT_API_AUTH_STRING: f"afresh:{found.password}"}
        with temporary_settings(access), get_client(sync_client=True) as client:
            begun = run_deployment(
                "renew/renew-here", parameters={"worker_id": stage.worker_id}, timeout=0, as_subflow=False
            )
            run_id = begun.id  # type: ignore[union-attr]

            def state() -> str:
                return client.read_flow_run(run_id).state_name or ""

            awaited(lambda: state() == "Running", 180, "the run", worker.log)
            for process in [psutil.Process(worker.process.pid), *psutil.Process(worker.process.pid).children(True)]:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            worker.process.wait(20)
            assert state() == "Running"
            awaited(lambda: state() == "Crashed", 300, "the verdict of the server", server.log)
            assert "no sign of life" in (client.read_flow_run(run_id).state.message or "")  # type: ignore[union-attr]
    finally:
        if worker is not None:
            worker.end()
        server.end()
