"""Adapter: the sessions and panes of one tmux server (libtmux).

Targets are stored ids or names compared whole, never tmux's own prefix match. Text goes through a paste buffer,
never through arguments. Nothing is ever typed into a pane that is dead or in copy mode: tmux 3.3a crashes, and
with it every session of the host, when a buffer is pasted into a dead pane.
"""

from __future__ import annotations

import fcntl
import os
import re
import sys
import termios
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from lifecycle.errors import TerminalError
from lifecycle.launch import LaunchSpec
from lifecycle.processes import Process, ProcessId, find, runs_below, tree_of
from lifecycle.screen import Screen
from lifecycle.tmux import NoServer, TargetGone, Tmux, quoted
from lifecycle.value import Value

SIZE = ("200", "50")
"""Columns and lines of a new session: a face draws its short forms in a narrow pane."""

SHELLS = frozenset({"sh", "bash", "zsh", "fish", "dash", "ksh", "tcsh", "csh", "ash"})

_FIELDS = (
    "session_id", "window_id", "pane_id", "pane_pid", "pane_dead", "pane_dead_status", "pane_dead_signal",
    "pane_in_mode", "cursor_x", "cursor_y", "pane_width", "pane_height", "alternate_on", "pane_title",
)  # fmt: skip
_LOOK = "|".join(f"#{{{field}}}" for field in _FIELDS)
_END_OF_PART = "\x1eend of part"
"""A record separator, which no captured screen holds."""
_CAPTURE = "capture-pane -p -J"
_HELD = "held"
_CANNOT_TYPE = "#{||:#{pane_in_mode},#{pane_dead}}"
_FOREIGN = re.compile(r"-?((?:PREFECT|AFRESH)_\w*)=")


class Pane(Value):
    """Where one pane is, for those who look for agents. Take a `Screen` to see what it shows."""

    session: str
    session_id: str
    pane_id: str
    pane_pid: int


class _Home(NamedTuple):
    """Where an agent was seen."""

    pane_id: str
    agent: ProcessId


class Terminal:
    """The tmux server on *socket*: a name (`-L`), a path with a slash (`-S`), or None for tmux's default one.

    A server that does not run has no sessions. Every method raises TerminalError where tmux is missing, refuses,
    or does not answer within ten seconds: that says nothing about the sessions.
    """

    def __init__(self, socket: str | None) -> None:
        is_path = socket is not None and "/" in socket
        self._tmux = Tmux(socket_path=socket) if is_path else Tmux(socket_name=socket)
        self._homes: dict[str, _Home] = {}

    def panes(self) -> tuple[Pane, ...]:
        """Every pane of the server, windows and sessions in tmux's order."""
        try:
            lines = self._tmux.ask("list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{session_id} #{session_name}")
        except NoServer:
            return ()
        rows = [line.split(" ", 3) for line in lines]
        return tuple(
            Pane(pane_id=pane_id, pane_pid=int(pid), session_id=session_id, session=name)
            for pane_id, pid, session_id, name in rows
        )

    def screen_of(
        self, worker_session: str, *, is_agent: Callable[[Process], bool], prefer: str | None = None
    ) -> tuple[Screen, Process | None] | None:
        """The pane of this session whose process tree holds the agent, and the agent; None without the session.

        Where no pane holds one, the pane *prefer*, else the first one, with None. The name is compared whole:
        `swarm-swarm1` is never `swarm-swarm10` (W-12). *is_agent* is asked parents first, so the topmost agent of a
        tree is returned. One that was found is kept to as long as it lives there: that costs one call of tmux and no
        pass over the processes.
        """
        home = self._homes.pop(worker_session, None)
        again = self._seen_again(home, worker_session, is_agent) if home is not None else None
        if home is not None and again is not None:
            self._homes[worker_session] = home
            return again
        panes = [pane for pane in self.panes() if pane.session == worker_session]
        panes.sort(key=lambda pane: pane.pane_id != prefer)
        found = [(pane, agent) for pane in panes if (agent := _agent_in(pane.pane_pid, is_agent)) is not None]
        for pane, agent in [*found[:1], *((pane, None) for pane in panes if not found)]:
            screen = self.capture(pane.pane_id)
            if screen is not None:
                if agent is None or screen.pane_pid != pane.pane_pid:
                    return screen, None
                self._homes[worker_session] = _Home(pane.pane_id, agent.identity)
                return screen, agent
        return None

    def _seen_again(
        self, home: _Home, session: str, is_agent: Callable[[Process], bool]
    ) -> tuple[Screen, Process] | None:
        """The agent where it was seen last; None where it is not there any more, or not in *session*."""
        agent = find(home.agent)
        if agent is None or not is_agent(agent):
            return None
        name, screen = self._named(home.pane_id)
        is_there = screen is not None and name == session and runs_below(agent.pid, screen.pane_pid)
        return (screen, agent) if screen is not None and is_there else None

    def capture(self, pane_id: str) -> Screen | None:
        """The pane as it is now, in one call, so that text, cursor and title belong together; None if it is gone."""
        return self._named(pane_id)[1]

    def _named(self, pane_id: str) -> tuple[str, Screen | None]:
        """The name of the pane's session, and the pane."""
        asked = (f"display-message -p -t {pane_id} {quoted(form)}" for form in (_LOOK, "#{session_name}"))
        try:
            (fields, *name), (text,), typists = self._shown("\n".join(asked), [pane_id])
        except (NoServer, TargetGone):
            return "", None
        return "".join(name), _screen(fields, typists, text)

    def captures(self, panes: Sequence[Pane]) -> list[Screen | None]:
        """Several panes in one call, each as `capture` shows it; None of one that has moved to another session.

        Raises:
            NoServer
            TargetGone: one of them is gone; which, tmux does not say.
        """
        # One list of all panes of the server costs tmux less than a question for each of some hundred.
        rows, texts, typists = self._shown(f"list-panes -a -F {quoted(_LOOK)}", [pane.pane_id for pane in panes])
        fields = {(session_id, pane_id): row for row in rows for session_id, _, pane_id in [row.split("|", 3)[:3]]}
        return [
            _screen(fields.get((pane.session_id, pane.pane_id), ""), typists, text)
            for pane, text in zip(panes, texts, strict=True)
        ]

    def _shown(self, look: str, pane_ids: Sequence[str]) -> tuple[list[str], list[list[str]], list[str]]:
        """What *look* prints, the lines of each pane, and the clients: all of one moment, as tmux runs it in one go."""
        # A script, because a command line of tmux's ends at 16 kB.
        end = f"display-message -p {quoted(_END_OF_PART)}"
        script = [look, end]
        for pane_id in pane_ids:
            # tmux scrolls a line off for its own "Pane is dead"
            dead, alive = f"{_CAPTURE} -S -1 -t {pane_id}", f"{_CAPTURE} -t {pane_id}"
            script += [f"if-shell -F -t {pane_id} '#{{pane_dead}}' '{dead}' '{alive}'", end]
        script.append("list-clients -F '#{client_activity} #{session_id} #{window_id}'")
        told = self._tmux.tell("\n".join(script), may_start_server=False)
        ends = [place for place, line in enumerate(told) if line == _END_OF_PART]
        parts = [told[start:end] for start, end in zip([0, *(place + 1 for place in ends)], [*ends, None], strict=True)]
        return parts[0], parts[1:-1], parts[-1]

    def paste(self, pane_id: str, text: str, *, buffer: str) -> bool:
        """Paste *text* as one bracketed paste; false, and nothing pasted, if the pane is dead or in copy mode.

        *buffer* is the paste buffer's name: one of the caller's own, so that two writers cannot swap texts. The
        text travels over standard input: in arguments 16 kB are too long, and everybody can read them.

        Raises:
            TargetGone
        """
        # A call of its own: where we die while the text goes in, tmux takes what came for all of it and does the rest.
        self._tmux.ask("load-buffer", "-b", buffer, "-", stdin=text)
        command = f"paste-buffer -p -d -b {quoted(buffer)} -t {pane_id}"
        try:
            done = self._type(pane_id, command)
        except TerminalError:
            self._drop(buffer)
            raise
        if not done:
            self._drop(buffer)
        return done

    def press_enter(self, pane_id: str) -> bool:
        """Press Enter; false, and nothing pressed, if the pane is dead or in copy mode, which eats it.

        Raises:
            TargetGone
        """
        return self._type(pane_id, f"send-keys -t {pane_id} Enter")

    def unread(self, pane_id: str) -> int | None:
        """How many bytes that were typed the pane's program has not read yet; None where nobody can tell.

        Raises:
            TargetGone
        """
        tty = self._tmux.ask("display-message", "-p", "-t", pane_id, "#{pane_tty}")[0]
        try:
            descriptor = os.open(tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def keep_pane(self, pane_id: str) -> None:
        """Keep the pane when its program ends. Set for this pane only; a new program may be started in it.

        Raises:
            TargetGone
        """
        self._tmux.ask("set-option", "-p", "-t", pane_id, "remain-on-exit", "on")

    def spawn(self, launch: LaunchSpec, *, session: str, pane_id: str | None) -> Screen:
        """Start the program in the kept pane, or a new window of the session, or a new session; show the pane.

        The program is the pane's own process, without a shell. The pane is kept when it ends, so a program that
        dies at once leaves its last words. Its environment is the tmux server's without `PREFECT_*` and `AFRESH_*`,
        with the launch's own on top. A pane where an idle shell is left from the old program is used again.

        Raises:
            TerminalError: the folder is missing, the pane still runs something, or tmux would make another name
                of *session*.
        """
        if set(session) & set(".:"):
            msg = f"tmux would rename session {session!r}: it keeps `.` and `:` for targets"
            raise TerminalError(msg)
        if not launch.cwd.is_dir():
            msg = f"{launch.cwd}: no such folder to start in"
            raise TerminalError(msg)
        new = self._spawned(launch, session, pane_id)
        screen = self.capture(new)
        names = {pane.pane_id: pane.session for pane in self.panes()}
        if screen is None or names.get(new) != session:
            msg = f"asked for a pane in session {session!r}, and tmux has {new} in {names.get(new)!r}"
            raise TerminalError(msg)
        return screen

    def end_server(self) -> None:
        """End the server with all its sessions. Only for a socket that the caller made for itself."""
        try:
            self._tmux.ask("kill-server")
        except NoServer:
            return

    def _spawned(self, launch: LaunchSpec, session: str, pane_id: str | None) -> str:
        """Start the program and return the id of its pane."""
        panes = self.panes()
        old = next((pane for pane in panes if pane.pane_id == pane_id and pane.session == session), None)
        exists = any(pane.session == session for pane in panes)
        target = quoted(f"={session}:")
        folder = quoted(str(launch.cwd).replace("#", "##"))  # tmux expands formats in it
        how = f"-c {folder} {_variables(launch)} {self._program(launch)}"
        show = "-P -F '#{pane_id}'"
        keep = "remain-on-exit on"
        if old is not None:
            kill = "-k " if idles_in_shell(old.pane_pid) else ""
            self._tmux.tell(
                f"set-option -p -t {old.pane_id} {keep}\nrespawn-pane {kill}-t {old.pane_id} {how}",
                may_start_server=False,
            )
            return old.pane_id
        if exists:
            last = quoted(f"={session}:{{end}}")
            script = f"new-window -d -a -t {last} {show} {how}\nset-option -p -t {last} {keep}"
        else:
            script = f"new-session -d -s {quoted(session)} -x {SIZE[0]} -y {SIZE[1]} {show} {how}"
            script += f"\nset-option -p -t {target} {keep}"
        return self._tmux.tell(script, may_start_server=True)[0]

    def _program(self, launch: LaunchSpec) -> str:
        """The command as words of tmux's: with more than one of them tmux starts it without a shell."""
        unset = [word for name in self._foreign_variables() for word in ("-u", name)]
        return " ".join(map(quoted, ["env", *unset, *launch.command]))

    def _foreign_variables(self) -> list[str]:
        """Variables of Prefect's and ours in the server's environment, which every new program would inherit."""
        try:
            lines = self._tmux.ask("show-environment", "-g")
        except NoServer:
            return []
        return sorted({match[1] for line in lines if (match := _FOREIGN.match(line))})

    def _type(self, pane_id: str, command: str) -> bool:
        """Run *command* unless the pane cannot take it; tmux looks and acts in one step."""
        said = self._tmux.ask("if-shell", "-F", "-t", pane_id, _CANNOT_TYPE, f"display-message -p {_HELD}", command)
        return _HELD not in said

    def _drop(self, buffer: str) -> None:
        try:
            self._tmux.ask("delete-buffer", "-b", buffer)
        except TerminalError:
            return  # it went with the server, or with a paste that did happen


def _screen(fields: str, clients: list[str], lines: list[str]) -> Screen | None:
    """Read the answers of one look. An id that is gone leaves every field empty."""
    if not fields.strip("|"):
        return None
    value = dict(zip(_FIELDS, fields.split("|", len(_FIELDS) - 1), strict=True))
    status, killer = value["pane_dead_status"], value["pane_dead_signal"]
    return Screen(
        session_id=value["session_id"],
        window_id=value["window_id"],
        pane_id=value["pane_id"],
        pane_pid=int(value["pane_pid"]),
        dead=value["pane_dead"] == "1",
        exit_status=int(status) if status else -int(killer) if killer else None,
        in_mode=value["pane_in_mode"] not in {"", "0"},
        title=value["pane_title"],
        cursor_x=int(value["cursor_x"] or 0),
        cursor_y=int(value["cursor_y"] or 0),
        width=int(value["pane_width"]),
        height=int(value["pane_height"]),
        alternate_on=value["alternate_on"] == "1",
        text="\n".join(line.rstrip() for line in lines),
        last_typed_at=_last_typed(clients, value["session_id"], value["window_id"]),
    )


def _last_typed(clients: list[str], session_id: str, window_id: str) -> datetime | None:
    """Clients that look at this window through a session of another name can type into it as well."""
    rows = [client.split(" ") for client in clients]
    times = [int(at) for at, session, window in rows if session == session_id or window == window_id]
    return datetime.fromtimestamp(max(times), UTC) if times else None


def _agent_in(pane_pid: int, is_agent: Callable[[Process], bool]) -> Process | None:
    return next((process for process in tree_of(pane_pid) if is_agent(process)), None)


def _variables(launch: LaunchSpec) -> str:
    return " ".join(f"-e {quoted(f'{name}={value}')}" for name, value in launch.environment.items())


def idles_in_shell(pane_pid: int) -> bool:
    """Whether the pane holds nothing but a shell, as launchers leave behind that start the agent from one."""
    tree = tree_of(pane_pid)
    return len(tree) == 1 and Path(tree[0].command[0] if tree[0].command else "").name.lstrip("-") in SHELLS
