"""Where a renewal stands, and moving it on."""

from __future__ import annotations

from collections.abc import Callable

from lifecycle.errors import RenewalInProgress
from lifecycle.host import Host
from lifecycle.renewal import Delivery, Phase, Renewal
from lifecycle.worker import Worker


def standing(host: Host, renewal_id: str) -> Renewal:
    """The open, unblocked renewal.

    Raises:
        RenewalInProgress: it has ended or waits for a human; a step may not go on.
    """
    renewal = host.ledger.renewal(renewal_id)
    if not renewal.is_open or renewal.block is not None:
        msg = f"{renewal_id} stands at {renewal.end or 'blocked'}; nothing was done"
        raise RenewalInProgress(msg, worker_id=renewal.worker_id)
    return renewal


def advance(host: Host, worker: Worker, renewal: Renewal, phase: Phase, **proofs: object) -> Renewal:
    """Write that *renewal* reached *phase*, with its proof, and tell the event log."""
    with host.ledger.transaction():
        moved = host.ledger.put(renewal.advanced(phase, host.now(), **proofs))
        host.event(f"renewal.{phase}", worker, renewal.renewal_id)
    host.progress(worker.worker_id, phase.value)
    return moved


def amend(host: Host, renewal: Renewal, **changes: object) -> Renewal:
    """Write a change that moves no phase."""
    changed = renewal.model_copy(update={**changes, "updated_at": host.now()})
    return host.ledger.put(changed)


def remembering(host: Host, renewal_id: str) -> Callable[[Delivery], None]:
    """What writes the intent of a delivery into the open renewal, where the next run finds it."""

    def remember(intent: Delivery) -> None:
        amend(host, standing(host, renewal_id), delivery=intent)

    return remember
