"""Typing a text into an agent's input line, with proof that it arrived."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from lifecycle.errors import (
    AgentGone,
    BusyTooLong,
    ContextUnreadable,
    Interfered,
    NotDelivered,
    NothingTyped,
    TextNotSendable,
)
from lifecycle.failed_turn import refuse_in_trouble
from lifecycle.host import Host
from lifecycle.renewal import Delivery
from lifecycle.screen import Face, PaneLook, PaneState
from lifecycle.transcript import SentRow
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker

ENTER_AGAIN = timedelta(seconds=2)
"""A face that swallowed an Enter (hermes-agent PR #109146: within 50 ms of the paste) shows our text still."""

SHOWN_WITHIN = timedelta(seconds=5)
"""How long a pasted text may take to be drawn. 95 kB took under a second on the TUI."""

LOST_AFTER = timedelta(seconds=0.5)
"""An input line seen free twice, this far apart and without our row, holds back no text of ours."""

GONE = (PaneState.ABSENT, PaneState.EXITED, PaneState.NOT_AN_AGENT)

RememberIntent = Callable[[Delivery], None]


def deliver(
    host: Host,
    worker: Worker,
    text: str,
    *,
    kind: str,
    intent: Delivery | None = None,
    remember: RememberIntent = lambda _: None,
    while_busy: bool = False,
    queued_for: timedelta | None = None,
) -> SentRow:
    """Type *text* once and return the row that proves its arrival.

    Called again with the *intent* that an earlier call had *remember*ed, it first looks for the row, then for
    the text in the input line, and pastes only where neither holds it. A text that was entered may be queued where
    nobody sees it: it is waited for until the agent is idle, for at most *queued_for*, else the policy's `busy_block`.
    Nothing is typed unless the face shows an empty input line (or, *while_busy*, a face that queues), and Enter is
    pressed only while it shows our text.

    Raises:
        TextNotSendable: the face would not take the text as written.
        NothingTyped: the input line never took text.
        NotDelivered: no row in time; what stands in the line is left there.
        BusyTooLong: the text was entered, and the turn that it is queued behind does not end.
        Interfered: a dialog opened, or someone else's text stands in the line. No Enter was pressed.
        AgentGone: the agent ended.
        ParksHere: the breaker of the worker's account is open; nothing was typed.
    """
    agent = host.agent(worker)
    text = text.strip()
    if intent is not None and intent.text != text:
        intent = None
    queued_for = queued_for or worker.policy.busy_block
    if intent is not None and (arrived := _arrived(host, worker, intent, queued_for)):
        return arrived
    refuse_in_trouble(host, worker)
    while_busy = while_busy and (intent is None or intent.entered_at is None)
    look = _takes_text(host, worker, text, while_busy=while_busy)
    if intent is None:
        intent = Delivery(kind=kind, text=text, after_row=agent.newest_row(worker), began_at=host.now())
        remember(intent)
        # Writing that took its time, and a dialog may have opened meanwhile: what is pasted upon was seen just now.
        look = _takes_text(host, worker, text, while_busy=while_busy)
    if not agent.shows_text(look, text):
        _paste(host, worker, text, look)
    return _send(host, worker, intent, remember, queued_for)


def type_command(host: Host, worker: Worker, command: str) -> None:
    """Type one of the agent's own commands, which leaves no row; the caller looks for its effect.

    Raises:
        NotDelivered, Interfered, AgentGone
    """
    agent = host.agent(worker)
    refuse_in_trouble(host, worker)
    look = _takes_text(host, worker, command, while_busy=False)
    _paste(host, worker, command, look)
    try:
        look = wait_until(lambda: _shown(host, worker, command), SHOWN_WITHIN, host.clock)
    except DeadlinePassed as error:
        msg = f"{worker.worker_id}: {command} does not show in the input line; Enter was not pressed"
        raise NotDelivered(msg, worker_id=worker.worker_id, evidence=host.look(worker).evidence()) from error
    if look.screen is not None and agent.shows_text(look, command):
        host.terminal(worker).press_enter(look.screen.pane_id)


def _shown(host: Host, worker: Worker, text: str) -> PaneLook | None:
    """The look at a pane whose input line holds *text*."""
    look = host.look(worker)
    _refuse_dialog(worker, look)
    return look if host.agent(worker).shows_text(look, text) else None


def own_words(host: Host, worker: Worker, text: str) -> bool:
    """Whether *text*, which quotes a worker, may not be typed into its face: then only our own words may."""
    face = host.look(worker).face
    if face is not Face.CLI:
        return True
    try:
        host.agent(worker).check_sendable(text, face, worker, busy=False)
    except TextNotSendable:
        return True
    return False


def _takes_text(host: Host, worker: Worker, text: str, *, while_busy: bool) -> PaneLook:
    agent = host.agent(worker)

    def probe() -> PaneLook | None:
        look = host.look(worker)
        if look.state in GONE:
            msg = f"{worker.worker_id}: the agent is gone"
            raise AgentGone(msg, worker_id=worker.worker_id, evidence=look.evidence())
        ours = look.state is PaneState.TYPED and agent.shows_text(look, text)
        busy = while_busy and look.state is PaneState.BUSY
        return look if look.state is PaneState.READY or ours or busy else None

    try:
        look = wait_until(probe, host.settings.deadlines.delivery, host.clock)
    except DeadlinePassed as error:
        look = host.look(worker)
        msg = f"{worker.worker_id}: the input line never took text ({look.state}); nothing was typed"
        raise NothingTyped(msg, worker_id=worker.worker_id, evidence=look.evidence()) from error
    agent.check_sendable(text, look.face or Face.CLI, worker, busy=look.state is PaneState.BUSY)
    return look


def _paste(host: Host, worker: Worker, text: str, look: PaneLook) -> None:
    if look.screen is None:
        msg = f"{worker.worker_id}: no pane"
        raise AgentGone(msg, worker_id=worker.worker_id)
    if not host.terminal(worker).paste(look.screen.pane_id, text, buffer=f"afresh-{worker.worker_id}"):
        msg = f"{worker.worker_id}: the pane went into copy mode or died; nothing was pasted"
        raise Interfered(msg, worker_id=worker.worker_id, evidence=host.look(worker).evidence())


def _send(host: Host, worker: Worker, intent: Delivery, remember: RememberIntent, queued_for: timedelta) -> SentRow:
    """Press Enter below the pasted text until it is gone from the line, and wait for its row."""
    clock, text = host.clock, intent.text
    try:
        wait_until(lambda: _shown(host, worker, text), SHOWN_WITHIN, clock, every=timedelta(seconds=0.1))
    except DeadlinePassed as error:
        look = host.look(worker)
        msg = f"{worker.worker_id}: the pasted text is not in the input line ({look.state}); Enter was not pressed"
        raise NotDelivered(msg, worker_id=worker.worker_id, evidence=look.evidence()) from error
    intent = intent.model_copy(update={"entered_at": host.now()})
    remember(intent)
    entered: list[float] = []

    def arrived() -> SentRow | None:
        row = _row(host, worker, intent)
        if row is None and (not entered or clock.monotonic() - entered[-1] >= ENTER_AGAIN.total_seconds()):
            look = _shown(host, worker, text)
            if look is not None and look.screen is not None:
                host.terminal(worker).press_enter(look.screen.pane_id)
                entered.append(clock.monotonic())
        return row

    try:
        return wait_until(arrived, host.settings.deadlines.delivery, clock)
    except DeadlinePassed as error:
        late = _arrived(host, worker, intent, queued_for) if entered else None
        if late is not None:
            return late
        seconds = host.settings.deadlines.delivery.total_seconds()
        msg = f"{worker.worker_id}: no row with our text within {seconds:.0f} s"
        raise NotDelivered(msg, worker_id=worker.worker_id, evidence=host.look(worker).evidence()) from error


def _row(host: Host, worker: Worker, intent: Delivery) -> SentRow | None:
    try:
        return host.agent(worker).find_sent(worker, intent.text, after_row=intent.after_row)
    except ContextUnreadable:
        return None


def _arrived(host: Host, worker: Worker, intent: Delivery, longest: timedelta) -> SentRow | None:
    """The row of *intent*; None where the agent does not hold its text: it was not entered, or was and got lost."""
    agent, clock = host.agent(worker), host.clock
    row = agent.find_sent(worker, intent.text, after_row=intent.after_row)
    if row is not None or intent.entered_at is None:
        return row
    free: list[float] = []

    def probe() -> tuple[SentRow | None] | None:
        look = host.look(worker)
        row = agent.find_sent(worker, intent.text, after_row=intent.after_row)
        if row is not None or agent.shows_text(look, intent.text):
            return (row,)
        if look.state is not PaneState.COPY_MODE:
            _refuse_dialog(worker, look)
        if look.state not in (PaneState.READY, PaneState.TYPED):
            host.progress(worker.worker_id, "our text is queued behind the running turn")
            free.clear()
            return None
        free.append(clock.monotonic())
        return (None,) if free[-1] - free[0] >= LOST_AFTER.total_seconds() else None

    left = max(longest - (host.now() - intent.entered_at), host.settings.deadlines.delivery)
    try:
        return wait_until(probe, min(left, longest), clock)[0]
    except DeadlinePassed as error:
        look = host.look(worker)
        msg = (
            f"{worker.worker_id}: our text was entered and is not answered; "
            f"the turn before it has not ended within {longest.total_seconds():.0f} s ({look.state})"
        )
        raise BusyTooLong(msg, worker_id=worker.worker_id, evidence=look.evidence()) from error


def _refuse_dialog(worker: Worker, look: PaneLook) -> None:
    if look.state in (PaneState.DIALOG, PaneState.SETUP, PaneState.COPY_MODE):
        msg = f"{worker.worker_id}: {look.state} came up while our text was on its way; Enter was not pressed"
        raise Interfered(msg, worker_id=worker.worker_id, evidence=look.evidence())
    if look.state in GONE:
        msg = f"{worker.worker_id}: the agent ended while our text was on its way"
        raise AgentGone(msg, worker_id=worker.worker_id, evidence=look.evidence())
