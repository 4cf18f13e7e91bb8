"""An operator at the command line of a worker's host: in this process where that is enough, else as a real one."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from deployments import cli
from deployments.server import started
from lifecycle.host import Host
from lifecycle.settings import Settings, load_settings
from tests.agents.deadlines import DEADLINES
from tests.agents.stage import Stage
from tests.ports import free_port

REPOSITORY = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "deployments.cli")


class Done(NamedTuple):
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)

    @property
    def refusal(self) -> str:
        """The one line that says what was wrong with the call; nothing else was printed."""
        assert (self.code, self.out) == (2, ""), self
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return lines[0].removeprefix("afresh: ")


class Operator:
    """Runs `afresh` on the ground of a stage, whose worker the configuration names."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.stage, self._monkeypatch, self._capsys = stage, monkeypatch, capsys
        for name, value in {**stage.ground.environment, "AFRESH_CONFIG": "", "COLUMNS": "110"}.items():
            monkeypatch.setenv(name, value)
        self.configure()

    @property
    def toml(self) -> Path:
        return self.stage.ground.home / "afresh.toml"

    def configure(self, text: str = "", **worker: Any) -> None:
        """Write afresh.toml: limits of 30,000 / 60,000 / 90,000 tokens, patient deadlines, automatic renewal off."""
        entry = {"cwd": str(self.stage.cwd), "command": list(self.stage.command), **worker}
        lines = [
            f"socket = {json.dumps(self.stage.ground.socket)}",
            table("deadlines", DEADLINES),
            table("policy", {"soft": 30_000, "handoff": 60_000, "hard": 90_000}),
            table(f"workers.{self.stage.worker_id}", entry),
            text,
        ]
        self.write("\n".join(lines))

    def write(self, text: str) -> None:
        """Replace afresh.toml in one step: what runs never reads half of it."""
        fresh = self.toml.with_suffix(".new")
        fresh.write_text(text)
        fresh.chmod(0o600)
        fresh.replace(self.toml)

    def __call__(self, *arguments: str, stdin: str | None = None) -> Done:
        """Run a command in this process."""
        self._capsys.readouterr()
        if stdin is not None:
            self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = cli.run(arguments)
        return Done(code, *self._capsys.readouterr())

    def process(self, *arguments: str, stdin: str = "", **environment: str) -> Done:
        """Run a command as a process of its own."""
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=REPOSITORY,
            env=self.environment(**environment),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def environment(self, **more: str) -> dict[str, str]:
        return {**self.stage.ground.environment, **more}

    @contextmanager
    def host(self) -> Iterator[Host]:
        with Host.opened(load_settings()) as host:
            yield host


def table(name: str, values: dict[str, Any]) -> str:
    return "\n".join([f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())])


@pytest.fixture
def afresh(empty_stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Operator:
    """The command line of a host whose worker swarm1 does not run; `afresh.stage.start()` starts it."""
    return Operator(empty_stage, monkeypatch, capsys)


@pytest.fixture
def running(stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Operator:
    """The command line of a host whose worker swarm1 shows its input line."""
    return Operator(stage, monkeypatch, capsys)


@pytest.fixture(scope="session")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One Prefect server for every command that needs one."""
    home = tmp_path_factory.mktemp("served")
    settings = Settings(home=home, hermes_root=home, memory_root=home)
    with started(settings, port=free_port("127.0.0.1"), password=None) as server:
        assert server.process is not None
        assert os.getpgid(server.process.pid) != os.getpgid(0)
        yield server.api
