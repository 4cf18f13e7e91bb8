"""Whether a worker is between turns: nothing runs, nothing is asked, nothing is half done."""

from __future__ import annotations

from datetime import timedelta

from lifecycle.errors import ContextUnreadable
from lifecycle.host import Host
from lifecycle.input_line import GONE
from lifecycle.screen import PaneLook, PaneState
from lifecycle.transcript import TurnState
from lifecycle.waiting import POLL, DeadlinePassed, wait_until
from lifecycle.worker import Worker

SETTLED = timedelta(seconds=0.5)
"""READY must be seen twice, this far apart: between two tool calls the input line is free for a moment."""


def is_idle(look: PaneLook, turn: TurnState | None) -> bool:
    """READY pane, nothing in the background, no compaction. A turn without an answer behind a READY pane has failed."""
    if look.state is not PaneState.READY or look.background:
        return False
    return turn is None or not (turn.compacting or turn.delegating)


def wait_idle(host: Host, worker: Worker, within: timedelta) -> PaneLook | None:
    """The look at an idle worker, or at one whose agent has ended; None if it was not idle in time."""
    since: list[float] = []

    def probe() -> PaneLook | None:
        look, process = host.look_with_process(worker)
        if look.state in GONE:
            return look
        try:
            turn = host.turn(worker, process) if look.state is PaneState.READY else None
        except ContextUnreadable:
            return None
        if not is_idle(look, turn):
            since.clear()
            host.progress(worker.worker_id, f"waits for idle ({look.state})")
            return None
        since.append(host.clock.monotonic())
        return look if since[-1] - since[0] >= SETTLED.total_seconds() else None

    try:
        return wait_until(probe, within, host.clock, every=POLL)
    except DeadlinePassed:
        return None
