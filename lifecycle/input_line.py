"""An agent's input line: whether it takes text, whether it shows ours, and pasting into it."""

from __future__ import annotations

from datetime import timedelta

from lifecycle.errors import AgentGone, ContextUnreadable, Interfered, NothingTyped
from lifecycle.host import Host
from lifecycle.processes import Process
from lifecycle.screen import Face, PaneLook, PaneState
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker

GONE = (PaneState.ABSENT, PaneState.EXITED, PaneState.NOT_AN_AGENT)

STILL_FOR = timedelta(seconds=0.2)
"""How long an input line must have been free, with nothing drawn meanwhile, before something is typed into it. At the
end of a turn Hermes's classic face shows a free line between two prints, and a text that is pasted during the second
one is entered line by line: the face has given the terminal away for it, and bracketed pastes with that."""

FREE_FOR = timedelta(seconds=1)
"""The same for a face that draws all the time."""

LONG_OVER = timedelta(seconds=5)
"""A turn whose newest row is as old as this has no end that is still being printed; nor has a session without one."""

SHOWN_WITHIN = timedelta(seconds=5)
"""How long a pasted text may take to be drawn."""


def shown(host: Host, worker: Worker, text: str) -> PaneLook | None:
    """The look at a pane whose input line holds *text*."""
    look = host.look(worker)
    refuse_dialog(worker, look)
    return look if host.agent(worker).shows_text(look, text) else None


def takes_text(host: Host, worker: Worker, text: str, *, while_busy: bool) -> PaneLook:
    """Wait for a line that is empty, or holds *text* already, or *while_busy* one that queues.

    Raises:
        NothingTyped: there was none in time.
        TextNotSendable, AgentGone
    """
    agent, free = host.agent(worker), list[float]()

    def probe() -> PaneLook | None:
        look, process = host.look_with_process(worker)
        if look.state in GONE:
            msg = f"{worker.worker_id}: the agent is gone"
            raise AgentGone(msg, worker_id=worker.worker_id, evidence=look.evidence())
        ours = look.state is PaneState.TYPED and agent.shows_text(look, text)
        busy = while_busy and look.state is PaneState.BUSY
        if ours or busy:
            return look
        if look.state is not PaneState.READY:
            free.clear()
            return None
        if is_still():
            return look
        # What was looked at before the database was asked is old: a dialog may have opened meanwhile.
        again = host.look(worker) if _is_long_over(host, worker, process) else look
        return again if again is not look and again.state is PaneState.READY else None

    def is_still() -> bool:
        free.append(host.clock.monotonic())
        return host.still.span(worker.worker_id) >= STILL_FOR or free[-1] - free[0] >= FREE_FOR.total_seconds()

    try:
        within = max(host.settings.deadlines.delivery, 2 * FREE_FOR)
        look = wait_until(probe, within, host.clock)
    except DeadlinePassed as error:
        look = host.look(worker)
        msg = f"{worker.worker_id}: the input line never took text ({look.state}); nothing was typed"
        raise NothingTyped(msg, worker_id=worker.worker_id, evidence=look.evidence()) from error
    agent.check_sendable(text, look.face or Face.CLI, worker, busy=look.state is PaneState.BUSY)
    return look


def _is_long_over(host: Host, worker: Worker, process: Process | None) -> bool:
    """A turn without an answer has failed, and says so on the screen long after its newest row."""
    try:
        turn = host.turn(worker, process)
    except ContextUnreadable:
        return False
    return turn.newest_at is None or (turn.answered and host.now() - turn.newest_at >= LONG_OVER)


def paste(host: Host, worker: Worker, text: str, look: PaneLook) -> None:
    """Paste *text* into the pane of *look*, once.

    Raises:
        Interfered: the pane went into copy mode or died; nothing was pasted.
        AgentGone: there is no pane.
    """
    if look.screen is None:
        msg = f"{worker.worker_id}: no pane"
        raise AgentGone(msg, worker_id=worker.worker_id)
    if not host.terminal(worker).paste(look.screen.pane_id, text, buffer=f"afresh-{worker.worker_id}"):
        msg = f"{worker.worker_id}: the pane went into copy mode or died; nothing was pasted"
        raise Interfered(msg, worker_id=worker.worker_id, evidence=host.look(worker).evidence())


def refuse_dialog(worker: Worker, look: PaneLook) -> None:
    """Step back where *look* shows something that our text, or the Enter behind it, would answer.

    Raises:
        Interfered, AgentGone
    """
    if look.state in (PaneState.DIALOG, PaneState.SETUP, PaneState.COPY_MODE):
        msg = f"{worker.worker_id}: {look.state} came up while our text was on its way; Enter was not pressed"
        raise Interfered(msg, worker_id=worker.worker_id, evidence=look.evidence())
    if look.state in GONE:
        msg = f"{worker.worker_id}: the agent ended while our text was on its way"
        raise AgentGone(msg, worker_id=worker.worker_id, evidence=look.evidence())
