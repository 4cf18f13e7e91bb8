"""Waiting for the input line of an agent that was started."""

from __future__ import annotations

from datetime import timedelta

from lifecycle.delivery import GONE
from lifecycle.errors import NotReady
from lifecycle.host import Host
from lifecycle.screen import PaneLook, PaneState
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker

SETTLED_AFTER = timedelta(seconds=1)
"""Before that a pane may still show what was there before the start."""


def await_ready(host: Host, worker: Worker) -> PaneLook | None:
    """The READY look; None if the agent ended.

    Raises:
        NotReady: something else stands in the pane when time is up.
    """
    limit, began = host.settings.deadlines.ready, host.clock.monotonic()

    def probe() -> PaneLook | None:
        look = host.look(worker)
        settled = host.clock.monotonic() - began > SETTLED_AFTER.total_seconds()
        ended = look.state in GONE and settled and look.agent_pid is None
        host.progress(worker.worker_id, f"waits for the input line ({look.state})")
        return look if look.state is PaneState.READY or ended else None

    try:
        look = wait_until(probe, limit, host.clock)
    except DeadlinePassed as error:
        look = host.look(worker)
        msg = f"{worker.worker_id}: no input line within {limit.total_seconds():.0f} s ({look.state})"
        raise NotReady(msg, worker_id=worker.worker_id, evidence=look.evidence()) from error
    return look if look.state is PaneState.READY else None
