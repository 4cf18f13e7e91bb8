"""How a renewal ends when it does not end well: blocked, with the worker released where it still lives."""

from __future__ import annotations

import logging
from datetime import timedelta

from lifecycle.decision import Decision
from lifecycle.elsewhere import has_ended
from lifecycle.errors import AgentGone, LifecycleError, StopsHere, WeakResume
from lifecycle.host import Host
from lifecycle.notifying import notify
from lifecycle.orchestrator import tell_orchestrator
from lifecycle.reading import ContextReading
from lifecycle.record import Dismissed
from lifecycle.releasing import release
from lifecycle.renewal import WAITING_FOR_ROW, Block, Blocked, End, Phase, Renewal, block_of, new_renewal_id
from lifecycle.screen import PaneState
from lifecycle.swarm import read_now, remember_in_swarm, tell_closed, tell_swarm, told_now, told_of
from lifecycle.worker import Worker

log = logging.getLogger(__name__)


def block(host: Host, worker: Worker, renewal: Renewal, error: LifecycleError) -> Blocked:
    """Put a block on *renewal*, release the worker where it still waits for us, and tell a human. Sticky."""
    placed = block_of(error, renewal, host.now())
    if isinstance(error, AgentGone) or renewal.has_stopped_worker:
        # The phase says what was begun; the pane says what came of it.
        placed = placed.model_copy(update={"worker_down": has_ended(host, worker)})
    before = renewal.told_before or told_now(host, worker)
    blocked = renewal.model_copy(
        update={"block": placed, "take_ups": 0, "told_before": before, "updated_at": host.now()}
    )
    blocked = host.ledger.put(blocked)
    host.event(
        "renewal.blocked", worker, renewal.renewal_id, reason=placed.reason, detail=placed.detail, phase=placed.phase
    )
    blocked = release(host, worker, blocked)
    tell_swarm(host, worker, **told_of(placed), acceptingWork=False)
    remember_in_swarm(host, worker, renewal, "blocked", placed.detail, reason=placed.reason)
    notify(
        host,
        worker,
        f"blocked:{renewal.renewal_id}:{placed.at:%Y%m%dT%H%M%S}",
        f"blocked: {placed.reason}",
        placed.detail,
        remedy=remedy(worker, placed),
    )
    tell_orchestrator(host, worker, "blocked", blocked)
    return Blocked(renewal=blocked, block=placed)


def block_outright(host: Host, worker: Worker, decision: Decision, reading: ContextReading) -> Blocked:
    """Block a worker on which no renewal may be opened: a renewal that never begins carries the block."""
    now = host.now()
    renewal = Renewal(
        renewal_id=new_renewal_id(now),
        worker_id=worker.worker_id,
        generation=host.ledger.record(worker.worker_id).generation,
        opened_at=now,
        updated_at=now,
        why=decision.reason,
        reading=reading,
    )
    host.ledger.open(renewal)
    error = StopsHere(decision.reason, worker_id=worker.worker_id, reason=decision.block or "blocked")
    return block(host, worker, renewal, error)


def find_proof(host: Host, worker: Worker, renewal: Renewal) -> bool:
    """Clear a block that waited for a proof, if the proof is there now, and say so."""
    if renewal.block is None or not renewal.waits_for_proof:
        return False
    try:
        found = _proof(host, worker, renewal)
    except LifecycleError:
        return False
    if not found:
        return False
    with host.ledger.transaction():
        stands = host.ledger.renewal(renewal.renewal_id)
        if not stands.is_open or stands.block != renewal.block:
            return False  # a human answered while we looked
        host.ledger.put(stands.model_copy(update={"block": None, "updated_at": host.now()}))
    host.event("block.cleared", worker, renewal.renewal_id, reason=renewal.block.reason, proof=found)
    key = f"cleared:{renewal.renewal_id}:{renewal.block.at:%Y%m%dT%H%M%S}"
    notify(host, worker, key, "no longer blocked", f"{renewal.block.reason}: {found}")
    return True


def _proof(host: Host, worker: Worker, renewal: Renewal) -> str:
    agent = host.agent(worker)
    match renewal.block.reason if renewal.block else "":
        case "not_ready":
            return "the agent is ready now" if host.look(worker).state is PaneState.READY else ""
        case "handoff_timeout":
            asked = renewal.correction or renewal.request
            late = asked is not None and not renewal.released and agent.find_reply(worker, asked.row, asked.text)
            return "the worker has answered since" if late else ""
        case "resume_unanswered":
            prompt = renewal.reminder or renewal.resume
            answered = prompt is not None and agent.find_reply(worker, prompt.row, prompt.text)
            return "the new session has answered since" if answered else ""
        case reason if reason in WAITING_FOR_ROW:
            entered = None if renewal.released else renewal.delivery
            row = entered and agent.find_sent(worker, entered.text, after_row=entered.after_row)
            return "our text has arrived since" if row else ""
        case _:
            return ""


def remedy(worker: Worker, placed: Block) -> str:
    """What a human can do, in words."""
    state = "The worker is DOWN. " if placed.worker_down else ""
    return f"{state}Answer with `afresh answer {worker.worker_id} {'|'.join(placed.choices)}`."


def close(host: Host, worker: Worker, renewal: Renewal, end: End, why: str, *, is_up: bool = True) -> Renewal:
    """End *renewal* without a renewal. *is_up* is false where the worker is left down."""
    released = release(host, worker, renewal)
    closed = released.model_copy(update={"end": end, "end_reason": why, "block": None, "updated_at": host.now()})
    with host.ledger.transaction():
        closed = host.ledger.put(closed)
        if renewal.block is not None and end in (End.DISMISSED, End.HELD):
            _remember_dismissal(host, worker, renewal, renewal.block.reason)
    host.event(f"renewal.{end}", worker, renewal.renewal_id, why=why)
    reading = read_now(host, worker)
    if reading is not None and renewal.phase.reached(Phase.RESPAWNED):
        _count_generation(host, worker, renewal, reading)
    tell_closed(host, worker, renewal, reading, is_up=is_up)
    return closed


def _count_generation(host: Host, worker: Worker, renewal: Renewal, reading: ContextReading) -> None:
    """A new session runs although the renewal did not end as one: it counts as any other."""
    if renewal.running is not None and reading.session_id == renewal.running.old_session_id:
        return  # it resumed the old conversation
    now, record = host.now(), host.ledger.record(worker.worker_id)
    proof = renewal.acknowledgement
    host.ledger.remember(
        worker.worker_id,
        generation=renewal.generation + 1,
        session_id=reading.session_id,
        baseline=proof.baseline if proof else reading.tokens,
        baseline_session=reading.session_id,
        renewals=(*[at for at in record.renewals if now - at < timedelta(hours=1)], now),
        busy_since=None,
    )


def _remember_dismissal(host: Host, worker: Worker, renewal: Renewal, reason: str) -> None:
    """What a person closed is not opened again: the lasting facts that led to the block stay as they were."""
    session = renewal.resume.row.session_id if renewal.resume else renewal.reading and renewal.reading.session_id
    generation = renewal.generation + (1 if renewal.phase.reached(Phase.RESPAWNED) else 0)
    dismissed = Dismissed(reason=reason, session_id=session, generation=generation, at=host.now())
    others = [one for one in host.ledger.record(worker.worker_id).dismissed if one.reason != reason]
    host.ledger.remember(worker.worker_id, dismissed=(*others, dismissed))
    if reason == WeakResume.reason:
        host.ledger.remember(worker.worker_id, weak_resumes=0)  # a person has looked
