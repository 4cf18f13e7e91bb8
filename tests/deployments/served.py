"""A real `afresh serve` over one worker, for tests that look at what it serves."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import urllib.request
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from lifecycle.ledger import Ledger
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until
from tests.agents.ground import has_ended
from tests.agents.stage import Stage
from tests.ports import free_port

_REPOSITORY = Path(__file__).parents[2]


class Served:
    """A running `afresh serve` over one worker."""

    def __init__(self, stage: Stage, *, sweep_interval: int = 30, automatic: bool = True, more: str = "") -> None:
        self.stage = stage
        self.port = free_port("127.0.0.1")
        configuration = stage.ground.home / "afresh.toml"
        configuration.write_text(
            f"""
sweep_interval = {sweep_interval}
socket = "{stage.ground.socket}"
server = {{ port = {self.port} }}
policy = {{ soft = 30000, handoff = 60000, hard = 90000 }}
{more}
[workers.{stage.worker_id}]
automatic = {json.dumps(automatic)}
cwd = "{stage.cwd}"
command = ["{stage.command[0]}", "chat", "--cli"]
"""
        )
        configuration.chmod(0o600)
        self.log = stage.root / "serve.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "deployments.cli", "serve"],
                env={**stage.ground.environment, "PYTHONPATH": str(_REPOSITORY)},
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
            env={**self.stage.ground.environment, "PYTHONPATH": str(_REPOSITORY)},
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
        self.stage.wait(lambda: all(has_ended(child.pid) for child in children), 60, f"the end of {children}")
