"""What people are told, each once: by a Prefect block through the automations, by the sinks without the server."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import get_client
from prefect.deployments import run_deployment
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from deployments.server import recorded
from lifecycle.settings import load_settings
from tests.agents.stage import Stage
from tests.deployments.operations.hook import Hook, hook
from tests.deployments.operations.stand import Program, Stand, awaited
from tests.ports import free_port

pytestmark = [pytest.mark.operations, pytest.mark.prefect, pytest.mark.timeout(900)]


class Ground:
    """An `afresh serve` over two workers, with a webhook, an Apprise address and a Prefect block on loopback."""

    def __init__(self, hooked: Hook, stage: Stage, other: Stage, port: int) -> None:
        self.hook, self.stage, self.other, self.port = hooked, stage, other, port
        apprise = hooked.url("apprise").replace("http://", "json://")
        more = f"""
[notify]
webhook = "{hooked.url("sink")}"
apprise = ["{apprise}"]
blocks = ["custom-webhook/operators"]
[deadlines]
handoff_answer = 25
delivery = 8
[workers.{other.worker_id}]
cwd = "{other.cwd}"
command = {json.dumps(list(other.command))}
"""
        self.stand = Stand("here", stage, f"port = {port}", more=more)
        self.served = Program(stage, "serve")

    def is_up(self) -> bool:
        found = recorded(load_settings(environ=self.stage.ground.environment))
        return found is not None and found.is_healthy()

    def settings(self) -> dict[object, str]:
        found = recorded(load_settings(environ=self.stage.ground.environment))
        assert found is not None
        return {PREFECT_API_URL: found.api, PREFECT_API_AUTH_STRING: f"afresh:{found.password}"}

    def renew(self, stage: Stage) -> str:
        run = run_deployment("renew/renew", parameters={"worker_id": stage.worker_id}, timeout=0, as_subflow=False)
        return str(run.id)  # type: ignore[union-attr]

    def process_of(self, run_id: str) -> psutil.Process | None:
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("PREFECT__FLOW_RUN_ID") == run_id and "prefect" in " ".join(process.cmdline()):
                    return process
        return None


@pytest.fixture
def ground(stage: Stage) -> Iterator[Ground]:
    other = stage.another("swarm2")
    other.start()
    other.wait_ready()
    for one in (stage, other):
        one.fill(20_000)
    with hook() as hooked:
        made = Ground(hooked, stage, other, free_port("127.0.0.1"))
        try:
            awaited(made.is_up, 180, "the server", made.served.log)
            yield made
        finally:
            made.served.end()


def test_blocked_parked_crashed_and_a_dead_server_are_told_once_on_every_way_with_what_to_do(ground: Ground) -> None:
    stand, hooked, log = ground.stand, ground.hook, ground.served.log
    refused = stand.afresh("deploy")
    assert refused.returncode == 2
    assert "--automations-only" in refused.stderr

    # The runner makes its deployments after its automations.
    with temporary_settings(ground.settings()), get_client(sync_client=True) as client:
        awaited(lambda: len(client.read_deployments()) == 5, 120, "the deployments", log)
        missing = stand.afresh("deploy", "--automations-only")
        assert missing.returncode == 2
        assert "custom-webhook/operators: not on the server" in missing.stderr
        CustomWebhookNotificationBlock(
            name="operators",
            url=hooked.url("block"),
            json_data={"subject": "{{subject}}", "body": "{{body}}"},
        ).save("operators")
        for _ in range(2):
            assert stand.afresh("deploy", "--automations-only").returncode == 0
        names = [automation.name for automation in client.read_automations()]
        assert len(names) == len(set(names)) == 8, names

        ground.stage.behave(handoff="silent")
        ground.other.behave(handoff="mute", trouble="❌ API call failed after 3 retries: HTTP 429 rate limit exceeded")
        blocked = ground.renew(ground.stage)
        ground.renew(ground.other)
        for path in ("sink", "apprise", "block"):
            awaited(lambda path=path: hooked.at(path, "parked"), 150, f"parked at {path}", log)  # type: ignore[misc]
            awaited(lambda path=path: hooked.at(path, "blocked"), 150, f"blocked at {path}", log)  # type: ignore[misc]
            told = hooked.at(path, "blocked")[0]
            assert told["subject"] == "swarm1: blocked: handoff_timeout"
            assert "afresh answer swarm1" in told["body"]
            assert f"/runs/flow-run/{blocked}" in told["body"] + told.get("link", "")
            # A sweep may see the limit before the renewal does.
            assert "/runs/flow-run/" in str(hooked.at(path, "parked")[0])

        assert stand.afresh("answer", "swarm1", "dismiss", "--why", "for the next run").returncode == 0
        dying = ground.renew(ground.stage)
        process = awaited(lambda: ground.process_of(dying), 120, "the process of the run", log)
        state = "Pending"
        while state in ("Pending", "Scheduled", "Late"):
            state = awaited(lambda: client.read_flow_run(dying).state_name, 60, "a state")  # type: ignore[arg-type]
        process.kill()
        for path in ("sink", "apprise", "block"):
            awaited(lambda path=path: hooked.at(path, "crashed: renew swarm1"), 180, f"crashed at {path}", log)  # type: ignore[misc]
            assert dying in str(hooked.at(path, "crashed: renew swarm1")[0])

    served = recorded(load_settings(environ=ground.stage.ground.environment))
    assert served is not None
    assert served.process is not None
    os.kill(served.process.pid, signal.SIGKILL)
    for path in ("sink", "apprise"):
        awaited(lambda path=path: hooked.at(path, "server is down"), 60, f"the server's end at {path}", log)  # type: ignore[misc]
    assert ground.served.process.wait(90) == 1, "a supervisor starts it again"
    assert "the Prefect server has ended" in log.read_text()
    assert psutil.pid_exists(ground.stage.pane_pid), "agents live on"

    assert stand.afresh("watch").returncode == 1
    for path, subjects in {
        "sink": ("blocked", "parked", "crashed: renew swarm1", "server is down"),
        "apprise": ("blocked", "parked", "crashed: renew swarm1", "server is down"),
        "block": ("blocked", "parked", "crashed: renew swarm1"),
    }.items():
        for subject in subjects:
            assert len(hooked.at(path, subject)) == 1, (path, subject, hooked.received)
