"""Starting a worker that is absent, at an operator's word."""

from __future__ import annotations

import os

from lifecycle.errors import LaunchUnknown, Misuse, NotReady, PreflightFailed
from lifecycle.host import Host
from lifecycle.launch import LaunchSpec
from lifecycle.record import WorkerRecord
from lifecycle.screen import PaneState
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker

DOWN = (PaneState.ABSENT, PaneState.EXITED)


def start_worker(host: Host, worker: Worker, *, who: str, why: str = "") -> str:
    """Start the worker clean and wait for its input line; says what was started. The caller holds its lock.

    Raises:
        Misuse: it is held, or runs already, or something else lives in its session.
        PreflightFailed, LaunchUnknown, NotReady
    """
    record = host.ledger.record(worker.worker_id)
    if record.is_held:
        msg = f"{worker.worker_id} is held ({record.held_why}): `afresh release {worker.worker_id}` first"
        raise Misuse(msg, worker_id=worker.worker_id)
    look = host.look(worker)
    if look.state not in DOWN:
        words = "something that is not its agent" if look.state is PaneState.NOT_AN_AGENT else f"it ({look.state})"
        msg = f"{worker.worker_id}: the session {worker.session} holds {words} already; nothing was started"
        raise Misuse(msg, worker_id=worker.worker_id)
    launch = _launch(host, worker, record)
    missing = host.agent(worker).preflight(worker, launch)
    if missing:
        msg = f"{worker.worker_id}: {'; '.join(missing)}"
        raise PreflightFailed(msg, worker_id=worker.worker_id)
    host.event("starting", worker, who=who, why=why)
    pane = look.screen.pane_id if look.screen is not None else None
    host.terminal(worker).spawn(launch, session=worker.session, pane_id=pane)
    try:
        wait_until(lambda: host.look(worker).state is PaneState.READY, host.settings.deadlines.ready, host.clock)
    except DeadlinePassed as error:
        look = host.look(worker)
        msg = f"{worker.worker_id}: started, but its input line did not come up ({look.state})"
        raise NotReady(msg, worker_id=worker.worker_id, evidence=look.evidence()) from error
    host.event("started", worker, who=who)
    return f"{worker.worker_id} runs in tmux session {worker.session}"


def _launch(host: Host, worker: Worker, record: WorkerRecord) -> LaunchSpec:
    """As the configuration or a wrapper says, else as the agent was last seen running."""
    wanted = {name: os.environ[name] for name in host.settings.pass_env if name in os.environ}
    try:
        return host.agent(worker).launch_spec(worker, None, wanted)
    except LaunchUnknown:
        if record.launch is None:
            raise
        return record.launch
