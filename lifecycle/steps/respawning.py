"""Step 6: a clean agent starts in the same pane."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from lifecycle.coming_up import await_ready
from lifecycle.errors import NotReady, TerminalError
from lifecycle.host import Host
from lifecycle.input_line import GONE
from lifecycle.processes import tree_of
from lifecycle.renewal import Phase, Renewal, RunningSession, StoppedSession
from lifecycle.screen import PaneLook, Screen
from lifecycle.steps.standing import advance, amend, standing
from lifecycle.terminal import idles_in_shell
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker

TRIES = 2

APPEARS_WITHIN = timedelta(seconds=10)
"""How long a launcher of a run that died may take before another one is started."""

HEARD_WITHIN = timedelta(seconds=5)
"""How long tmux may take to hear that a program has ended: it is told within milliseconds, and may be at work."""


def respawn_worker(host: Host, worker: Worker, stopped: StoppedSession) -> RunningSession:
    """Start the launch specification and wait until the input line is free.

    An agent that already runs in the pane, started after the stop, is taken for ours: a second one is never started.

    Raises:
        NotReady: two starts did not lead to an input line. The worker is down or stands before a dialog.
    """
    renewal = standing(host, stopped.renewal_id)
    if renewal.phase.reached(Phase.RESPAWNED) and renewal.running is not None:
        return renewal.running
    pane_id = stopped.pane_id
    if renewal.respawns:
        _await_earlier_start(host, worker)
    while True:
        look = host.look(worker, prefer=pane_id)
        if look.state in GONE:
            if renewal.respawns >= TRIES:
                msg = f"{worker.worker_id}: {TRIES} starts ended without an input line"
                raise NotReady(msg, worker_id=worker.worker_id, evidence=look.evidence())
            if renewal.respawns:
                deaths = host.ledger.record(worker.worker_id).deaths
                host.ledger.remember(worker.worker_id, deaths=(*deaths, host.now()))
            renewal = amend(host, standing(host, renewal.renewal_id), respawns=renewal.respawns + 1)
            pane_id = _spawn(host, worker, stopped, look, ours=pane_id)
        ready = await_ready(host, worker, pane_id=pane_id)
        if ready is not None:
            return _running(host, worker, renewal, stopped, ready)


def _await_earlier_start(host: Host, worker: Worker) -> None:
    """A run that died here may have started a launcher that has not started the agent yet."""
    with suppress(DeadlinePassed):
        wait_until(lambda: host.look(worker).agent_pid, APPEARS_WITHIN, host.clock)


def _spawn(host: Host, worker: Worker, stopped: StoppedSession, look: PaneLook, *, ours: str | None) -> str:
    """Start the agent in its old pane where that is free, and return the id of the pane that it runs in.

    Another pane of the session is never taken, nor is a shell in it ended.
    """
    screen = look.screen
    is_ours = screen is not None and screen.pane_id == ours
    if screen is not None and is_ours:
        screen = _known_to_tmux(host, worker, screen)
    free = is_ours and screen is not None and (screen.dead or idles_in_shell(screen.pane_pid))
    host.progress(worker.worker_id, f"starts {stopped.launch.command[0]}")
    try:
        started = host.terminal(worker).spawn(
            stopped.launch, session=worker.session, pane_id=screen.pane_id if screen is not None and free else None
        )
    except TerminalError as error:
        raise NotReady(error.detail, worker_id=worker.worker_id, evidence=look.evidence()) from error
    return started.pane_id


def _known_to_tmux(host: Host, worker: Worker, screen: Screen) -> Screen:
    """The pane as it is when tmux has heard that its program has ended: until then it starts no other one there."""
    if screen.dead or tree_of(screen.pane_pid):
        return screen

    def heard() -> Screen | None:
        now = host.terminal(worker).capture(screen.pane_id)
        if now is None or now.pane_pid != screen.pane_pid:
            return screen
        return now if now.dead else None

    try:
        return wait_until(heard, HEARD_WITHIN, host.clock, every=timedelta(seconds=0.02))
    except DeadlinePassed:
        return screen


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
