"""A worker is started as it was, clean, and only where all that it needs is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lifecycle.agents.hermes.launching import (
    asked_first,
    background_processes,
    is_agent,
    launch_spec,
    preflight,
    profile_of,
)
from lifecycle.errors import LaunchUnknown
from lifecycle.launch import LaunchSpec
from lifecycle.processes import Process, ProcessId, tree_of
from lifecycle.worker import Worker

PYTHON, HERMES = "/opt/agent/bin/python3", "/opt/agent/bin/hermes"


def process(*command: str, cwd: str | None = "/srv/repo", **environment: str) -> Process:
    return Process(
        pid=4711,
        parent=1,
        started_at=datetime(2026, 11, 30, tzinfo=UTC),
        identity=ProcessId(pid=4711, started=1.0),
        command=command,
        cwd=cwd,
        environment=environment,
    )


def chat(*arguments: str, **environment: str) -> Process:
    home = {"HOME": "/home/u", "HERMES_HOME": "/srv/hermes/profiles/swarm1"}
    return process(PYTHON, HERMES, "chat", *arguments, **(home | environment))


def worker(**fields: object) -> Worker:
    base = {"worker_id": "swarm1", "profile": Path("/srv/hermes/profiles/swarm1"), "session": "swarm-swarm1"}
    return Worker.model_validate(base | fields)


PROFILE = Path("/srv/hermes/profiles/swarm1")


@pytest.mark.parametrize(
    "found",
    [
        chat("--cli"),
        chat("--tui", "-c", "old work"),
        process(PYTHON, HERMES, HERMES_HOME=str(PROFILE)),
        process(HERMES, "-m", "some/model", "chat", HERMES_HOME=str(PROFILE)),
        process(PYTHON, "-m", "hermes_cli.main", "chat", HERMES_HOME=str(PROFILE)),
        process(PYTHON, HERMES, "-p", "swarm1", "chat", HERMES_HOME="/srv/hermes"),
        process(PYTHON, HERMES, "chat", "--profile=swarm1", HERMES_HOME="/srv/hermes/profiles/swarm2"),
        process(PYTHON, HERMES, "-c", "chat", HERMES_HOME=str(PROFILE)),
    ],
)
def test_an_interactive_hermes_on_the_profile_is_its_agent(found: Process) -> None:
    assert is_agent(found, PROFILE)


@pytest.mark.parametrize(
    "found",
    [
        chat("--cli", HERMES_HOME="/srv/hermes/profiles/swarm10"),
        process(PYTHON, HERMES, "-p", "swarm10", "chat", HERMES_HOME=str(PROFILE)),
        process(PYTHON, HERMES, "cron", "list", HERMES_HOME=str(PROFILE)),
        process(PYTHON, HERMES, "-m", "chat", "gateway", "run", HERMES_HOME=str(PROFILE)),
        process(PYTHON, "-m", "tui_gateway.entry", HERMES_HOME=str(PROFILE)),
        process("node", "/opt/hermes_cli/tui_dist/entry.js", HERMES_HOME=str(PROFILE)),
        process("bash", "/home/u/.local/bin/hermes", "chat", HERMES_HOME=str(PROFILE)),
        process("vim", "hermes", HERMES_HOME=str(PROFILE)),
        process(PYTHON, HERMES, "chat"),
        process(HERMES_HOME=str(PROFILE)),
    ],
)
def test_no_other_process_is_its_agent(found: Process) -> None:
    assert not is_agent(found, PROFILE)


def test_without_a_profile_in_its_environment_the_sticky_one_counts(tmp_path: Path) -> None:
    root = tmp_path / ".hermes"
    root.mkdir()
    bare = process(PYTHON, HERMES, "chat", HOME=str(tmp_path))
    assert profile_of(bare) == root
    (root / "active_profile").write_text("coder\n")
    assert profile_of(bare) == root / "profiles" / "coder"
    assert profile_of(process(PYTHON, HERMES, "-p", "default", HOME=str(tmp_path))) == root


def test_a_profile_reached_by_a_link_is_the_same(tmp_path: Path) -> None:
    real = tmp_path / "profiles" / "swarm1"
    real.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "profiles")
    assert is_agent(chat(HERMES_HOME=str(real)), tmp_path / "link" / "swarm1")


def test_a_configured_command_comes_first() -> None:
    spec = launch_spec(
        worker(command=("hermes", "chat", "--cli"), cwd=Path("/srv/other"), environment={"A": "1"}),
        chat("--tui"),
        {"OPENAI_API_KEY": "sk-x"},
    )
    assert (spec.source, spec.command, spec.cwd) == ("configured", ("hermes", "chat", "--cli"), Path("/srv/other"))
    assert spec.environment == {
        "HOME": "/home/u",
        "A": "1",
        "OPENAI_API_KEY": "sk-x",
        "HERMES_HOME": "/srv/hermes/profiles/swarm1",
    }


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (("--cli",), ("--cli",)),
        (("--tui", "-c"), ("--tui",)),
        (("-c", "the old work", "--tui"), ("--tui",)),
        (("--continue", "--cli"), ("--cli",)),
        (("--resume", "20261130_140421_e18c96", "--cli"), ("--cli",)),
        (("--resume=20261130_140421_e18c96", "--yolo"), ("--yolo",)),
        (("-r", "x", "-m", "a/b", "-q", "go on with it"), ("-m", "a/b")),
        (("--query=go", "--max-turns", "9"), ("--max-turns", "9")),
    ],
)
def test_a_live_agent_is_started_again_without_its_old_conversation(
    arguments: tuple[str, ...], kept: tuple[str, ...]
) -> None:  # W-23, cortextos #194
    spec = launch_spec(worker(), chat(*arguments, PATH="/opt/node/bin:/bin", TOKEN="x"), {})
    assert spec.source == "live"
    assert spec.command == (PYTHON, HERMES, "chat", *kept)
    assert spec.cwd == Path("/srv/repo")
    assert spec.environment == {
        "HOME": "/home/u",
        "PATH": "/opt/node/bin:/bin",
        "HERMES_HOME": "/srv/hermes/profiles/swarm1",
    }


def test_the_session_name_of_a_bare_hermes_does_not_eat_the_subcommand() -> None:
    live = process(PYTHON, HERMES, "-c", "chat", "--cli", HERMES_HOME=str(PROFILE))
    assert launch_spec(worker(), live, {}).command == (PYTHON, HERMES, "chat", "--cli")


def test_an_unknown_launch_is_refused_with_what_to_do() -> None:
    with pytest.raises(LaunchUnknown, match=r"set `command` and `cwd` in \[workers.swarm1\]"):
        launch_spec(worker(), None, {})
    with pytest.raises(LaunchUnknown, match="set `cwd`"):
        launch_spec(worker(command=("hermes", "chat")), None, {})
    with pytest.raises(LaunchUnknown, match="resumes an old conversation"):
        launch_spec(worker(command=("hermes", "chat", "--continue"), cwd=Path("/")), None, {})


CLEAN = """#!/bin/bash
# operators used to run: hermes chat --continue
export HERMES_HOME=/srv/hermes/profiles/swarm1 HERMES_CLI_BIN=/opt/agent/bin/hermes
cd /srv/repo || exit 1
if [ $# -gt 0 ]; then exec "$HERMES_CLI_BIN" "$@"; fi
bash -c true
"$HERMES_CLI_BIN" chat --tui
"""


@pytest.mark.parametrize(
    ("script", "resumes"),
    [
        (CLEAN, False),
        (CLEAN.replace("chat --tui", "chat --tui --continue"), True),
        (CLEAN.replace("chat --tui", "chat -c"), True),
        ("exec hermes --resume=abc chat\n", True),
        ("exec hermes chat -r 'abc\n", True),
        ("exec env -i hermes chat --cli\n", False),
    ],
)
def test_a_wrapper_that_resumes_is_passed_over(script: str, resumes: bool, tmp_path: Path) -> None:
    wrapper = tmp_path / "builder:task"
    wrapper.write_text(script)
    spec = launch_spec(worker(wrapper=wrapper), chat("--tui"), {})
    assert spec.source == ("live" if resumes else "wrapper")
    if resumes:
        with pytest.raises(LaunchUnknown, match="wrapper"):
            launch_spec(worker(wrapper=wrapper), None, {})


@pytest.fixture
def ready(tmp_path: Path) -> tuple[Worker, LaunchSpec]:
    profile = tmp_path / "profiles" / "swarm1"
    profile.mkdir(parents=True)
    (profile / "config.yaml").write_text("model: {default: m}\n")
    for name in ("hermes", "node", "tmux"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    environment = {"PATH": str(tmp_path / "bin"), "HERMES_HOME": str(profile)}
    launch = LaunchSpec(command=("hermes", "chat", "--tui"), cwd=tmp_path, environment=environment, source="configured")
    return worker(profile=profile), launch


def test_a_worker_with_all_it_needs_passes(ready: tuple[Worker, LaunchSpec]) -> None:
    assert preflight(*ready) == []


def test_everything_that_is_missing_is_named(ready: tuple[Worker, LaunchSpec], tmp_path: Path) -> None:  # W-28
    who, launch = ready
    (tmp_path / "bin" / "hermes").chmod(0o644)
    (tmp_path / "bin" / "node").unlink()
    (who.profile / "config.yaml").write_text("model: {default: [broken\n")
    told = "; ".join(preflight(who, launch.model_copy(update={"cwd": tmp_path / "gone"})))
    assert "no hermes on PATH" in told
    assert "no node on PATH" in told
    assert f"the folder to start in is missing: {tmp_path / 'gone'}" in told
    assert "config.yaml cannot be read" in told
    assert "setup wizard" in told


def test_a_missing_interpreter_script_configuration_or_profile_is_named(
    ready: tuple[Worker, LaunchSpec], tmp_path: Path
) -> None:
    who, launch = ready
    live = launch.model_copy(update={"command": (sys.executable, str(tmp_path / "gone" / "hermes"), "chat", "--cli")})
    assert preflight(who, live) == [f"{tmp_path / 'gone' / 'hermes'} is missing or cannot be run"]
    (who.profile / "config.yaml").unlink()
    assert preflight(who, launch) == [f"{who.profile / 'config.yaml'} is missing: Hermes would start its setup wizard"]
    (who.profile / "config.yaml").write_text("- a list\n")
    assert "holds no settings" in preflight(who, launch)[0]
    who.profile.rename(tmp_path / "elsewhere")
    assert preflight(who, launch) == [f"the profile is missing: {who.profile}"]


def test_a_missing_tmux_is_named(ready: tuple[Worker, LaunchSpec], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert preflight(*ready) == ["no tmux on PATH"]


def test_a_full_disk_is_named(ready: tuple[Worker, LaunchSpec], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifecycle.agents.hermes.launching.LEAST_SPACE", 1 << 62)
    assert "MB are free" in preflight(*ready)[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_profile_that_cannot_be_written_is_named(ready: tuple[Worker, LaunchSpec]) -> None:
    who, launch = ready
    (who.profile / "state.db").write_bytes(b"")
    (who.profile / "state.db").chmod(0o444)
    assert preflight(who, launch) == [f"the profile cannot be written: {who.profile}"]


SLEEP = "import time; print('up', flush=True); time.sleep(300)"


@pytest.fixture
def programs() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for program in started:
        program.kill()
        program.wait()
        assert program.stdout
        program.stdout.close()


def start(programs: list[subprocess.Popen[str]], *arguments: str) -> int:
    program = subprocess.Popen([sys.executable, "-c", SLEEP, *arguments], stdout=subprocess.PIPE, text=True)
    programs.append(program)
    assert program.stdout
    assert program.stdout.readline() == "up\n"
    return program.pid


def tick_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_recorded_background_processes_are_those_that_still_run(
    programs: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    pid, tick = start(programs), 0
    tick = tick_of(pid)
    entries: list[object] = [
        {"pid": pid, "host_start_time": tick},
        {"pid": pid, "host_start_time": tick - 100_000},  # the pid was another's then
        {"pid": os.getpid()},
        {"pid": 2**22 + 1, "host_start_time": 5},
        {"pid": -1, "host_start_time": 5},
        {"pid": 1, "host_start_time": 0},
        "junk",
    ]
    (tmp_path / "processes.json").write_text(json.dumps(entries))
    assert background_processes(tmp_path) == [pid]


@pytest.mark.parametrize("content", [None, "", "{", "{}", '{"pid": 1}', "[[1]]", "\x00", "[" * 100_000])
def test_an_unreadable_list_names_no_background_process(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "processes.json").write_text(content)
    assert background_processes(tmp_path) == []


def test_the_tui_ends_by_its_node_and_the_cli_by_itself(programs: list[subprocess.Popen[str]]) -> None:
    def identity(*arguments: str) -> ProcessId:
        return tree_of(start(programs, *arguments))[0].identity

    root, gateway = identity(), identity("-m", "tui_gateway.entry")
    node = identity("/opt/hermes_cli/tui_dist/entry.js")
    assert asked_first((root, node, gateway)) == (node,)
    assert asked_first((root, gateway)) == (root,)
    gone = ProcessId(pid=root.pid, started=root.started - 3600)
    assert asked_first((gone, gateway)) == (gateway,)
    assert asked_first((gone,)) == ()
    assert asked_first(()) == ()
