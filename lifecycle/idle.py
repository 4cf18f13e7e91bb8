"""Whether a worker is between turns: nothing runs, nothing is asked, nothing is half done."""

from __future__ import annotations

from datetime import timedelta

from lifecycle.errors import ContextUnreadable
from lifecycle.host import Host
from lifecycle.input_line import GONE
from lifecycle.processes import Process
from lifecycle.screen import PaneLook, PaneState
from lifecycle.transcript import TurnState
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker

SETTLED = timedelta(seconds=0.5)
"""READY must be seen twice, this far apart: between two tool calls the input line is free for a moment."""


def is_idle(look: PaneLook, turn: TurnState | None) -> bool:
    """READY pane, nothing in the background, no compaction. A turn without an answer behind a READY pane has failed."""
    if look.state is not PaneState.READY or look.background:
        return False
    return turn is None or not (turn.compacting or turn.delegating)


def rests_for(host: Host, worker: Worker, look: PaneLook, process: Process | None) -> timedelta | None:
    """For how long the worker has been idle, by *look* and those that earlier steps took; None where it is not.

    A turn that begins and ends between two looks leaves a row, and its rest begins anew.
    """
    calm, name = host.calm, worker.worker_id
    if look.state is not PaneState.READY:
        calm.broken(name)
        return None
    try:
        turn = host.turn(worker, process)
    except ContextUnreadable:
        return None
    if not is_idle(look, turn):
        calm.broken(name)
        return None
    last_act = (process.identity if process else None, turn.session_id, turn.newest_row)
    return calm.seen(name, last_act, host.clock.monotonic())


def process_at_rest(host: Host, worker: Worker) -> Process | None:
    """`host.process`, by a look that also counts for how long the worker rests: what is done meanwhile is not waited
    for afterwards.

    Raises:
        TerminalError
    """
    look, process = host.look_with_process(worker)
    rests_for(host, worker, look, process)
    return process


def wait_idle(host: Host, worker: Worker, within: timedelta) -> PaneLook | None:
    """The look at an idle worker, or at one whose agent has ended; None if it was not idle in time.

    The look is the last one of a span of rest of at least `SETTLED`, which earlier steps may have seen begin.
    """

    def probe() -> PaneLook | None:
        look, process = host.look_with_process(worker)
        if look.state in GONE:
            return look
        rested = rests_for(host, worker, look, process)
        if rested is None:
            host.progress(worker.worker_id, f"waits for idle ({look.state})")
            return None
        return look if rested >= SETTLED else None

    try:
        return wait_until(probe, within, host.clock)
    except DeadlinePassed:
        return None
