"""Typing a text into an agent's input line, with proof that it arrived."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from lifecycle.errors import (
    BusyTooLong,
    ContextUnreadable,
    NotDelivered,
)
from lifecycle.failed_turn import refuse_in_trouble
from lifecycle.host import Host
from lifecycle.input_line import SHOWN_WITHIN, paste, refuse_dialog, shown, takes_text
from lifecycle.lost_paste import LostPaste
from lifecycle.renewal import Delivery
from lifecycle.screen import PaneLook, PaneState
from lifecycle.transcript import SentRow
from lifecycle.waiting import UNCHANGED, DeadlinePassed, wait_until
from lifecycle.worker import Worker

ENTER_AGAIN = timedelta(seconds=2)
"""A face that swallowed an Enter (hermes-agent PR #109146: within 50 ms of the paste) shows our text still."""

LOST_AFTER = timedelta(seconds=0.5)
"""An input line seen free twice, this far apart and without our row, holds back no text of ours."""

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
    the text in the input line. A paste that vanished, this call's or an earlier one's, is pasted once more, and only
    where neither of the two holds it for a while and nothing that was typed is left unread. A text that was entered
    may be queued where nobody sees it: it is waited for until the agent is idle, for at most *queued_for*, else the
    policy's `busy_block`.
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
    look = takes_text(host, worker, text, while_busy=while_busy)
    if intent is None:
        intent = Delivery(kind=kind, text=text, after_row=agent.newest_row(worker), began_at=host.now())
        remember(intent)
        # Writing that took its time, and a dialog may have opened meanwhile: what is pasted upon was seen just now.
        look = takes_text(host, worker, text, while_busy=while_busy)
        if not agent.shows_text(look, text):
            paste(host, worker, text, look)
    arrived = _stand_in_line(host, worker, intent, while_busy=while_busy)
    return arrived or _send(host, worker, intent, remember, queued_for)


class _Found(NamedTuple):
    """A text that stands in the line; or its row, because someone entered it; or the free line that lost it."""

    row: SentRow | None = None
    lost: PaneLook | None = None


def _stand_in_line(host: Host, worker: Worker, intent: Delivery, *, while_busy: bool) -> SentRow | None:
    """Wait until the line shows the pasted text, pasting once more where it is lost; its row if someone entered it."""
    text, lost = intent.text, LostPaste(host, worker, intent, while_busy=while_busy)

    def found() -> _Found | None:
        if shown(host, worker, text) is not None:
            return _Found()
        if (row := _row(host, worker, intent)) is not None:
            return _Found(row=row)
        return _Found(lost=look) if (look := lost.seen()) is not None else None

    for _ in range(2):
        try:
            what = wait_until(found, SHOWN_WITHIN, host.clock, every=timedelta(seconds=0.04))
        except DeadlinePassed:
            break
        if what.lost is None:
            return what.row
        lost.may_be_mended = False
        paste(host, worker, text, what.lost)
    look = host.look(worker)
    msg = f"{worker.worker_id}: the pasted text is not in the input line ({look.state}); Enter was not pressed"
    raise NotDelivered(msg, worker_id=worker.worker_id, evidence=look.evidence())


def _send(host: Host, worker: Worker, intent: Delivery, remember: RememberIntent, queued_for: timedelta) -> SentRow:
    """Press Enter below the pasted text until it is gone from the line, and wait for its row."""
    clock, text = host.clock, intent.text
    intent = intent.model_copy(update={"entered_at": host.now()})
    remember(intent)
    entered: list[float] = []

    def arrived() -> SentRow | None:
        row = _row(host, worker, intent)
        if row is None and (not entered or clock.monotonic() - entered[-1] >= ENTER_AGAIN.total_seconds()):
            look = shown(host, worker, text)
            if look is not None and look.screen is not None:
                host.terminal(worker).press_enter(look.screen.pane_id)
                entered.append(clock.monotonic())
        return row

    stamp, limit = partial(host.agent(worker).stamp, worker), host.settings.deadlines.delivery
    try:
        return arrived() or wait_until(arrived, limit, clock, UNCHANGED, stamp=stamp, at_once=False)
    except DeadlinePassed as error:
        late = _arrived(host, worker, intent, queued_for) if entered else None
        if late is not None:
            return late
        msg = f"{worker.worker_id}: no row with our text within {limit.total_seconds():.0f} s"
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
            refuse_dialog(worker, look)
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
