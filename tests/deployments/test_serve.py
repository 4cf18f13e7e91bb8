"""`afresh serve`: server, schedule and runner as one command, with the scripted agent in a real pane."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from deployments.server import free_port
from lifecycle.ledger import Ledger
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until
from tests.agents.ground import has_ended
from tests.agents.stage import Stage

pytestmark = pytest.mark.prefect


class Served:
    """A running `afresh serve` over one worker."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.port = free_port("127.0.0.1")
        configuration = stage.ground.home / "afresh.toml"
        configuration.write_text(
            f"""
sweep_interval = 30
socket = "{stage.ground.socket}"
server = {{ port = {self.port} }}
policy = {{ soft = 30000, handoff = 60000, hard = 90000 }}
[workers.{stage.worker_id}]
automatic = true
cwd = "{stage.cwd}"
command = ["{stage.command[0]}", "chat", "--cli"]
"""
        )
        configuration.chmod(0o600)
        self.log = stage.root / "serve.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "deployments.cli", "serve"],
                env={**stage.ground.environment, "PYTHONPATH": str(Path(__file__).parents[2])},
                cwd=stage.root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def password(self) -> str:
        return str(json.loads((self.stage.ground.home / "server.password").read_text())["password"])

    def ask(self, path: str, body: dict[str, Any] | None = None, *, password: str | None = None) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/{path}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("content-type", "application/json")
        if password is not None:
            token = base64.b64encode(f"afresh:{password}".encode()).decode()
            request.add_header("Authorization", f"Basic {token}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    def is_up(self) -> bool:
        """Commands of this home find the server once it is recorded."""
        return (self.stage.ground.home / "server.json").exists()

    def afresh(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "deployments.cli", *words],
            env={**self.stage.ground.environment, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.afresh("status", "--json").stdout)[0]
        return found

    def wait_renewed(self, generation: int, within: float = 400) -> None:
        """Wait for the sweep, the runner and the renewal, each of which starts a process of some seconds of work.

        The ledger is read here: a command a look would take one of the machine's cores away from what is waited for.
        """
        with Ledger(self.stage.ground.home / "ledger.db") as ledger:
            try:
                wait_until(
                    lambda: ledger.record(self.stage.worker_id).generation == generation,
                    timedelta(seconds=within),
                    SystemClock(),
                )
            except DeadlinePassed:
                stands = [one.model_dump_json(indent=1) for one in ledger.renewals_of(self.stage.worker_id)]
                log = self.log.read_text()[-6000:]
                pytest.fail("\n".join([f"no generation {generation} in {within} s", *stands, log, self.stage.screen()]))

    def end(self) -> None:
        """Stop it as an operator would; its processes end with it."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        os.kill(self.process.pid, signal.SIGTERM)
        self.process.wait(timeout=40)
        self.stage.wait(lambda: all(has_ended(child.pid) for child in children), 15, f"the end of {children}")


@pytest.fixture
def served(stage: Stage) -> Iterator[Served]:
    stage.fill(20_000)
    running = Served(stage)
    try:
        stage.wait(running.is_up, 90, "the server")
        yield running
    finally:
        if running.process.poll() is None:
            running.end()


@pytest.mark.timeout(700)
def test_serve_sweeps_by_itself_answers_only_with_the_password_and_leaves_agents_alone(served: Served) -> None:
    stage, password = served.stage, served.password()
    home = stage.ground.home

    with pytest.raises(urllib.error.HTTPError, match="401"):
        served.ask("admin/version")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        served.ask("flows/filter", {}, password=password)  # no CSRF token
    assert (home / "server.password").stat().st_mode & 0o777 == 0o600
    assert (home / "server.json").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    listening = {c.laddr.ip for c in psutil.net_connections("tcp") if c.laddr and c.laddr.port == served.port}
    assert listening == {"127.0.0.1"}

    second = served.afresh("serve")
    assert second.returncode == 2
    assert "served already" in second.stderr

    stage.fill(70_000)
    served.wait_renewed(generation=2)
    assert served.status()["context_state"] == "healthy"

    by_hand = served.afresh("renew", stage.worker_id, "--json")
    assert by_hand.returncode == 0, by_hand.stderr
    outcome = json.loads(by_hand.stdout)
    assert (outcome["outcome"], outcome["generation"]) == ("renewed", 3)
    assert f":{served.port}/" in by_hand.stderr, "the served server was used"
    assert "embedded" not in by_hand.stderr

    agent = stage.pane_pid
    served.end()
    assert psutil.pid_exists(agent), "agents outlive the server"
    assert not (home / "server.json").exists()
