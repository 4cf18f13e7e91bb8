"""Everything that an install needs, looked at before a night depends on it. Nothing is typed or started."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from lifecycle.errors import LifecycleError
from lifecycle.host import Host
from lifecycle.launch import LaunchSpec
from lifecycle.policy import Policy
from lifecycle.remark import Remark, advice, fine, trouble
from lifecycle.screen import PaneState
from lifecycle.settings import NotifySettings, Settings
from lifecycle.sinks import unusable
from lifecycle.tmux import installed_version
from lifecycle.tokens import EncodingUnavailable, counter
from lifecycle.worker import Worker

LEAST_SPACE = 500_000_000
"""Bytes that should be free where Afresh keeps its archive: a ledger that cannot grow stops every renewal."""

LEAST_TMUX = (3, 0)
"""Exact targets and `-e` of new-session, which Afresh needs, came with 3.0 (tmux's CHANGES)."""


def check_files(settings: Settings) -> list[Remark]:
    """The configuration, the state folder, the shared memory, the disk, and the ranks to count tokens with."""
    found = [fine("configuration", str(settings.path or "none: every setting has its default"))]
    found += _private(settings.home)
    for about, folder in (("state folder", settings.home), ("shared memory", settings.memory_root)):
        found.append(_writable(about, folder))
    free = shutil.disk_usage(_nearest(settings.home)).free
    if free < LEAST_SPACE:
        says = f"{free // 1_000_000} MB are free at {settings.home}"
        found.append(trouble("disk", says, f"free {LEAST_SPACE // 1_000_000} MB or move AFRESH_HOME"))
    else:
        found.append(fine("disk", f"{free // 1_000_000_000} GB are free at {settings.home}"))
    try:
        counter()
        found.append(fine("token counting", "tiktoken's ranks are installed"))
    except EncodingUnavailable as error:
        found.append(advice("token counting", f"{error}; contexts are bounded, not counted", "run make install again"))
    if settings.notify == NotifySettings():
        says = "a block is written to log and event only: nobody is called"
        fix = "set `[notify] apprise`, `webhook`, `command` or `blocks` in afresh.toml"
        found.append(advice("notifications", says, fix))
    for sink, why in unusable(settings.notify):
        found.append(trouble("notifications", f"{sink}: {why}", f"correct `[notify]` in {settings.path}"))
    return found


def check_tmux(host: Host) -> list[Remark]:
    """That tmux is there, new enough, and answers on every socket that a worker is configured for."""
    found = []
    try:
        version = installed_version()
    except LifecycleError as error:
        return [trouble("tmux", error.detail, "install tmux (Debian: sudo apt-get install tmux)")]
    words = ".".join(map(str, version or ("of its main branch",)))
    if version is not None and version < LEAST_TMUX:
        fix = f"install tmux {'.'.join(map(str, LEAST_TMUX))} or newer"
        found.append(trouble("tmux", f"tmux {words} is too old", fix))
    else:
        found.append(fine("tmux", f"tmux {words}"))
    sockets = {worker.socket if worker.socket is not None else host.settings.socket for worker in _managed(host)}
    for socket in sorted(sockets, key=str):
        try:
            count = len(host.terminal_on(socket).panes())
            found.append(fine(f"tmux socket {socket or 'default'}", f"{count} panes"))
        except LifecycleError as error:
            fix = "start its tmux server, or correct `socket` in afresh.toml"
            found.append(trouble(f"tmux socket {socket or 'default'}", error.detail, fix))
    return found


def check_ledger(host: Host) -> list[Remark]:
    """That every stored row can be read, and what waits for a human."""
    path = host.settings.ledger_path
    try:
        records = host.ledger.records(worker.worker_id for worker in _managed(host))
    except LifecycleError as error:
        return [trouble("ledger", error.detail, f"move the row or restore {path} from a copy")]
    blocked = [name for name, record in records.items() if record.open_renewal and record.open_renewal.block]
    found = [fine("ledger", f"{path} is readable")]
    found += [
        advice(name, "is blocked and waits for an answer", "afresh blocked, then afresh answer") for name in blocked
    ]
    return found


def check_workers(host: Host) -> list[Remark]:
    """What each managed worker needs to be read, renewed and brought back; its agent's own advice with it."""
    workers = _managed(host)
    if not workers:
        says = "no worker is managed"
        return [advice("workers", says, "afresh adopt finds agents that run now and proposes their configuration")]
    return [remark for worker in workers for remark in check_worker(host, worker)]


def check_worker(host: Host, worker: Worker) -> list[Remark]:
    """Troubles and advice for one worker, or one line that says it is fine."""
    try:
        found = [*_pane(host, worker), *_launch(host, worker), *_folders(host, worker), *_automatic(host, worker)]
        found += host.agent(worker).remarks(worker)
    except LifecycleError as error:
        found = [trouble(worker.worker_id, error.detail, "mend what the line names")]
    return found or [fine(worker.worker_id, "everything to renew it is there")]


def _pane(host: Host, worker: Worker) -> Iterator[Remark]:
    look = host.look(worker)
    if look.state is PaneState.ABSENT:
        says = f"its tmux session {worker.session} is not there"
        yield advice(worker.worker_id, says, f"afresh start {worker.worker_id}, or set its `session` in afresh.toml")
    elif look.state in (PaneState.EXITED, PaneState.NOT_AN_AGENT):
        says = f"no agent runs in its session {worker.session}"
        yield advice(worker.worker_id, says, f"afresh start {worker.worker_id}")


def _launch(host: Host, worker: Worker) -> Iterator[Remark]:
    agent = host.agent(worker)
    passed = {name: os.environ[name] for name in host.settings.pass_env if name in os.environ}
    try:
        launch: LaunchSpec = agent.launch_spec(worker, host.process(worker), passed)
    except LifecycleError as error:
        yield trouble(worker.worker_id, error.detail, f"set `command` and `cwd` in [workers.{worker.worker_id}]")
        return
    if launch.source == "live":
        says = "only its running process says how it is started: once it is gone, nobody knows"
        fix = f"set `command` and `cwd` in [workers.{worker.worker_id}] of afresh.toml"
        yield advice(worker.worker_id, says, fix)
    for missing in agent.preflight(worker, launch):
        yield trouble(worker.worker_id, missing, "bring it back, or correct the worker's table in afresh.toml")


def _folders(host: Host, worker: Worker) -> Iterator[Remark]:
    paths = host.paths(worker)
    for folder in (paths.handoffs, paths.archive, paths.shared_latest.parent):
        remark = _writable(worker.worker_id, folder)
        if remark.verdict == "trouble":
            yield remark


def _automatic(host: Host, worker: Worker) -> Iterator[Remark]:
    stored = host.ledger.record(worker.worker_id).automatic
    if not (worker.automatic if stored is None else stored):
        yield advice(worker.worker_id, "automatic renewal is off", f"afresh enable {worker.worker_id}")
    if worker.policy.signal == "session_total" and worker.policy == Policy(signal="session_total"):
        says = "it is judged by tokens billed so far, which a compaction never lowers"
        yield advice(worker.worker_id, says, 'set `signal = "occupancy"` unless the original rule is wanted')


def _managed(host: Host) -> list[Worker]:
    return [worker for worker in host.workers() if worker.managed]


def _private(home: Path) -> Iterator[Remark]:
    """Handoffs, passwords and the ledger lie there."""
    if home.exists() and home.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield trouble("state folder", f"others may enter {home}", f"chmod 700 {home}")


def _writable(about: str, folder: Path) -> Remark:
    """A folder that is not there yet is judged by the one it would be made in."""
    place = _nearest(folder)
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return fine(about, f"{folder} can be written")
    return trouble(about, f"{folder} cannot be written", f"make {place} a folder that this user can write")


def _nearest(path: Path) -> Path:
    """The path itself or the nearest of its parents that is there."""
    return next(place for place in (path, *path.parents) if place.exists())
