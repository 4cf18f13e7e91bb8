"""tmux: modes, clients, names, windows, panes and servers that come and go."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.faults.case import Case, renew_and_recover
from tests.faults.play import HUMAN_WORD, Expectation, Play
from tests.faults.strike import Strike

_THINKING = {"handoff_seconds": 1.5, "resume_seconds": 1.5}
"""The strike comes before the answer."""

_AGENT = "{tmux} respawn-pane -k -t {pane} -e HERMES_HOME={profile} {command}"
_SHELL = "{tmux} respawn-pane -k -t {pane} 'exec bash --rcfile {root}/rc -i'"


def _run(where: str, step: str, command: str) -> Strike:
    return Strike("run", where, step, command)  # type: ignore[arg-type]


def _dies() -> Expectation:
    return Expectation(agent_dies=True)


def _server_dies() -> Expectation:
    return Expectation(agent_dies=True, bystander_dies=True, window_closes=True)


def _session_dies() -> Expectation:
    return Expectation(agent_dies=True, window_closes=True)


def _nothing_happens(play: Play, why: str, sweeps: int = 2) -> None:
    """Sweeps that may not touch the worker."""
    before = play.stage.rows()
    for _ in range(sweeps):
        play.sweep()
    play.demand(play.stage.rows() == before and play.renewal is None, f"something was done {why}")


def _copy_mode(play: Play) -> None:
    play.run("{tmux} copy-mode -t {pane}")
    _nothing_happens(play, "in copy mode")
    play.demand(play.stage.format("#{pane_in_mode}") == "1", "copy mode was left")
    play.run("{tmux} send-keys -t {pane} -X cancel")
    play.recover()


def _half_typed(play: Play) -> None:
    play.run("{tmux} send-keys -t {pane} -l '" + HUMAN_WORD + "'")
    play.stage.wait(lambda: HUMAN_WORD in play.stage.screen(), 5, "the half-typed text")
    _nothing_happens(play, "with text in the input line")
    play.demand(HUMAN_WORD in (play.stage.input_line() or ""), "the half-typed text is gone")
    play.run("{tmux} send-keys -t {pane} C-u")
    play.recover()
    play.demand(not any(HUMAN_WORD in text for text in play.texts()), "the half-typed text was sent")


@contextmanager
def _attached(play: Play) -> Iterator[int]:
    """A person's terminal on the worker's session."""
    ours, theirs = pty.openpty()
    command = ["tmux", "-u", "-S", play.stage.ground.socket, "attach", "-t", f"={play.stage.session}"]
    environment = {name: play.stage.ground.environment[name] for name in ("PATH", "HOME", "LANG", "TERM")}
    client = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    try:
        yield ours
    finally:
        client.kill()
        client.wait()
        os.close(ours)


def _typing_client(play: Play) -> None:
    with _attached(play) as keys:
        play.stage.wait(lambda: play.stage.format("#{session_attached}") == "1", 5, "the client")
        for key in (b"x", b"\x15"):
            with suppress(BlockingIOError):
                os.read(keys, 1 << 16)
            os.write(keys, key)
        play.stage.wait_ready(10)
        _nothing_happens(play, "while a person typed")
    play.recover()


def _other_window(play: Play) -> None:
    play.run("{tmux} select-window -t ={session}:notes")
    renew_and_recover(play)


def _shell_before(play: Play) -> None:
    """A shell stands where the agent was: nothing is typed; a person starts the agent again, and it is renewed."""
    _write_rc(play)
    play.run(_SHELL)
    play.stage.wait(lambda: "shell>" in play.stage.screen(), 10, "the shell")
    _nothing_happens(play, "in a shell")
    play.run(_AGENT)
    _fill_again(play)


def _fill_again(play: Play) -> None:
    play.stage.wait_ready(20)
    play.stage.fill(70_000)
    play.old_sessions |= {row.session_id for row in play.stage.rows()}
    play.recover()


def _write_rc(play: Play) -> None:
    rc = play.root / "rc"
    rc.write_text(f"PS1='shell> '\ntrap 'echo \"$BASH_COMMAND\" >> {play.root}/canary' DEBUG\n")


def _operator_ends(play: Play) -> None:
    """What a person has closed stays closed (W-35); started again by them, it is renewed."""
    play.run("{tmux} set-option -p -t {pane} remain-on-exit on; kill -TERM {pid}")
    play.stage.wait(lambda: not play.watch.living(play.stage), 10, "the end of the agent")
    starts = play.stage.starts()
    _nothing_happens(play, "to a worker that a person had closed", sweeps=3)
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
    play.stage.wait(socket.exists, 10, "the server's socket")
    play.recover()


def _socket_gone_midway(play: Play) -> None:
    """As above, with a renewal under way: the server is asked to show itself again after the first run."""
    socket = Path(play.stage.ground.socket)
    server = play.run("{tmux} display-message -p '#{{pid}}'").strip()
    play.renew()
    play.demand(not play.watch.doubled(play.stage), "a second agent was started on a second server")
    if not socket.exists():
        os.kill(int(server), signal.SIGUSR1)
        play.stage.wait(socket.exists, 10, "the server's socket")
    play.recover()


def _neighbour_only(play: Play) -> None:
    """The worker's own session is gone, its prefix neighbour's is there (W-12)."""
    renew_and_recover(play)


CASES = [
    Case(id="copy-mode", fault="the pane is scrolled back", phase="detect", source="T5", play=_copy_mode, third=True),
    Case(
        id="copy-mode-after-paste",
        fault="copy mode between paste and Enter",
        phase="request",
        source="T5",
        strike=_run("begun", "request", "{tmux} copy-mode -t {pane}"),
        ends=("blocked:interfered",),
        third=True,
    ),
    Case(
        id="copy-mode-before-resume",
        fault="copy mode before the resume prompt",
        phase="resume",
        source="T5",
        strike=_run("before", "resume", "{tmux} copy-mode -t {pane}"),
        ends=("blocked:not_delivered",),
    ),
    Case(id="half-typed", fault="text in the input line", phase="detect", source="T10", play=_half_typed, third=True),
    Case(
        id="half-typed-before-resume",
        fault="a person types before the resume prompt",
        phase="resume",
        source="T10",
        strike=_run("before", "resume", "{tmux} send-keys -t {pane} -l '" + HUMAN_WORD + "'"),
        ends=("blocked:not_delivered",),
    ),
    Case(
        id="typed-into-ours",
        fault="a person types between our paste and Enter",
        phase="request",
        source="T12",
        strike=_run("begun", "request", "{tmux} send-keys -t {pane} -l '" + HUMAN_WORD + "'"),
        ends=("resumed", "blocked:not_delivered", "blocked:interfered"),
    ),
    Case(id="client-typing", fault="an attached client types", phase="detect", source="T12", play=_typing_client),
    Case(id="window-active", fault="another window is active", phase="request", source="W-15", play=_other_window),
    *(
        Case(
            id=f"renamed-after-{step}",
            fault=f"the session is renamed after {step}",
            phase=step,
            source="T6",
            strike=_run("after", step, "{tmux} rename-session -t ={session} elsewhere"),
            ends=("resumed", "blocked:agent_gone", "blocked:interfered", "blocked:terminal", "blocked:not_delivered"),
            third=step == "persist",
        )
        for step in ("detect", "request", "persist", "stop", "respawn")
    ),
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
            strike=_run("after", step, _SHELL),
            ends=ends,
            expect=_dies,
            third=step == "request",
        )
        for step, ends in (
            ("detect", ("blocked:agent_gone",)),
            ("request", ("blocked:agent_gone",)),
            ("persist", ("resumed",)),
            ("stop", ("resumed",)),
            ("respawn", ("blocked:agent_gone", "resumed")),
        )
    ),
    *(
        Case(
            id=f"killed-after-{step}",
            fault=f"the agent is killed by hand after {step}",
            phase=step,
            source="F2",
            manners=_THINKING,
            strike=_run("after", step, "kill -9 $({tmux} display-message -p -t {pane} '#{{pane_pid}}')"),
            ends=ends,
            expect=_dies,
            third=step == "persist",
        )
        for step, ends in (
            ("detect", ("blocked:agent_gone",)),
            ("request", ("blocked:agent_gone",)),
            ("persist", ("resumed",)),
            ("respawn", ("blocked:agent_gone", "resumed")),
            ("resume", ("blocked:agent_gone", "resumed")),
        )
    ),
    *(
        Case(
            id=f"server-killed-after-{step}",
            fault=f"the tmux server is killed after {step}",
            phase=step,
            source="T7",
            manners=_THINKING,
            strike=_run("after", step, "{tmux} kill-server"),
            ends=ends,
            expect=_server_dies,
            third=step == "stop",
        )
        for step, ends in (
            ("request", ("blocked:agent_gone",)),
            ("persist", ("resumed",)),
            ("stop", ("resumed",)),
            ("respawn", ("blocked:agent_gone", "resumed")),
        )
    ),
    Case(
        id="session-killed-after-persist",
        fault="the session is gone, swarm-swarm10 is there",
        phase="stop",
        source="W-12",
        strike=_run("after", "persist", "{tmux} kill-session -t ={session}"),
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
            strike=_run("after", step, "rm {socket}"),
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
        strike=_run("after", "stop", "rm -rf {root}/work/swarm1"),
        ends=("blocked:not_ready",),
    ),
]
