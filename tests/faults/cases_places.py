"""Processes beside the agent, folders that it works in, and a machine that has no time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import psutil

from tests.faults.case import Case, renew_and_recover
from tests.faults.play import FULL, Expectation, Play, is_running
from tests.faults.strike import Strike, run_at


def _orphan(play: Play, *command: str) -> int:
    """A process with the agent's own mark in its environment, and no parent but init."""
    words = ["/bin/sh", "-c", f"setsid {' '.join(command)} >/dev/null 2>&1 & echo $!"]
    environment = {**play.stage.ground.environment, "HERMES_HOME": str(play.profile)}
    return int(subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout)


def _record(play: Play, pid: int) -> None:
    """As the agent records a background process of its own."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    entry = {"session_id": "proc_1", "command": "a server", "pid": pid, "pid_scope": "host"}
    (play.profile / "processes.json").write_text(json.dumps([{**entry, "host_start_time": int(fields[19])}]))


def _left_over(play: Play) -> None:
    """Of two orphans that bear the agent's mark, the one that it recorded ends with it; the other is nobody's."""
    recorded, other = _orphan(play, "sleep", "600"), _orphan(play, "sleep", "601")
    _record(play, recorded)
    renew_and_recover(play)
    play.demand(not is_running(recorded), "a recorded background process outlived its agent")
    play.demand(is_running(other), "a process was ended that nobody recorded")


def _unreaped(play: Play) -> None:
    """The agent never reaps its dead child: it counts as dead."""
    child = int((play.profile / "child.pid").read_text())
    os.kill(child, signal.SIGKILL)
    play.stage.wait(lambda: psutil.Process(child).status() == psutil.STATUS_ZOMBIE, 60, "the dead child")
    renew_and_recover(play)
    phases = play.renewal.phase_times if play.renewal else {}
    play.demand("stopped" in phases, "the stop never ended")


def _tagged_server(play: Play) -> None:
    """A tmux server with the agent's mark, recorded as its own: other people's sessions live in it."""
    socket = play.root / "theirs"
    environment = {**play.stage.ground.environment, "HERMES_HOME": str(play.profile)}
    tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
    subprocess.run([*tmux, "new-session", "-d", "-s", "theirs", "sleep 600"], env=environment, check=True)
    shown = subprocess.run([*tmux, "display-message", "-p", "#{pid}"], check=True, capture_output=True, text=True)
    play.lasting.callback(subprocess.run, [*tmux, "kill-server"], check=False)
    _record(play, int(shown.stdout))
    renew_and_recover(play)
    play.demand(is_running(int(shown.stdout)), "a tmux server was ended")


def _moved(play: Play, start: Path, works: Path) -> None:
    """The worker is started anew, its pane in *start* and its agent in *works*; no configuration says where."""
    for folder in (start, works):
        folder.mkdir(parents=True, exist_ok=True)
    stage = play.stage
    stage.ground.tmux("kill-window", "-t", play.window_pane)
    stage.stop()
    flags = ("-e", f"HERMES_HOME={stage.profile}", "-e", f"HOME={stage.ground.environment['HOME']}")
    size, command = ("-x", "200", "-y", "50"), f"cd {works} && exec {' '.join(stage.command)}"
    stage.ground.tmux("new-session", "-d", "-s", stage.session, *size, "-c", str(start), *flags, command)
    stage.wait_ready()
    stage.fill(FULL)
    play.first_pid = stage.pane_pid
    play.old_sessions = {row.session_id for row in stage.rows()}
    play.configure(nowhere=True)
    renew_and_recover(play)
    living = play.watch.living(stage)
    found = [str(Path(f"/proc/{seen.pid}/cwd").readlink()) for seen in living]
    play.demand(found == [str(works)], f"it works in {found}, not in {works}")


def _worktree(play: Play) -> None:
    tree = play.root / "work" / "wt" / "feat-x"
    _moved(play, tree, tree)


def _pane_elsewhere(play: Play) -> None:
    _moved(play, play.root / "work", play.root / "work" / "elsewhere")


def _no_window() -> Expectation:
    return Expectation(agent_dies=True, window_closes=True)


_STARVED = "p=$PPID; (kill -STOP $p; sleep 8; kill -CONT $p) & sleep 0.1"
_LOADED = "for n in 1 2 3 4 5 6 7 8; do timeout 8 sh -c 'while :; do :; done' & done; wait"

CASES = [
    Case(
        id="orphans",
        fault="two orphans with the agent's mark, one of them recorded",
        phase="stop",
        source="X2",
        play=_left_over,
        third=True,
    ),
    Case(
        id="zombie-child",
        fault="a dead child that the agent never reaps",
        phase="stop",
        source="X3",
        manners={"child": "tool"},
        play=_unreaped,
    ),
    Case(
        id="tagged-tmux",
        fault="a tmux server with the agent's mark, recorded as its own",
        phase="stop",
        source="X5",
        play=_tagged_server,
        third=True,
    ),
    Case(
        id="worktree",
        fault="the worker works in a work tree",
        phase="respawn",
        source="W1",
        play=_worktree,
        expect=_no_window,
    ),
    Case(
        id="pane-elsewhere",
        fault="the pane's folder is not the agent's",
        phase="respawn",
        source="W2",
        play=_pane_elsewhere,
        expect=_no_window,
        third=True,
    ),
    Case(
        id="starved",
        fault="the process gets no time for 8 s",
        phase="parse",
        source="K2",
        strike=run_at("before", "parse", _STARVED),
    ),
    Case(
        id="loaded",
        fault="four times the machine's load for 8 s",
        phase="prove",
        source="K2",
        strike=Strike("run", "before", "prove", _LOADED),
    ),
]
