"""What the operator allows: hands off a worker or not, automatic renewal on or off, however it is said."""

from __future__ import annotations

from collections.abc import Iterable

from lifecycle.host import Host
from lifecycle.lock import is_held
from lifecycle.value import Value
from lifecycle.worker import Worker


class Changed(Value):
    """What was changed for one worker; *change* is `none` where it was so already."""

    worker_id: str
    change: str
    message: str


def hold(host: Host, worker: Worker, *, who: str, why: str = "") -> Changed:
    """Hands off: nothing is typed, started or stopped until it is released. What a process does now is finished."""
    name = worker.worker_id
    before = host.ledger.record(name)
    if not before.is_held:
        host.ledger.remember(name, held_since=host.now(), held_why=why or f"held by {who}")
        host.event("held", worker, who=who, why=why)
    words = f"{name} is held already ({before.held_why})" if before.is_held else f"{name} is held"
    words += "; what a process does to it right now is finished first" if is_held(host.paths(worker).lock) else ""
    return Changed(worker_id=name, change="none" if before.is_held else "held", message=words)


def release(host: Host, worker: Worker, *, who: str, why: str = "") -> Changed:
    """End a hold."""
    name = worker.worker_id
    was = host.ledger.record(name).is_held
    if was:
        host.ledger.remember(name, held_since=None, held_why="")
        host.event("released", worker, who=who, why=why)
    words = f"{name} is released" if was else f"{name} was not held"
    return Changed(worker_id=name, change="released" if was else "none", message=words)


def set_automatic(host: Host, workers: Iterable[Worker], *, on: bool, who: str, why: str = "") -> list[Changed]:
    """Let sweeps renew *workers*, or only read and report them. What is said so overrules the configuration."""
    word, changed = "on" if on else "off", []
    for worker in workers:
        before = host.ledger.record(worker.worker_id).automatic
        was = worker.automatic if before is None else before
        if before is not on:
            host.ledger.remember(worker.worker_id, automatic=on)
            host.event("automatic", worker, on=on, who=who, why=why)
        message = f"automatic renewal of {worker.worker_id} {'was' if was is on else 'is'} {word}"
        changed.append(Changed(worker_id=worker.worker_id, change="none" if was is on else word, message=message))
    return changed
