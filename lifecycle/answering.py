"""A human's answer to a block: what it changes in the ledger. The renewal itself then goes on in a flow run."""

from __future__ import annotations

from typing import Literal

from lifecycle.choice import Choice
from lifecycle.ending import close
from lifecycle.errors import LifecycleError, Misuse
from lifecycle.host import Host
from lifecycle.renewal import End, Phase, Renewal
from lifecycle.steps.respawning import respawn_worker
from lifecycle.steps.standing import amend
from lifecycle.steps.stopping import stop_worker
from lifecycle.value import Value
from lifecycle.worker import Worker


class Answered(Value):
    """What an answer did. *goes_on* says that the renewal is open again and wants a flow run."""

    worker_id: str
    renewal_id: str
    choice: Choice
    goes_on: bool
    message: str


def answer(host: Host, worker: Worker, choice: Choice, *, who: str, why: str = "", text: str | None = None) -> Answered:
    """Apply *choice* to the worker's block. The caller holds the worker's lock.

    Raises:
        Misuse: no block waits, or the choice does not fit its phase.
    """
    renewal = host.ledger.record(worker.worker_id).open_renewal
    if renewal is None or renewal.block is None:
        msg = f"{worker.worker_id} has no block that waits for an answer"
        raise Misuse(msg, worker_id=worker.worker_id)
    saved = renewal.phase.reached(Phase.SAVED)
    if choice in (Choice.SYNTHESIZE, Choice.USE_TEXT) and saved:
        msg = f"{worker.worker_id}: the handoff is saved already; answer retry, dismiss or hold"
        raise Misuse(msg, worker_id=worker.worker_id)
    if choice is Choice.USE_TEXT and not (text and text.strip()):
        msg = f"{worker.worker_id}: use-text needs a text that is not empty"
        raise Misuse(msg, worker_id=worker.worker_id)
    host.event("answered", worker, renewal.renewal_id, choice=choice.value, who=who, why=why)
    if choice in (Choice.DISMISS, Choice.HOLD):
        return _closed(host, worker, renewal, choice, why or f"{choice.value} by {who}")
    changes: dict[str, object] = {"block": None, "released": False, "respawns": 0, "reminder": None}
    substitute: Literal["synthesize", "text"] | None = None
    if choice is Choice.USE_TEXT:
        substitute = "text"
    elif choice is Choice.SYNTHESIZE or (choice is Choice.FORCE and not saved):
        substitute = "synthesize"
    if substitute is not None:
        changes |= {"substitute": substitute, "given_text": text}
    if choice is Choice.FORCE:
        changes["forced"] = True
    if choice is Choice.RETRY and renewal.phase in (Phase.REQUESTED, Phase.RESUMED):
        changes |= {"correction": None, "ask_again": True}
    amend(host, renewal, **changes)
    return Answered(
        worker_id=worker.worker_id,
        renewal_id=renewal.renewal_id,
        choice=choice,
        goes_on=True,
        message=f"renewal {renewal.renewal_id} goes on from {renewal.phase}",
    )


def _closed(host: Host, worker: Worker, renewal: Renewal, choice: Choice, why: str) -> Answered:
    down = _bring_back(host, worker, renewal) if renewal.has_stopped_worker else ""
    end = End.HELD if choice is Choice.HOLD else End.DISMISSED
    close(host, worker, host.ledger.renewal(renewal.renewal_id), end, why)
    now = host.now()
    if choice is Choice.HOLD:
        host.ledger.remember(worker.worker_id, held_since=now, held_why=why)
    else:
        host.ledger.remember(worker.worker_id, cooldown_until=now + worker.policy.cooldown)
    return Answered(
        worker_id=worker.worker_id,
        renewal_id=renewal.renewal_id,
        choice=choice,
        goes_on=False,
        message=f"renewal {renewal.renewal_id} is closed{down}",
    )


def _bring_back(host: Host, worker: Worker, renewal: Renewal) -> str:
    """Start the worker that a renewal had stopped; says where that failed."""
    if renewal.phase.reached(Phase.RESPAWNED) or renewal.saved is None:
        return ""
    try:
        amend(host, renewal, block=None, respawns=0)
        respawn_worker(host, worker, stop_worker(host, worker, renewal.saved))
    except LifecycleError as error:
        return f"; the worker is DOWN ({error.detail}): `afresh start {worker.worker_id}` starts it"
    return "; the worker was started again"
