"""Adapter: process trees (psutil)."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import psutil
from pydantic import Field

from lifecycle.value import Value
from lifecycle.waiting import Clock, DeadlinePassed, wait_until

_DRIFT = 2.0
"""How far two readings of one start time may lie apart, in seconds: the kernel counts from boot, the clock is set."""

_KILLED_IN = timedelta(seconds=5)
"""KILL needs no longer, unless the process hangs in the kernel."""

_GONE_EVERY = timedelta(seconds=0.02)
"""How often is looked whether processes have gone: that costs a tenth of a millisecond each, and a worker is down."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ProcessId(Value):
    """A process that can be recognised again: its pid with its start time (seconds since the epoch)."""

    pid: int
    started: float


class Process(Value):
    """One process, as far as it can be read. Its environment may hold secrets: it is kept out of `repr`."""

    pid: int
    parent: int
    started_at: datetime
    identity: ProcessId
    command: tuple[str, ...] = ()
    cwd: str | None = None
    environment: dict[str, str] = Field({}, repr=False)


class Forest:
    """Who is whose child, taken once: many trees cost one pass over the processes and not one each."""

    def __init__(self, parents: Mapping[int, int]) -> None:
        self._children: dict[int, list[int]] = {}
        for pid in sorted(parents):
            self._children.setdefault(parents[pid], []).append(pid)

    @classmethod
    def now(cls) -> Self:
        parents = {}
        for member in psutil.process_iter():
            with suppress(psutil.Error):
                parents[member.pid] = member.ppid()
        return cls(parents)

    def tree_of(self, pid: int) -> Iterator[Process]:
        """The process and its descendants as they were, every parent before its children; ended ones are left out."""
        left = [pid]
        while left:
            one = left.pop(0)
            with suppress(psutil.Error):
                process = _read(psutil.Process(one))
                if process is not None:
                    yield process
            left += self._children.get(one, ())


def tree_of(pid: int) -> tuple[Process, ...]:
    """The process and its descendants, every parent before its children; empty if it is gone."""
    try:
        root = psutil.Process(pid)
        members = [root, *root.children(recursive=True)]
    except psutil.Error:
        return ()
    return tuple(process for member in members if (process := _read(member)) is not None)


def endable_tree_of(pid: int) -> tuple[Process, ...]:
    """`tree_of` without tmux servers and what runs in their sessions: those are other people's (termio #137)."""
    tree = tree_of(pid)
    spared: set[int] = set()
    for process in tree:
        if process.parent in spared or _is_tmux(process.identity):
            spared.add(process.pid)
    return tuple(process for process in tree if process.pid not in spared)


def runs_below(pid: int, ancestor: int) -> bool:
    """Whether *pid* is *ancestor* or descends from it."""
    try:
        return ancestor in (pid, *(parent.pid for parent in psutil.Process(pid).parents()))
    except psutil.Error:
        return False


def everyone(runs: Callable[[tuple[str, ...]], bool]) -> Iterator[Process]:
    """Every process of this host whose command *runs* takes; of the others nothing but the command is read, which
    costs some milliseconds for each hundred.
    """
    for member in psutil.process_iter():
        with suppress(psutil.Error):
            if runs(tuple(member.cmdline())) and (process := _read(member)) is not None:
                yield process


def find(identity: ProcessId) -> Process | None:
    """The same process, None if it has ended or its pid now belongs to another."""
    member = _same(identity)
    return _read(member) if member is not None else None


def identity_of(pid: int) -> ProcessId | None:
    """The identity of a process that runs now, None if there is none."""
    tree = tree_of(pid)
    return tree[0].identity if tree else None


def is_alive(identity: ProcessId) -> bool:
    """Whether the process still runs. A zombie is dead (hermes-agent #20015); a reused pid is another process."""
    return _same(identity) is not None


def written_by(pid: int) -> int | None:
    """How many bytes the process has written so far, to its terminal and to files; None where nobody can tell."""
    try:
        return int(psutil.Process(pid).io_counters().write_chars)
    except (psutil.Error, AttributeError, ValueError, RuntimeError):  # not every system counts them
        return None


def started_at_tick(pid: int, tick: int) -> bool:
    """Whether the process runs that was started at this tick of the kernel's clock since boot (Linux)."""
    member = next(iter(tree_of(pid)), None)
    begun = psutil.boot_time() + tick / os.sysconf("SC_CLK_TCK")
    return member is not None and abs(member.identity.started - begun) <= _DRIFT


def ask_to_exit(identities: Iterable[ProcessId]) -> None:
    """Send TERM to each process that is still the one meant. Ended ones are passed over.

    Never signalled: this process, its ancestors, and tmux, which owns other people's sessions (termio #137).
    """
    _signal(identities, signal.SIGTERM)


def end(
    identities: Sequence[ProcessId], *, term_after: timedelta, kill_after: timedelta, clock: Clock
) -> tuple[ProcessId, ...]:
    """Wait for the processes to exit; TERM what is left after *term_after*, KILL it *kill_after* later.

    *identities* come parents first, as from `tree_of`; signals go to the deepest first, and to children born
    in the meantime. Returns those that outlived KILL, which includes the ones that are never signalled, except
    tmux: a server started by a tool lives on and is not counted.
    """
    left = [identity for identity in identities if not _is_tmux(identity)]
    for wait, sent in ((term_after, signal.SIGTERM), (kill_after, signal.SIGKILL)):
        left = _wait_for(left, wait, clock)
        if not left:
            return ()
        left = _with_children(left)
        _signal(reversed(left), sent)
    return tuple(_wait_for(left, _KILLED_IN, clock))


def outlived(identities: Iterable[ProcessId], span: timedelta, clock: Clock) -> tuple[ProcessId, ...]:
    """Those still alive after *span*; returns at once when none is."""
    return tuple(_wait_for(list(identities), span, clock))


def boot_id() -> str:
    """Names this run of the host: it changes with every boot."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return f"{psutil.boot_time():.0f}"


def _same(identity: ProcessId) -> psutil.Process | None:
    try:
        member = psutil.Process(identity.pid)
        if abs(member.create_time() - identity.started) > _DRIFT or member.status() == psutil.STATUS_ZOMBIE:
            return None
    except psutil.Error:
        return None
    return member


def _read(member: psutil.Process) -> Process | None:
    try:
        with member.oneshot():
            if member.status() == psutil.STATUS_ZOMBIE:
                return None
            started, parent, command = member.create_time(), member.ppid(), tuple(member.cmdline())
    except psutil.Error:
        return None
    cwd: str | None = None
    environment: dict[str, str] = {}
    with suppress(psutil.Error, OSError):  # another user's process: what it runs is known, not where
        cwd, environment = member.cwd(), member.environ()
    return Process(
        pid=member.pid,
        parent=parent,
        started_at=datetime.fromtimestamp(started, UTC),
        identity=ProcessId(pid=member.pid, started=started),
        command=command,
        cwd=cwd,
        environment=environment,
    )


def _wait_for(identities: list[ProcessId], span: timedelta, clock: Clock) -> list[ProcessId]:
    """Those still alive after *span*; returns at once when none is."""

    def all_gone() -> bool:
        return not any(map(is_alive, identities))

    try:
        wait_until(all_gone, span, clock, _GONE_EVERY)
    except DeadlinePassed:
        return [identity for identity in identities if is_alive(identity)]
    return []


def _with_children(identities: list[ProcessId]) -> list[ProcessId]:
    members = {member.identity.pid: member.identity for one in identities for member in endable_tree_of(one.pid)}
    return [*identities, *(one for pid, one in members.items() if pid not in {known.pid for known in identities})]


def _signal(identities: Iterable[ProcessId], number: signal.Signals) -> None:
    own = {os.getpid(), *(ancestor.pid for ancestor in psutil.Process().parents())}
    for identity in identities:
        member = _same(identity)
        if member is None or member.pid in own or _is_tmux(identity):
            continue
        try:
            member.send_signal(number)
        except psutil.Error:
            continue  # it has ended, or it is not ours to end; the wait that follows tells which


def _is_tmux(identity: ProcessId) -> bool:
    """On Linux a server calls itself `tmux: server`."""
    member = _same(identity)
    try:
        return member is not None and member.name().startswith("tmux")
    except psutil.Error:
        return False
