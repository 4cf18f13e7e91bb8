"""Step 2: the worker is asked for a handoff, with proof that the question arrived."""

from __future__ import annotations

import logging

from lifecycle import prompts
from lifecycle.case import may_queue
from lifecycle.delivery import deliver
from lifecycle.errors import NothingTyped, NotNow
from lifecycle.host import Host
from lifecycle.notifying import notify
from lifecycle.orchestrator import tell_orchestrator
from lifecycle.renewal import HandoffRequest, OpenedRenewal, Phase, Renewal, Unasked
from lifecycle.steps.standing import advance, amend, remembering, standing
from lifecycle.swarm import remember_in_swarm, tell_swarm
from lifecycle.worker import Worker


def request_handoff(host: Host, worker: Worker, opened: OpenedRenewal) -> HandoffRequest | Unasked:
    """Ask once, or say that nobody needs to be asked.

    Raises:
        NotNow: the input line took no text; nothing was typed.
        NotDelivered, BusyTooLong, Interfered, AgentGone, TextNotSendable
    """
    renewal = standing(host, opened.renewal_id)
    if renewal.phase.reached(Phase.REQUESTED):
        return renewal.request or _unasked(renewal)
    if renewal.substitute is not None:
        advance(host, worker, renewal, Phase.REQUESTED)
        return _unasked(renewal)
    draft = host.paths(worker).draft(renewal.renewal_id)
    draft.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = _text(host, worker, renewal)
    try:
        row = deliver(
            host,
            worker,
            text,
            kind="handoff",
            intent=renewal.delivery,
            remember=remembering(host, renewal.renewal_id),
            while_busy=_may_queue(host, worker, renewal),
        )
    except NothingTyped as error:
        if renewal.delivery is not None:
            raise  # an earlier run may have typed it
        amend(host, standing(host, renewal.renewal_id), delivery=None)
        raise NotNow(error.detail, worker_id=worker.worker_id, evidence=error.evidence) from error
    asked = HandoffRequest(renewal_id=renewal.renewal_id, text=text, draft=draft, row=row)
    advance(host, worker, standing(host, renewal.renewal_id), Phase.REQUESTED, request=asked, delivery=None)
    remember_in_swarm(
        host,
        worker,
        renewal,
        "handoff-requested",
        f"Handoff requested: {renewal.why}",
        sharedHandoffPath=str(host.paths(worker).shared_latest),
        localHandoffPath=str(draft),
        ok=True,
    )
    tell_swarm(host, worker, acceptingWork=False)
    notify(host, worker, f"requested:{renewal.renewal_id}", "asked for a handoff", renewal.why, level=logging.INFO)
    tell_orchestrator(host, worker, "requested", renewal)
    return asked


def _may_queue(host: Host, worker: Worker, renewal: Renewal) -> bool:
    """The same as for the decision that led here. A forced renewal ends a turn, and waits behind none."""
    if renewal.forced:
        return False
    face = host.look(worker).face
    queues = face is not None and host.agent(worker).queues_while_busy(worker, face)
    return may_queue(renewal.reading, worker.policy, queues=queues, by_hand=renewal.by_hand)


def _text(host: Host, worker: Worker, renewal: Renewal) -> str:
    if renewal.delivery is not None and renewal.delivery.kind == "handoff":
        return renewal.delivery.text
    reading = renewal.reading
    limit = reading.limits(worker.policy).handoff if reading else 0
    return prompts.handoff_request(
        worker_id=worker.worker_id,
        mission_id=renewal.mission_id,
        renewal_id=renewal.renewal_id,
        draft=host.paths(worker).draft(renewal.renewal_id),
        full=prompts.fullness(reading, limit) if reading else "full",
        now=host.now(),
    )


def _unasked(renewal: Renewal) -> Unasked:
    return Unasked(renewal_id=renewal.renewal_id, why=f"handoff by {renewal.substitute}")
