"""What befalls many workers at once is one incident, and one notification (brizzai/fleet #207)."""

from __future__ import annotations

from collections.abc import Sequence

from lifecycle.errors import TerminalError
from lifecycle.host import Host
from lifecycle.notifying import notify_host
from lifecycle.worker import Worker

SHOWN = 20
"""Workers named in a notification; of more it says how many."""


def tell_server_gone(host: Host, absent: Sequence[tuple[Worker, str]]) -> frozenset[str]:
    """Tell once of workers that vanished together with their tmux server; returns those that need no word more.

    *absent* are the workers without a session, each with the key of the notice that it is due.
    """
    told: set[str] = set()
    for socket in {worker.socket for worker, _ in absent}:
        here = [(worker, key) for worker, key in absent if worker.socket == socket]
        if len(here) < 2 or _has_sessions(host, here[0][0]):
            continue
        told |= {worker.worker_id for worker, _ in here}
        at = host.now()
        first = [worker for worker, key in here if host.ledger.is_first_notice(worker.worker_id, key, at=at)]
        if first:
            where = f"on socket {socket or host.settings.socket or 'default'}"
            body = f"the tmux server {where} is gone, and with it {names(first)}. Nothing is started by itself"
            remedy = "`afresh start WORKER` starts one in a clean session."
            notify_host(host, f"server_gone:{at:%Y%m%dT%H%M%S}:{socket}", "tmux server gone", body, remedy=remedy)
    return frozenset(told)


def tell_reboot(host: Host, cut_off: Sequence[Worker]) -> None:
    """Tell once of each boot which workers went down with the one before."""
    if cut_off:
        body = f"the host has rebooted under {names(cut_off)}; brought back now, a few at a time"
        notify_host(host, f"rebooted:{host.boot_id()}", "host rebooted", body)


def names(workers: Sequence[Worker]) -> str:
    """The workers' ids, of many the first ones and the number."""
    ids = [worker.worker_id for worker in workers]
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return f"{len(ids)} workers ({', '.join(ids[:SHOWN])}{more})" if len(ids) > 1 else ids[0]


def _has_sessions(host: Host, worker: Worker) -> bool:
    try:
        return bool(host.terminal(worker).panes())
    except TerminalError:
        return True  # it says nothing about the sessions
