"""Waiting for the input line of an agent that was started."""

from __future__ import annotations

from datetime import timedelta

from lifecycle.errors import NotReady
from lifecycle.host import Host
from lifecycle.screen import PaneLook, PaneState
from lifecycle.terminal import idles_in_shell
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker

SETTLED_AFTER = timedelta(seconds=1)
"""Before that a pane may still show what was there before the start."""

SHELL_AFTER = timedelta(seconds=5)
"""A launcher's shell that has nothing to run for so long has no agent to start any more."""


def await_ready(host: Host, worker: Worker, *, pane_id: str | None = None) -> PaneLook | None:
    """The READY look at the agent that was started in *pane_id*; None if it ended.

    A launcher that takes its time has not ended: until it runs the agent its pane is not an agent's.

    Raises:
        NotReady: something else stands in the pane when time is up.
    """
    limit, began = host.settings.deadlines.ready, host.clock.monotonic()

    def probe() -> PaneLook | None:
        look = host.look(worker, prefer=pane_id)
        waited = timedelta(seconds=host.clock.monotonic() - began)
        host.progress(worker.worker_id, f"waits for the input line ({look.state})")
        return look if look.state is PaneState.READY or has_ended(look, waited) else None

    try:
        look = wait_until(probe, limit, host.clock)
    except DeadlinePassed as error:
        look = host.look(worker, prefer=pane_id)
        msg = f"{worker.worker_id}: no input line within {limit.total_seconds():.0f} s ({look.state})"
        raise NotReady(msg, worker_id=worker.worker_id, evidence=look.evidence()) from error
    return look if look.state is PaneState.READY else None


def has_ended(look: PaneLook, waited: timedelta) -> bool:
    """Whether what was started *waited* ago is over."""
    if look.state in (PaneState.ABSENT, PaneState.EXITED):
        return waited > SETTLED_AFTER
    is_shell = look.state is PaneState.NOT_AN_AGENT and look.screen is not None and idles_in_shell(look.screen.pane_pid)
    return is_shell and waited > SHELL_AFTER
