"""Starting a worker that is absent, at an operator's word."""

from __future__ import annotations

from lifecycle.coming_up import await_ready
from lifecycle.errors import Misuse, NotReady, PreflightFailed
from lifecycle.host import Host
from lifecycle.launching import launch_of
from lifecycle.screen import PaneState
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
    launch = launch_of(host, worker, None, remembered=record.launch)
    missing = host.agent(worker).preflight(worker, launch)
    if missing:
        msg = f"{worker.worker_id}: {'; '.join(missing)}"
        raise PreflightFailed(msg, worker_id=worker.worker_id)
    host.event("starting", worker, who=who, why=why)
    pane = look.screen.pane_id if look.screen is not None else None
    host.terminal(worker).spawn(launch, session=worker.session, pane_id=pane)
    # It runs in this boot: should the operator end it before the next look, no sweep takes that for the reboot's work.
    host.ledger.remember(worker.worker_id, last_boot=host.boot_id(), was_alive=True)
    if await_ready(host, worker) is None:
        msg = f"{worker.worker_id}: it ended as soon as it was started; its pane shows why"
        raise NotReady(msg, worker_id=worker.worker_id, evidence=host.look(worker).evidence())
    host.event("started", worker, who=who)
    words = f"{worker.worker_id} runs in tmux session {worker.session}"
    newest = next(iter(host.ledger.handoffs_of(worker.worker_id)), None)
    return f"{words}; it was told nothing, its last handoff is {newest.archive}" if newest else words
