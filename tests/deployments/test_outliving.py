"""Agents outlive Afresh: whatever is killed of it, and whoever started the tmux server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.agents.ground import has_ended
from tests.agents.stage import Stage
from tests.ports import free_port

pytestmark = pytest.mark.prefect

REPOSITORY = Path(__file__).parents[2]
NAMES = ("swarm1", "swarm2", "swarm3")


class Host:
    """Three workers on a host of their own, and the commands of its operator."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.stages = stage, {name: stage.another(name) for name in NAMES[1:]}
        self.stages = {NAMES[0]: stage, **self.stages}
        self.port = free_port("127.0.0.1")
        configuration = stage.ground.home / "afresh.toml"
        lines = [f'socket = "{stage.ground.socket}"', f"server = {{ port = {self.port} }}", "sweep_interval = 3600"]
        lines.append("policy = { soft = 30000, handoff = 60000, hard = 90000 }")
        for name, one in self.stages.items():
            one.behave()
            lines.append(f'[workers.{name}]\nautomatic = true\ncwd = "{one.cwd}"')
            lines.append(f"command = {json.dumps(list(one.command))}")
        configuration.write_text("\n".join(lines))
        configuration.chmod(0o600)
        self.environment = {**stage.ground.environment, "PYTHONPATH": str(REPOSITORY)}
        self.serving: list[subprocess.Popen[bytes]] = []
        self.seen: dict[int, psutil.Process] = {}

    def afresh(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "deployments.cli", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def serve(self) -> subprocess.Popen[bytes]:
        """Start `afresh serve` and wait until its server answers and its recovery has run."""
        record, log = self.stage.ground.home / "server.json", self.stage.root / f"serve-{len(self.serving)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "deployments.cli", "serve"],
                env=self.environment,
                cwd=self.stage.root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.serving.append(process)
        self.stage.wait(lambda: record.exists() and f'"pid":{process.pid}' in record.read_text(), 90, "the server")
        self.stage.wait(lambda: "'recover'" in log.read_text(errors="replace"), 60, "a recovery at the start")
        return process

    def kill(self, process: subprocess.Popen[bytes], *, children_first: bool = False) -> None:
        """KILL serve and everything below it, by pid."""
        tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        self.seen |= {member.pid: member for member in tree}
        for member in reversed(tree) if children_first else tree:
            if member.is_running():
                with suppress(ProcessLookupError):  # it ended with its parent
                    os.kill(member.pid, signal.SIGKILL)
        process.wait(60)

    def agents(self) -> dict[str, int]:
        return {name: one.pane_pid for name, one in self.stages.items()}

    def end(self) -> None:
        for process in self.serving:
            if process.poll() is None:
                self.kill(process)
        for member in self.seen.values():
            self.stage.wait(partial(has_ended, member.pid), 60, f"the end of {member}")


@pytest.fixture
def host(empty_stage: Stage) -> Iterator[Host]:
    host = Host(empty_stage)
    try:
        yield host
    finally:
        host.end()


def test_three_agents_outlive_the_death_and_the_restart_of_serve_and_of_its_runs(host: Host) -> None:
    started = host.afresh("start", "swarm1")  # no tmux server runs on this socket yet
    assert started.returncode == 0, started.stderr
    for name in NAMES[1:]:
        host.stages[name].start()
    for one in host.stages.values():
        one.wait_ready()
    agents = host.agents()
    first = host.serve()
    host.stages["swarm2"].fill(20_000)

    host.kill(first)
    assert host.agents() == agents
    second = host.serve()
    assert host.agents() == agents
    host.kill(second, children_first=True)

    assert host.agents() == agents
    assert not any(map(has_ended, agents.values()))
    assert [len(one.starts()) for one in host.stages.values()] == [1, 1, 1]
    for one in host.stages.values():
        one.wait_ready()


def test_a_tmux_server_that_afresh_had_to_start_is_none_of_its_own_processes(host: Host) -> None:
    before = {"PREFECT_API_KEY": "secret", "AFRESH_PROBE": "x", "OPENAI_API_KEY": "secret"}
    host.environment |= before
    process = subprocess.Popen(
        [sys.executable, "-m", "deployments.cli", "start", "swarm1"],
        env=host.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors

    server = psutil.Process(int(host.stage.format("#{pid}")))
    ours = process.pid  # leader of its own group and session
    assert os.getpgid(server.pid) not in (ours, os.getpgid(0))
    assert os.getsid(server.pid) not in (ours, os.getsid(0))
    assert server.ppid() != ours
    assert not {name for name in server.environ() if name in before or name.startswith(("PREFECT_", "AFRESH_"))}
    if "INVOCATION_ID" in os.environ and Path("/run/systemd/system").is_dir():
        assert Path(f"/proc/{server.pid}/cgroup").read_text() != Path("/proc/self/cgroup").read_text()
    agent = host.stage.pane_pid
    assert os.getsid(agent) not in (ours, os.getsid(0))


def test_serve_takes_up_at_its_start_what_a_killed_run_left(host: Host) -> None:
    stage = host.stage
    stage.start()
    stage.wait_ready()
    stage.fill(70_000)
    stage.behave(held=True)
    renewing = subprocess.Popen(
        [sys.executable, "-m", "deployments.cli", "renew", "swarm1"],
        env=host.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    stage.wait(
        lambda: any(row.content.startswith("CONTEXT_HANDOFF_REQUIRED") for row in stage.rows()), 90, "the request"
    )
    host.kill(renewing)
    stage.behave(held=False)

    host.serve()

    def status() -> dict[str, object]:
        found: list[dict[str, object]] = json.loads(host.afresh("status", "swarm1", "--json").stdout)
        return found[0]

    stage.wait(lambda: status()["generation"] == 2, 240, "the renewal's end")
    asked = [row for row in stage.rows() if row.content.startswith("CONTEXT_HANDOFF_REQUIRED")]
    assert len(asked) == 1
    assert len(stage.starts()) == 2
