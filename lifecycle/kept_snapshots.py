"""Which snapshots of a worker's work tree the ledger knows."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from lifecycle.errors import Misuse
from lifecycle.ledger import Ledger
from lifecycle.value import Value

_LOOKED_BACK = 60
"""Renewals; of a worker's snapshots git keeps fewer."""


class KeptSnapshot(Value):
    """One snapshot; *generation* is the one that ended with it."""

    generation: int
    renewal_id: str
    root: Path
    ref: str
    commit: str
    at: datetime


def snapshots_of(ledger: Ledger, worker_id: str) -> list[KeptSnapshot]:
    """Newest first."""
    found = []
    for renewal in ledger.renewals_of(worker_id, limit=_LOOKED_BACK):
        tree = renewal.collected.git if renewal.collected else None
        if renewal.collected and tree and tree.snapshot and tree.commit:
            found.append(
                KeptSnapshot(
                    generation=renewal.generation,
                    renewal_id=renewal.renewal_id,
                    root=tree.root,
                    ref=tree.snapshot,
                    commit=tree.commit,
                    at=renewal.collected.at,
                )
            )
    return found


def chosen(found: list[KeptSnapshot], worker_id: str, generation: int | None) -> tuple[KeptSnapshot, KeptSnapshot]:
    """The snapshot of *generation*, by default the newest, and the newest of the same work tree.

    Raises:
        Misuse: there is none.
    """
    wanted = next((one for one in found if generation in (None, one.generation)), None)
    if wanted is None:
        there = ", ".join(dict.fromkeys(str(one.generation) for one in found)) or "none"
        which = f" of generation {generation}" if generation is not None else ""
        msg = f"{worker_id} has no snapshot{which}; generations with one: {there}"
        raise Misuse(msg, worker_id=worker_id)
    return wanted, next(one for one in found if one.root == wanted.root)
