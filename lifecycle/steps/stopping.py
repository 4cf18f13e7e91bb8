"""Step 5: the old session ends, and every process that could write its database is gone."""

from __future__ import annotations

from datetime import timedelta

from lifecycle.elsewhere import has_ended, living_elsewhere
from lifecycle.errors import BusyTooLong, HandoffOutdated, Interfered, LaunchUnknown, NotNow, NotStopped
from lifecycle.failed_turn import refuse_in_trouble
from lifecycle.host import Host
from lifecycle.idle import wait_idle
from lifecycle.input_line import GONE
from lifecycle.processes import ProcessId, ask_to_exit, end, endable_tree_of, find, outlived, runs_below
from lifecycle.redaction import redact
from lifecycle.renewal import Phase, Renewal, SavedHandoff, StoppedSession
from lifecycle.screen import PaneLook
from lifecycle.steps.standing import advance, standing
from lifecycle.worker import Worker

AFTER_AGENT = timedelta(seconds=3)
"""What the agent's other processes may take behind it: the TUI's gateway closes its session in up to 1 s. Tools of the
TUI live on, and would be waited for until the end of all deadlines."""


def stop_worker(host: Host, worker: Worker, saved: SavedHandoff) -> StoppedSession:
    """End the agent in its pane, which is kept, and wait until its whole process tree is gone.

    Raises:
        BusyTooLong: it never became idle; untouched.
        HandoffOutdated: it worked on after its handoff; untouched.
        NotStopped: processes survived KILL; no second agent may be started.
        Interfered: it runs outside its session.
        NotNow: it was to be brought back after a reboot, and it runs already.
    """
    renewal = standing(host, saved.renewal_id)
    if renewal.phase.reached(Phase.STOPPED) and renewal.stopped is not None:
        return renewal.stopped
    if renewal.purpose == "handoff":
        msg = f"{renewal.renewal_id} only stores a handoff; nothing is stopped for it"
        raise NotNow(msg, worker_id=worker.worker_id)
    if renewal.phase is Phase.SAVED:
        renewal = _begin(host, worker, renewal, saved)
    elif not renewal.forced and host.look(worker).state not in GONE:
        # A run that died here had ended nothing yet; meanwhile the worker may have gone on.
        _may_stop(host, worker, renewal, saved)
    host.worker_goes_down()
    if renewal.launch is None:
        msg = f"{worker.worker_id}: nobody recorded how it is started"
        raise LaunchUnknown(msg, worker_id=worker.worker_id)
    look = host.look(worker)
    survivors = _end(host, worker, renewal)
    if survivors:
        pids = ", ".join(str(identity.pid) for identity in survivors)
        msg = f"{worker.worker_id}: still alive after KILL: {pids}"
        raise NotStopped(msg, worker_id=worker.worker_id, evidence=look.evidence())
    other = living_elsewhere(host, worker)
    if other is not None:
        msg = f"{worker.worker_id}: another agent of this profile runs (process {other.pid}); no second one is started"
        raise NotStopped(msg, worker_id=worker.worker_id, evidence=look.evidence())
    screen = look.screen
    stopped = StoppedSession(
        renewal_id=renewal.renewal_id,
        tmux_session=worker.session,
        pane_id=screen.pane_id if screen else None,
        window_id=screen.window_id if screen else None,
        session_id=saved.session_id or (renewal.reading.session_id if renewal.reading else None),
        processes=renewal.stopping,
        launch=renewal.launch,
        stopped_at=host.now(),
    )
    advance(host, worker, standing(host, renewal.renewal_id), Phase.STOPPED, stopped=stopped)
    return stopped


def _begin(host: Host, worker: Worker, renewal: Renewal, saved: SavedHandoff) -> Renewal:
    """Check for the last time that the worker may be stopped, and record what will be ended."""
    refuse_in_trouble(host, worker)
    look = host.look(worker)
    _refuse_second(host, worker, renewal, look)
    if look.state not in GONE and not renewal.forced:
        look = _may_stop(host, worker, renewal, saved)
        _refuse_second(host, worker, renewal, look)
    if host.ledger.record(worker.worker_id).is_held:
        msg = f"{worker.worker_id} was held meanwhile; it is not stopped"
        raise NotNow(msg, worker_id=worker.worker_id)
    targets = _targets(host, worker, look)
    if look.screen is not None and look.state not in GONE:
        host.terminal(worker).keep_pane(look.screen.pane_id)
    return advance(host, worker, standing(host, renewal.renewal_id), Phase.STOPPING, stopping=targets)


def _refuse_second(host: Host, worker: Worker, renewal: Renewal, look: PaneLook) -> None:
    if look.state not in GONE:
        if renewal.substitute == "reboot":
            msg = f"{worker.worker_id} runs again; somebody started it"
            raise NotNow(msg, worker_id=worker.worker_id)
        return
    if not has_ended(host, worker):
        msg = f"{worker.worker_id}: its agent runs outside the session {worker.session}; no second one is started"
        kind = NotNow if renewal.substitute == "reboot" else Interfered
        raise kind(msg, worker_id=worker.worker_id, evidence=look.evidence())


def _may_stop(host: Host, worker: Worker, renewal: Renewal, saved: SavedHandoff) -> PaneLook:
    """The look at an idle worker whose newest word is its handoff, or at one that has ended by itself meanwhile."""
    limit = host.settings.deadlines.idle_before_stop
    look = wait_idle(host, worker, limit)
    if look is None:
        busy = host.look(worker)
        msg = f"{worker.worker_id}: not idle within {limit.total_seconds():.0f} s after its handoff ({busy.state})"
        raise BusyTooLong(msg, worker_id=worker.worker_id, evidence=busy.evidence(), reason="not_idle")
    if look.state in GONE:
        return look
    if not _is_newest_word(host, worker, renewal, saved):
        msg = f"{worker.worker_id}: went on working after its handoff; the handoff is not its newest word"
        raise HandoffOutdated(msg, worker_id=worker.worker_id, evidence=look.evidence())
    return look


def _is_newest_word(host: Host, worker: Worker, renewal: Renewal, saved: SavedHandoff) -> bool:
    """Whether nothing was said or done since the answer, which is followed through compactions by its text.

    A handoff that was synthesized tells of a newest row instead; one that a human gave is the human's word.
    """
    if not saved.answered_row:
        told = renewal.parsed.newest_row if renewal.parsed is not None else 0
        return not told or host.turn(worker, host.process(worker)).newest_row <= told
    asked = renewal.correction or renewal.request
    if asked is None or renewal.parsed is None:
        return True
    reply = host.agent(worker).find_reply(worker, asked.row, asked.text)
    turn = host.turn(worker, host.process(worker))
    if reply is None or redact(reply.text) != renewal.parsed.answer:
        return False
    return (turn.session_id, turn.newest_row) == (reply.session_id, reply.row_id)


def _targets(host: Host, worker: Worker, look: PaneLook) -> tuple[ProcessId, ...]:
    if look.agent_pid is None:
        return ()
    recorded = host.agent(worker).background_processes(worker)
    tree = endable_tree_of(look.agent_pid)
    # The list is a file that a worker can write: what the agent itself runs below was not started by it.
    own = [pid for pid in recorded if not runs_below(look.agent_pid, pid)]
    background = [process for pid in own for process in endable_tree_of(pid)]
    return tuple(dict.fromkeys(process.identity for process in (*tree, *background)))


def _end(host: Host, worker: Worker, renewal: Renewal) -> tuple[ProcessId, ...]:
    deadlines = host.settings.deadlines
    alive = [identity for identity in renewal.stopping if find(identity)]
    if not alive:
        return ()
    host.progress(worker.worker_id, f"ends {len(alive)} process{'' if len(alive) == 1 else 'es'}")
    # Children that the agent started while it was ending are its processes too.
    grown = {process.identity for identity in alive for process in endable_tree_of(identity.pid)}
    everything = tuple(dict.fromkeys((*renewal.stopping, *grown)))
    agent = host.agent(worker).asked_first(everything)
    ask_to_exit(agent)
    hangs = outlived(agent, deadlines.exit, host.clock)
    grace = timedelta(0) if hangs else min(deadlines.exit, AFTER_AGENT)
    return end(everything, term_after=grace, kill_after=deadlines.term, clock=host.clock)
