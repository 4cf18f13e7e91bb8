from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from lifecycle.host import Host
from lifecycle.panorama import panes_of
from lifecycle.screen import PaneLook, PaneState
from lifecycle.settings import Settings, WorkerSettings, load_settings
from lifecycle.status import statuses
from lifecycle.survey import survey
from lifecycle.terminal import Pane, Terminal
from lifecycle.worker import Worker
from tests.agents.ground import has_ended
from tests.agents.stage import Stage


@pytest.fixture
def fleet(stage: Stage) -> list[Stage]:
    """swarm1 runs; swarm10, whose session begins like its, too; swarm2 has exited; swarm3 never ran; one is a shell."""
    ten, two, three, shell = (stage.another(name) for name in ("swarm10", "swarm2", "swarm3", "swarm4"))
    ten.start()
    two.start()
    ten.wait_ready()
    two.wait_ready()
    stage.ground.tmux("set-option", "-w", "-t", "=swarm-swarm2:", "remain-on-exit", "on")
    os.kill(two.pane_pid, signal.SIGKILL)
    two.wait(lambda: two.format("#{pane_dead}") == "1", 60, "the end of the agent")
    stage.ground.tmux("new-session", "-d", "-s", "swarm-swarm4", "sleep", "600")
    config = stage.ground.home / "afresh.toml"
    config.write_text(f'socket = "{stage.ground.socket}"\n')
    config.chmod(0o600)
    return [stage, ten, two, three, shell]


def settings(stage: Stage) -> Settings:
    return load_settings(environ=stage.ground.environment)


def test_all_at_once_is_what_one_by_one_is(fleet: list[Stage]) -> None:
    with Host.opened(settings(fleet[0])) as host:
        together = panes_of(host, host.workers())
        alone = {worker.worker_id: host.look_with_process(worker) for worker in host.workers() if worker.managed}

    assert together == alone
    assert {worker_id: look.state for worker_id, (look, _) in together.items()} == {
        "swarm1": PaneState.READY,
        "swarm10": PaneState.READY,
        "swarm2": PaneState.EXITED,
        "swarm3": PaneState.ABSENT,
        "swarm4": PaneState.NOT_AN_AGENT,
    }


def test_many_panes_cost_few_calls_of_tmux(fleet: list[Stage], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for number in range(60):
        fleet[0].ground.tmux("new-session", "-d", "-s", f"swarm-swarm{100 + number}", "sleep", "600")
        (fleet[0].profile.parent / f"swarm{100 + number}").mkdir()
    calls = _counting_tmux(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with Host.opened(settings(fleet[0])) as host:
        seen = panes_of(host, host.workers())

    assert len(seen) == 65
    assert 2 <= len(calls.read_text().splitlines()) <= 3


@pytest.mark.parametrize("look", [survey, statuses])
def test_a_look_at_the_fleet_asks_tmux_no_more_often_for_more_workers(
    fleet: list[Stage],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    look: Callable[[Host, tuple[Worker, ...]], object],
) -> None:
    calls = _counting_tmux(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with Host.opened(settings(fleet[0])) as host:
        look(host, host.workers())

    assert len(calls.read_text().splitlines()) < len(fleet)


@pytest.mark.parametrize(
    ("meanwhile", "ten", "one"),
    [
        (("kill-session", "-t", "=swarm-swarm10"), PaneState.ABSENT, PaneState.READY),
        (("move-window", "-s", "=swarm-swarm10:", "-t", "=swarm-swarm4:7"), PaneState.READY, PaneState.READY),
        (("kill-server",), PaneState.ABSENT, PaneState.ABSENT),
    ],
)
def test_what_changes_while_all_are_looked_at_is_seen_as_it_is_and_costs_no_other(
    fleet: list[Stage], monkeypatch: pytest.MonkeyPatch, meanwhile: tuple[str, ...], ten: PaneState, one: PaneState
) -> None:
    captures, server = Terminal.captures, int(fleet[0].format("#{pid}"))
    calls: list[int] = []

    def after_a_change(terminal: Terminal, panes: list[Pane]) -> object:
        if not calls:
            fleet[0].ground.tmux(*meanwhile)
            # Asked while it ends, tmux says that it lost its server, which is no word on any session.
            fleet[0].wait(lambda: "kill-server" not in meanwhile or has_ended(server), what="the end of the server")
        calls.append(len(panes))
        return captures(terminal, panes)

    monkeypatch.setattr(Terminal, "captures", after_a_change)
    with Host.opened(settings(fleet[0])) as host:
        seen = panes_of(host, host.workers())

    assert calls[0] == 4
    assert (seen["swarm1"][0].state, seen["swarm10"][0].state) == (one, ten)


def test_a_pane_that_another_session_shows_too_is_seen_as_its_workers(stage: Stage) -> None:
    stage.ground.tmux("new-session", "-d", "-s", "view", "-t", "=swarm-swarm1")
    own = stage.ground.tmux("display-message", "-p", "-t", "=swarm-swarm1:", "#{session_id}").strip()
    beside = stage.another("swarm2")
    beside.start()
    with Host.opened(settings(stage)) as host:
        screen = panes_of(host, [host.worker("swarm1"), host.worker("swarm2")])["swarm1"][0].screen

    assert screen is not None
    assert screen.session_id == own


def test_two_workers_that_name_one_session_are_left_to_a_look_of_their_own(stage: Stage) -> None:
    made = Settings(
        home=stage.ground.home,
        hermes_root=stage.profile.parent.parent,
        memory_root=stage.ground.memory_root,
        socket=str(stage.ground.socket),
        workers={"alice": WorkerSettings(session="swarm-swarm1"), "bob": WorkerSettings(session="none")},
    )
    with Host.opened(made) as host:
        assert set(panes_of(host, host.workers())) == {"bob"}


def test_a_tmux_that_is_missing_leaves_every_worker_unknown_with_the_reason(
    fleet: list[Stage], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with Host.opened(settings(fleet[0])) as host:
        seen = panes_of(host, host.workers())

    assert {look for look, _ in seen.values()} == {PaneLook(state=PaneState.UNKNOWN, unseen="no tmux on PATH")}


def _counting_tmux(folder: Path) -> Path:
    """A `tmux` that notes each call in the file that is returned, and then is the real one."""
    notes, program = folder / "calls", folder / "tmux"
    program.write_text(f'#!/bin/sh\necho "$*" | head -1 >> {notes}\nexec {shutil.which("tmux")} "$@"\n')
    program.chmod(0o755)
    return notes
