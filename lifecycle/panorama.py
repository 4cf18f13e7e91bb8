"""One look at many sessions of a tmux server: a few calls of tmux and one pass over the processes, for any number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from lifecycle.errors import LifecycleError, TerminalError
from lifecycle.host import Host
from lifecycle.processes import Forest, Process
from lifecycle.screen import PaneLook, PaneState, Screen
from lifecycle.terminal import Pane, Terminal
from lifecycle.tmux import NoServer, TargetGone
from lifecycle.worker import Worker

IsAgent = Callable[[Process], bool]
Seen = tuple[Screen, Process | None]

BATCH = 250
"""Panes that one call of tmux captures. More save little, and tmux does nothing else until it is answered."""


def panes_of(host: Host, workers: Iterable[Worker]) -> dict[str, tuple[PaneLook, Process | None]]:
    """By worker id what `Host.look_with_process` finds, for all managed *workers* at once.

    Where tmux does not answer, each of its workers is unknown with the reason. A worker is missing where it has to be
    looked at by itself: one that shares its session's name with another, or whose kind of agent nobody knows.
    """
    looks: dict[str, tuple[PaneLook, Process | None]] = {}
    for socket, group in _by_socket(host, workers).items():
        wanted = {session: _is_agent_of(host, worker) for session, worker in group.items()}
        try:
            seen = screens_of(host.terminal_on(socket), wanted)
        except TerminalError as error:
            unseen = PaneLook(state=PaneState.UNKNOWN, unseen=error.detail), None
            looks |= {worker.worker_id: unseen for worker in group.values()}
            continue
        for session, worker in group.items():
            screen, process = seen.get(session, (None, None))
            looks[worker.worker_id] = (
                (host.agent(worker).look(worker, screen, process), process)
                if screen is not None
                else (PaneLook(state=PaneState.ABSENT), None)
            )
    return looks


def _by_socket(host: Host, workers: Iterable[Worker]) -> dict[str | None, dict[str, Worker]]:
    groups: dict[str | None, dict[str, Worker]] = {}
    shared: set[tuple[str | None, str]] = set()
    for worker in workers:
        try:
            host.agent(worker)
        except LifecycleError:
            continue
        if worker.managed:
            socket = worker.socket if worker.socket is not None else host.settings.socket
            group = groups.setdefault(socket, {})
            if worker.session in group:
                shared.add((socket, worker.session))
            group[worker.session] = worker
    for socket, session in shared:
        del groups[socket][session]
    return groups


def _is_agent_of(host: Host, worker: Worker) -> IsAgent:
    agent = host.agent(worker)
    return lambda process: agent.is_agent(process, worker)


def screens_of(terminal: Terminal, wanted: Mapping[str, IsAgent]) -> dict[str, Seen]:
    """Of each session by name what `Terminal.screen_of` finds; a session that is not there is missing.

    Trees and screens are up to some seconds apart where there are thousands: decide by it, and look again before
    acting.

    Raises:
        TerminalError: tmux is missing, refuses or hangs; that says nothing about any session.
    """
    chosen = _chosen([pane for pane in terminal.panes() if pane.session in wanted], wanted)
    seen: dict[str, Seen] = {}
    for batch in _batches(chosen, BATCH):
        for (pane, agent), screen in zip(batch, _captured(terminal, [pane for pane, _ in batch]), strict=True):
            if screen is not None:
                seen[pane.session] = screen, agent if screen.pane_pid == pane.pane_pid else None
    return seen


def _chosen(panes: Iterable[Pane], wanted: Mapping[str, IsAgent]) -> list[tuple[Pane, Process | None]]:
    """Of each session the first pane whose tree holds its agent, else its first pane."""
    forest = Forest.now()
    chosen: dict[str, tuple[Pane, Process | None]] = {}
    for pane in panes:
        if pane.session in chosen and chosen[pane.session][1] is not None:
            continue
        is_agent = wanted[pane.session]
        agent = next((process for process in forest.tree_of(pane.pane_pid) if is_agent(process)), None)
        if agent is not None or pane.session not in chosen:
            chosen[pane.session] = pane, agent
    return list(chosen.values())


def _captured(terminal: Terminal, panes: Sequence[Pane]) -> list[Screen | None]:
    """All in one call; in halves where a pane of them has gone, which ends the whole call."""
    try:
        screens = terminal.captures(panes) if len(panes) > 1 else [None]
    except NoServer:
        return [None] * len(panes)
    except TargetGone:
        middle = len(panes) // 2
        return [*_captured(terminal, panes[:middle]), *_captured(terminal, panes[middle:])]
    return [screen or terminal.capture(pane.pane_id) for pane, screen in zip(panes, screens, strict=True)]


def _batches(items: list[tuple[Pane, Process | None]], size: int) -> Iterator[list[tuple[Pane, Process | None]]]:
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch
