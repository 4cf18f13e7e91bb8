"""Step 6: a clean agent starts in the same pane."""

from __future__ import annotations

from lifecycle.coming_up import await_ready
from lifecycle.delivery import GONE
from lifecycle.errors import NotReady, TerminalError
from lifecycle.host import Host
from lifecycle.processes import tree_of
from lifecycle.renewal import Phase, Renewal, RunningSession, StoppedSession
from lifecycle.screen import PaneLook
from lifecycle.steps.standing import advance, amend, standing
from lifecycle.worker import Worker

TRIES = 2


def respawn_worker(host: Host, worker: Worker, stopped: StoppedSession) -> RunningSession:
    """Start the launch specification and wait until the input line is free.

    An agent that already runs in the pane, started after the stop, is taken for ours: a second one is never started.

    Raises:
        NotReady: two starts did not lead to an input line. The worker is down or stands before a dialog.
    """
    renewal = standing(host, stopped.renewal_id)
    if renewal.phase.reached(Phase.RESPAWNED) and renewal.running is not None:
        return renewal.running
    while True:
        look = host.look(worker)
        if look.state in GONE:
            if renewal.respawns >= TRIES:
                msg = f"{worker.worker_id}: {TRIES} starts ended without an input line"
                raise NotReady(msg, worker_id=worker.worker_id, evidence=look.evidence())
            if renewal.respawns:
                deaths = host.ledger.record(worker.worker_id).deaths
                host.ledger.remember(worker.worker_id, deaths=(*deaths, host.now()))
            renewal = amend(host, standing(host, renewal.renewal_id), respawns=renewal.respawns + 1)
            _spawn(host, worker, stopped, look)
        ready = await_ready(host, worker)
        if ready is not None:
            return _running(host, worker, renewal, stopped, ready)


def _spawn(host: Host, worker: Worker, stopped: StoppedSession, look: PaneLook) -> None:
    pane = look.screen.pane_id if look.screen and look.screen.dead else None
    host.progress(worker.worker_id, f"starts {stopped.launch.command[0]}")
    try:
        host.terminal(worker).spawn(stopped.launch, session=worker.session, pane_id=pane)
    except TerminalError as error:
        raise NotReady(error.detail, worker_id=worker.worker_id, evidence=look.evidence()) from error


def _running(host: Host, worker: Worker, renewal: Renewal, stopped: StoppedSession, look: PaneLook) -> RunningSession:
    pid = look.agent_pid
    tree = tree_of(pid) if pid is not None else ()
    if not tree or look.screen is None:
        msg = f"{worker.worker_id}: the agent vanished as it became ready"
        raise NotReady(msg, worker_id=worker.worker_id, evidence=look.evidence())
    running = RunningSession(
        renewal_id=renewal.renewal_id,
        pane_id=look.screen.pane_id,
        agent=tree[0].identity,
        generation=renewal.generation + 1,
        started_at=tree[0].started_at,
        old_session_id=stopped.session_id,
    )
    host.ledger.remember(worker.worker_id, agent=running.agent, last_boot=host.boot_id(), was_alive=True)
    advance(host, worker, standing(host, renewal.renewal_id), Phase.RESPAWNED, running=running)
    return running
