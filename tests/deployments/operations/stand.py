"""A host of its own beside others: a home, a tmux socket, a worker, and its Prefect worker as a real process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from lifecycle.ledger import Ledger
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until
from tests.agents.stage import Stage

_T = TypeVar("_T")
REPOSITORY = Path(__file__).parents[3]


def awaited(probe: Callable[[], _T | None], within: float, what: str, *logs: Path) -> _T:
    """The first true result of *probe*; a failure shows the end of *logs*."""
    try:
        return wait_until(lambda: probe() or None, timedelta(seconds=within), SystemClock(), timedelta(seconds=0.5))
    except DeadlinePassed:
        tails = "\n".join(f"--- {log}\n{log.read_text()[-3000:]}" for log in logs if log.exists())
        pytest.fail(f"{what} did not come in {within} s\n{tails}")


class Program:
    """An `afresh` command that runs until it is ended."""

    def __init__(self, stage: Stage, *words: str) -> None:
        self.log = stage.root / f"{words[0]}.log"
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [*stage.ground.inside, sys.executable, "-m", "deployments.cli", *words],
                env={**stage.ground.environment, "PYTHONPATH": str(REPOSITORY)},
                cwd=stage.root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def end(self, within: float = 60) -> None:
        """End it by TERM, as systemd does, and what it started with it."""
        if self.process.poll() is not None:
            return
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(within)
        _, left = psutil.wait_procs(children, timeout=within)
        assert not left, f"left behind: {left}"


class Stand:
    """One host, whose worker is a scripted agent in a real pane."""

    def __init__(self, name: str, stage: Stage, server: str, *, more: str = "") -> None:
        self.name, self.stage = name, stage
        self.home = stage.ground.home
        configuration = self.home / "afresh.toml"
        configuration.write_text(
            f"""
host_name = "{name}"
sweep_interval = 30
socket = "{stage.ground.socket}"
server = {{ {server} }}
policy = {{ soft = 30000, handoff = 60000, hard = 90000 }}
{more}
[workers.{stage.worker_id}]
automatic = true
cwd = "{stage.cwd}"
command = {json.dumps(list(stage.command))}
"""
        )
        configuration.chmod(0o600)

    def afresh(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.stage.ground.inside, sys.executable, "-m", "deployments.cli", *words],
            env={**self.stage.ground.environment, "PYTHONPATH": str(REPOSITORY)},
            cwd=self.stage.root,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def json(self, *words: str) -> Any:
        done = self.afresh(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def post(self, port: int, path: str, body: dict[str, Any]) -> tuple[int, Any] | None:
        """Ask the HTTP API of this host from this host, whose loopback may be another's than this process's.

        None where nothing listens there yet.
        """
        asked = {
            "url": f"http://127.0.0.1:{port}{path}",
            "headers": {"Authorization": f"Bearer {(self.home / 'http.token').read_text().strip()}"},
            "json": body,
            "timeout": 60,
        }
        ask = (
            "import httpx, json, sys; answer = httpx.post(**json.load(sys.stdin)); "
            "print(json.dumps([answer.status_code, answer.json()]))"
        )
        done = subprocess.run(
            [*self.stage.ground.inside, sys.executable, "-c", ask],
            env=self.stage.ground.environment,
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if "ConnectError" in done.stderr:
            return None
        assert done.returncode == 0, done.stderr
        status, answer = json.loads(done.stdout)
        return status, answer

    def generation(self) -> int:
        with Ledger(self.home / "ledger.db") as ledger:
            return ledger.record(self.stage.worker_id).generation

    def swept_at(self) -> Any:
        with Ledger(self.home / "ledger.db") as ledger:
            return ledger.stamped("swept")
