"""Panes, sessions and servers that lose their agent, and programs that do not start one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.faults.case import Case, renew_and_recover
from tests.faults.cases_tmux import nothing_happens
from tests.faults.play import Expectation, Play
from tests.faults.strike import Step, run_at

_THINKING = {"handoff_seconds": 1.5, "resume_seconds": 1.5}
"""The strike comes before the answer."""

_AGENT = "{tmux} respawn-pane -k -t {pane} -e HERMES_HOME={profile} {command}"
_SHELL = "{tmux} respawn-pane -k -t {pane} 'exec bash --rcfile {root}/rc -i'"


def _dies() -> Expectation:
    return Expectation(agent_dies=True)


def _server_dies() -> Expectation:
    return Expectation(agent_dies=True, bystander_dies=True, window_closes=True)


def _session_dies() -> Expectation:
    return Expectation(agent_dies=True, window_closes=True)


def _shell_before(play: Play) -> None:
    """A shell stands where the agent was: nothing is typed; a person starts the agent again, and it is renewed."""
    _write_rc(play)
    play.run(_SHELL)
    play.stage.wait(lambda: "shell>" in play.stage.screen(), 60, "the shell")
    nothing_happens(play, "in a shell")
    play.run(_AGENT)
    _fill_again(play)


def _fill_again(play: Play) -> None:
    play.stage.wait_ready()
    play.stage.fill(70_000)
    play.old_sessions |= {row.session_id for row in play.stage.rows()}
    play.recover()


def _write_rc(play: Play) -> None:
    rc = play.root / "rc"
    rc.write_text(f"PS1='shell> '\ntrap 'echo \"$BASH_COMMAND\" >> {play.root}/canary' DEBUG\n")


def _operator_ends(play: Play) -> None:
    """What a person has closed stays closed (W-35); started again by them, it is renewed."""
    play.run("{tmux} set-option -p -t {pane} remain-on-exit on; kill -TERM {pid}")
    play.stage.wait(lambda: not play.watch.living(play.stage), 60, "the end of the agent")
    starts = play.stage.starts()
    nothing_happens(play, "to a worker that a person had closed", sweeps=3)
    play.demand(play.stage.starts() == starts, "a closed worker was started")
    play.run(_AGENT)
    _fill_again(play)


def _socket_gone(play: Play) -> None:
    """The socket file is gone and its server lives: no second server hides its panes."""
    server = play.run("{tmux} display-message -p '#{{pid}}'").strip()
    socket = Path(play.stage.ground.socket)
    socket.unlink()
    for _ in range(2):
        play.sweep()
    play.demand(not socket.exists(), "another server took the place of the hidden one")
    os.kill(int(server), signal.SIGUSR1)
    play.stage.wait(socket.exists, 60, "the server's socket")
    play.recover()


def _socket_gone_midway(play: Play) -> None:
    """As above, with a renewal under way: the server is asked to show itself again after the first run."""
    socket = Path(play.stage.ground.socket)
    server = play.run("{tmux} display-message -p '#{{pid}}'").strip()
    play.renew()
    play.demand(not play.watch.doubled(play.stage), "a second agent was started on a second server")
    if not socket.exists():
        os.kill(int(server), signal.SIGUSR1)
        play.stage.wait(socket.exists, 60, "the server's socket")
    play.recover()


def _neighbour_only(play: Play) -> None:
    """The worker's own session is gone, its prefix neighbour's is there (W-12)."""
    renew_and_recover(play)


_Ends = tuple[tuple[Step, tuple[str, ...]], ...]

_SHELL_AFTER: _Ends = (
    ("detect", ("blocked:agent_gone",)),
    ("request", ("blocked:agent_gone",)),
    ("persist", ("resumed",)),
    ("stop", ("resumed",)),
    ("respawn", ("blocked:agent_gone", "resumed")),
)
_KILLED_AFTER: _Ends = (
    ("detect", ("blocked:agent_gone",)),
    ("request", ("blocked:agent_gone",)),
    ("persist", ("resumed",)),
    ("respawn", ("blocked:agent_gone", "resumed")),
    ("resume", ("blocked:agent_gone", "resumed")),
)
_SERVER_KILLED_AFTER: _Ends = (
    ("request", ("blocked:agent_gone",)),
    ("persist", ("resumed",)),
    ("stop", ("resumed",)),
    ("respawn", ("blocked:agent_gone", "resumed")),
)

CASES = [
    Case(
        id="shell-instead",
        fault="a shell where the agent was",
        phase="detect",
        source="W-20",
        play=_shell_before,
        expect=_dies,
    ),
    *(
        Case(
            id=f"shell-after-{step}",
            fault=f"the agent is replaced by a shell after {step}",
            phase=step,
            source="W-20",
            manners=_THINKING,
            before=_write_rc,
            strike=run_at("after", step, _SHELL),
            ends=ends,
            expect=_dies,
            third=step == "request",
        )
        for step, ends in _SHELL_AFTER
    ),
    *(
        Case(
            id=f"killed-after-{step}",
            fault=f"the agent is killed by hand after {step}",
            phase=step,
            source="F2",
            manners=_THINKING,
            strike=run_at("after", step, "kill -9 $({tmux} display-message -p -t {pane} '#{{pane_pid}}')"),
            ends=ends,
            expect=_dies,
            third=step == "persist",
        )
        for step, ends in _KILLED_AFTER
    ),
    Case(
        id="killed-while-looked-at",
        fault="the agent is killed behind the last look before its stop",
        phase="stop",
        source="W-24",
        strike=run_at("looked", "stop", "kill -9 {pid}"),
        expect=_dies,
        third=True,
    ),
    Case(
        id="ends-slowly-after-request",
        fault="the server is killed while the agent, asked, takes its time to end",
        phase="request",
        source="T7",
        manners={**_THINKING, "exit_seconds": 1},
        strike=run_at("after", "request", "{tmux} kill-server"),
        ends=("blocked:agent_gone",),
        expect=_server_dies,
        third=True,
    ),
    Case(
        id="killed-when-answered",
        fault="the new agent is killed as it answers",
        phase="prove",
        source="F2",
        strike=run_at("after", "resume", "kill -9 $({tmux} display-message -p -t {pane} '#{{pane_pid}}')"),
        ends=("blocked:agent_gone",),
        expect=_dies,
        third=True,
    ),
    *(
        Case(
            id=f"server-killed-after-{step}",
            fault=f"the tmux server is killed after {step}",
            phase=step,
            source="T7",
            manners=_THINKING,
            strike=run_at("after", step, "{tmux} kill-server"),
            ends=ends,
            expect=_server_dies,
            third=step == "stop",
        )
        for step, ends in _SERVER_KILLED_AFTER
    ),
    Case(
        id="session-killed-after-persist",
        fault="the session is gone, swarm-swarm10 is there",
        phase="stop",
        source="W-12",
        strike=run_at("after", "persist", "{tmux} kill-session -t ={session}"),
        play=_neighbour_only,
        expect=_session_dies,
        third=True,
    ),
    Case(
        id="closed-by-person",
        fault="a person has ended the agent",
        phase="detect",
        source="W-35",
        play=_operator_ends,
        expect=_dies,
    ),
    Case(id="socket-gone", fault="the socket file is removed", phase="detect", source="T8", play=_socket_gone),
    *(
        Case(
            id=f"socket-gone-after-{step}",
            fault=f"the socket file is removed after {step}",
            phase=step,
            source="T8",
            strike=run_at("after", step, "rm {socket}"),
            ends=("resumed", "blocked:agent_gone", "blocked:interfered", "blocked:terminal"),
            play=_socket_gone_midway,
        )
        for step in ("request", "persist", "respawn")
    ),
    Case(
        id="command-false",
        fault="the worker's command ends at once",
        phase="respawn",
        source="T14",
        worker={"command": ["/bin/false"]},
        ends=("blocked:not_ready", "blocked:preflight_failed"),
    ),
    Case(
        id="command-missing",
        fault="the worker's command does not exist",
        phase="detect",
        source="W-28",
        worker={"command": ["/nowhere/hermes", "chat", "--cli"]},
        ends=("blocked:preflight_failed",),
        third=True,
    ),
    Case(
        id="folder-missing",
        fault="the worker's folder does not exist",
        phase="detect",
        source="W4",
        worker={"cwd": "/nowhere"},
        ends=("blocked:preflight_failed",),
    ),
    Case(
        id="folder-gone-after-stop",
        fault="the worker's folder is removed after the stop",
        phase="respawn",
        source="W-26",
        strike=run_at("after", "stop", "rm -rf {root}/work/swarm1"),
        ends=("blocked:not_ready",),
    ),
]
