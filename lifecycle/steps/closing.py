"""The end of step 8: the renewal is closed as renewed."""

from __future__ import annotations

import logging
from datetime import timedelta

from lifecycle.advice import accepts_work
from lifecycle.checkpoint import State
from lifecycle.host import Host
from lifecycle.notifying import notify
from lifecycle.orchestrator import tell_orchestrator
from lifecycle.packing import resumption
from lifecycle.renewal import Acknowledgement, End, Renewal, Renewed
from lifecycle.resumption import Resumption
from lifecycle.steps.standing import amend
from lifecycle.swarm import remember_in_swarm, tell_swarm
from lifecycle.worker import Worker


def close_renewed(host: Host, worker: Worker, renewal: Renewal, proof: Acknowledgement) -> Renewed:
    """Write that the worker is renewed, and tell ledger, swarm and people."""
    now = host.now()
    record = host.ledger.record(worker.worker_id)
    same = renewal.saved is not None and record.next_action == renewal.saved.next_action
    is_weak = proof.fit is not None and proof.fit.verdict == "weak"
    process = host.process(worker)
    reading = host.read(worker, process)
    overhead = host.agent(worker).overhead(worker, since=process.started_at) if process else None
    with host.ledger.transaction():
        closed = amend(host, host.ledger.renewal(renewal.renewal_id), end=End.RENEWED, delivery=None)
        remembered = host.ledger.remember(
            worker.worker_id,
            generation=renewal.generation + 1,
            session_id=proof.session_id,
            baseline=proof.baseline,
            baseline_session=proof.session_id,
            cooldown_until=now + worker.policy.cooldown,
            renewals=(*[at for at in record.renewals if now - at < timedelta(hours=1)], now),
            next_action=renewal.saved.next_action if renewal.saved else "",
            repeats=record.repeats + 1 if same else 0,
            idle_repeats=record.idle_repeats + 1 if same and not (renewal.saved and renewal.saved.worked) else 0,
            busy_since=None,
            weak_resumes=record.weak_resumes + 1 if is_weak else 0,
            overhead=overhead if overhead is not None else record.overhead,
        )
        host.event("renewal.renewed", worker, renewal.renewal_id, session=proof.session_id, baseline=proof.baseline)
        if is_weak and proof.fit is not None:
            host.event("resume.weak", worker, renewal.renewal_id, why=proof.fit.why)
    state = _state(host, worker, renewal, proof)
    tell_swarm(
        host,
        worker,
        state=state.runtime_state,
        phase=state.checkpoint_status,
        checkpointStatus=state.checkpoint_status,
        nextAction=proof.checkpoint.next_action,
        blockedReason=None,
        needsHuman=state is State.NEEDS_INPUT,
        sessionId=proof.session_id,
        contextTokens=reading.tokens,
        contextState=reading.state(worker.policy).value,
        acceptingWork=accepts_work(reading, remembered, worker.policy),
    )
    handoff = str(renewal.saved.archive) if renewal.saved else None
    remember_in_swarm(
        host,
        worker,
        renewal,
        "resume",
        f"Resumed as generation {renewal.generation + 1}",
        handoffPath=handoff,
        started=True,
        resumeSent=True,
    )
    _tell_people(host, worker, renewal, proof)
    answered = f"generation {renewal.generation + 1} answered"
    notify(host, worker, f"renewed:{renewal.renewal_id}", "renewed", answered, level=logging.INFO)
    tell_orchestrator(host, worker, "renewed", closed)
    return Renewed(renewal=closed)


def _state(host: Host, worker: Worker, renewal: Renewal, proof: Acknowledgement) -> State:
    """What the worker says of itself; one whose question to a person is open needs that answer, whatever it says."""
    said = proof.checkpoint.state
    waits = renewal.saved is not None and resumption(host, worker, renewal.saved) is Resumption.ANSWER
    return State.NEEDS_INPUT if waits and said is State.IN_PROGRESS else said


def _tell_people(host: Host, worker: Worker, renewal: Renewal, proof: Acknowledgement) -> None:
    if proof.fit is not None and proof.fit.verdict == "weak":
        told = f"{proof.fit.why}. Look at what it does; a second weak resume in a row blocks"
        notify(host, worker, f"weak:{renewal.renewal_id}", "renewed, but it may have lost the thread", told)
    if _state(host, worker, renewal, proof) is State.NEEDS_INPUT:
        asked = renewal.saved.next_action if renewal.saved is not None else proof.checkpoint.next_action
        notify(host, worker, f"asks:{renewal.renewal_id}", "waits for a person's answer", asked)
