from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from lifecycle.errors import LaunchUnknown, Misuse, NotReady, PreflightFailed
from lifecycle.host import Host
from lifecycle.launch import LaunchSpec
from lifecycle.screen import PaneState
from lifecycle.starting import start_worker
from tests.agents.deadlines import DEADLINES
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of


@pytest.fixture
def host(empty_stage: Stage) -> Iterator[Host]:
    with host_of(empty_stage) as host:
        yield host


def test_an_absent_worker_is_started_by_its_configured_command(empty_stage: Stage, host: Host) -> None:
    said = start_worker(host, host.worker("swarm1"), who="alex", why="after the move")

    assert said == "swarm1 runs in tmux session swarm-swarm1"
    assert empty_stage.is_ready()
    assert psutil.Process(empty_stage.pane_pid).cwd() == str(empty_stage.cwd)
    kinds = [(event.kind, event.detail.get("who"), event.detail.get("why")) for event in host.ledger.events("swarm1")]
    assert kinds == [("starting", "alex", "after the move"), ("started", "alex", None)]


def test_a_started_worker_is_given_nothing_of_ours(
    empty_stage: Stage, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_KEY", "secret")
    monkeypatch.setenv("AFRESH_HOME", str(empty_stage.ground.home))

    start_worker(host, host.worker("swarm1"), who="alex")

    environment = psutil.Process(empty_stage.pane_pid).environ()
    assert environment["HERMES_HOME"] == str(empty_stage.profile)
    assert not [name for name in environment if name.startswith(("PREFECT_", "AFRESH_"))]


def test_a_worker_that_runs_is_not_started_twice(stage: Stage) -> None:
    with host_of(stage) as host, pytest.raises(Misuse, match="nothing was started"):
        start_worker(host, host.worker("swarm1"), who="alex")
    assert len(stage.starts()) == 1


def test_a_held_worker_is_not_started(empty_stage: Stage, host: Host) -> None:
    host.ledger.remember("swarm1", held_since=host.now(), held_why="moving house")

    with pytest.raises(Misuse, match=r"held \(moving house\): `afresh release swarm1` first"):
        start_worker(host, host.worker("swarm1"), who="alex")
    assert empty_stage.starts() == []


def test_another_program_in_the_session_is_left_alone(empty_stage: Stage, host: Host) -> None:
    empty_stage.ground.tmux("new-session", "-d", "-s", empty_stage.session, "sleep", "600")
    pid = empty_stage.pane_pid

    with pytest.raises(Misuse, match="something that is not its agent"):
        start_worker(host, host.worker("swarm1"), who="alex")
    assert empty_stage.pane_pid == pid
    assert psutil.Process(pid).cmdline() == ["sleep", "600"]


def test_a_dead_pane_is_used_again(stage: Stage) -> None:
    stage.ground.tmux("set-option", "-t", f"={stage.session}:", "remain-on-exit", "on")
    pane = stage.format("#{pane_id}")
    psutil.Process(stage.pane_pid).terminate()
    stage.wait(lambda: stage.format("#{pane_dead}") == "1", 60, "a dead pane")

    with host_of(stage) as host:
        start_worker(host, host.worker("swarm1"), who="alex")

    assert stage.format("#{pane_id}") == pane
    assert stage.is_ready()


def test_without_a_launch_specification_nothing_is_started(empty_stage: Stage) -> None:
    with host_of(empty_stage, workers={}) as host, pytest.raises(LaunchUnknown):
        start_worker(host, host.worker("swarm1"), who="alex")
    assert empty_stage.ground.tmux("list-sessions", check=False) == ""


def test_a_worker_is_started_as_it_last_ran_where_nothing_is_configured(empty_stage: Stage) -> None:
    seen = LaunchSpec(
        command=empty_stage.command,
        cwd=empty_stage.cwd,
        environment={"HERMES_HOME": str(empty_stage.profile), "HOME": empty_stage.ground.environment["HOME"]},
        source="live",
    )
    with host_of(empty_stage, workers={}) as host:
        host.ledger.remember("swarm1", launch=seen)
        start_worker(host, host.worker("swarm1"), who="alex")
    assert empty_stage.is_ready()


def test_the_configuration_overrules_what_ran_before(empty_stage: Stage, host: Host) -> None:
    stale = LaunchSpec(command=("/nowhere/hermes", "chat", "--cli"), cwd=empty_stage.cwd, source="live")
    host.ledger.remember("swarm1", launch=stale)

    start_worker(host, host.worker("swarm1"), who="alex")

    assert empty_stage.is_ready()


def test_a_configured_command_that_resumes_is_refused_whatever_ran_before(empty_stage: Stage) -> None:
    seen = LaunchSpec(command=empty_stage.command, cwd=empty_stage.cwd, source="live")
    resuming = {"swarm1": {"cwd": empty_stage.cwd, "command": [*empty_stage.command, "--continue"]}}
    with host_of(empty_stage, workers=resuming) as host:
        host.ledger.remember("swarm1", launch=seen)
        with pytest.raises(LaunchUnknown, match="resumes"):
            start_worker(host, host.worker("swarm1"), who="alex")
    assert empty_stage.starts() == []


def test_a_missing_program_is_told_before_a_session_is_made(empty_stage: Stage) -> None:
    wrong = {"swarm1": {"cwd": empty_stage.cwd, "command": ["/nowhere/hermes", "chat", "--cli"]}}
    with host_of(empty_stage, workers=wrong) as host, pytest.raises(PreflightFailed, match="/nowhere/hermes"):
        start_worker(host, host.worker("swarm1"), who="alex")
    assert empty_stage.ground.tmux("list-sessions", check=False) == ""


def test_an_agent_that_never_shows_its_input_line_is_not_called_started(empty_stage: Stage) -> None:
    empty_stage.behave(never_ready=True)
    with host_of(empty_stage, deadlines={**DEADLINES, "ready": 5}) as host:
        with pytest.raises(NotReady, match="no input line within 5 s"):
            start_worker(host, host.worker("swarm1"), who="alex")
        assert host.look(host.worker("swarm1")).state is not PaneState.READY
        assert [event.kind for event in host.ledger.events("swarm1")] == ["starting"]


def test_an_agent_that_ends_at_once_is_told_without_waiting_for_the_deadline(empty_stage: Stage) -> None:
    empty_stage.behave(failed_starts=5)
    patient = {**DEADLINES, "ready": 280}
    with host_of(empty_stage, deadlines=patient) as host:
        began = host.clock.monotonic()
        with pytest.raises(NotReady, match="ended"):
            start_worker(host, host.worker("swarm1"), who="alex")
        assert host.clock.monotonic() - began < 200
