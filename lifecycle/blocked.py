"""What waits for a human: every open block, with its evidence and the answers that it takes."""

from __future__ import annotations

from lifecycle.ending import remedy
from lifecycle.errors import LifecycleError
from lifecycle.host import Host
from lifecycle.renewal import Block
from lifecycle.value import Value


class Waiting(Value):
    """One block that waits for an answer."""

    worker_id: str
    renewal_id: str
    generation: int
    block: Block
    remedy: str


def waiting(host: Host) -> list[Waiting]:
    """All blocks, the oldest first. A worker that nobody declares any more is listed too."""
    found = [
        Waiting(
            worker_id=renewal.worker_id,
            renewal_id=renewal.renewal_id,
            generation=renewal.generation,
            block=renewal.block,
            remedy=_remedy(host, renewal.worker_id, renewal.block),
        )
        for renewal in host.ledger.open_renewals()
        if renewal.block is not None
    ]
    return sorted(found, key=lambda entry: entry.block.at)


def _remedy(host: Host, worker_id: str, block: Block) -> str:
    try:
        return remedy(host.worker(worker_id), block)
    except LifecycleError as error:
        return f"Nobody can answer it now: {error.detail}"
