"""Step 3: the worker's answer, read from its database and weighed."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from lifecycle.checkpoint import Checkpoint, State, parse_checkpoint
from lifecycle.errors import AgentGone, CheckpointRefused, HandoffTimeout
from lifecycle.failed_turn import TurnWatch
from lifecycle.host import Host
from lifecycle.idle import process_at_rest
from lifecycle.input_line import GONE
from lifecycle.reboot import after_reboot
from lifecycle.renewal import HandoffRequest, ParsedHandoff, Phase, Quality, Renewal, Unasked
from lifecycle.steps.standing import advance, amend, standing
from lifecycle.steps.weighing import correct, weighed
from lifecycle.synthesis import synthesize
from lifecycle.transcript import Reply
from lifecycle.waiting import UNCHANGED, DeadlinePassed, wait_until
from lifecycle.worker import Worker

GIVEN = Checkpoint(
    state=State.HANDOFF,
    files_changed="see the document",
    commands_run="see the document",
    result="see the document",
    blocker="none",
    next_action="Read the document again, confirm where the work stands, then wait for orders.",
)
"""What stands for a checkpoint where a human's text has none. Nothing is invented."""


def parse_handoff(host: Host, worker: Worker, asked: HandoffRequest | Unasked) -> ParsedHandoff:
    """Wait for the answer to our row and accept it, after at most one corrective request.

    Raises:
        CheckpointRefused: the answer, and its correction, cannot be used.
        HandoffTimeout: no answer in time.
        ParksHere: the turn ended without one; the worker is asked again when that is over.
        AgentGone: the agent ended before it answered.
    """
    renewal = standing(host, asked.renewal_id)
    if renewal.phase.reached(Phase.PARSED) and renewal.parsed is not None:
        return renewal.parsed
    if isinstance(asked, Unasked) or renewal.substitute is not None:
        parsed = _given(host, worker, renewal)
    else:
        parsed = _answered_or_synthesized(host, worker, renewal, asked)
    advance(host, worker, standing(host, renewal.renewal_id), Phase.PARSED, parsed=parsed, delivery=None, parks=0)
    return parsed


def _given(host: Host, worker: Worker, renewal: Renewal) -> ParsedHandoff:
    if renewal.substitute == "text" and renewal.given_text is not None:
        try:
            checkpoint = parse_checkpoint(renewal.given_text, worker_id=worker.worker_id)
        except CheckpointRefused:
            checkpoint = GIVEN
        return ParsedHandoff(
            renewal_id=renewal.renewal_id,
            checkpoint=checkpoint,
            reply_row=0,
            session_id=renewal.reading.session_id or "" if renewal.reading else "",
            draft_text=renewal.given_text,
            quality=Quality.WRITTEN,
            notes=("The text was given by a human.",),
        )
    return after_reboot(host, worker, renewal) if renewal.substitute == "reboot" else synthesize(host, worker, renewal)


def _answered_or_synthesized(host: Host, worker: Worker, renewal: Renewal, asked: HandoffRequest) -> ParsedHandoff:
    """The worker's answer; without one the transcript's, where a written policy says so."""
    try:
        return _answered(host, worker, renewal, asked)
    except (HandoffTimeout, AgentGone, CheckpointRefused) as error:
        if worker.policy.on_missing_handoff != "synthesize":
            raise
        host.event("handoff.synthesized", worker, renewal.renewal_id, reason=error.reason, detail=error.detail)
        renewal = amend(host, standing(host, renewal.renewal_id), substitute="synthesize", delivery=None)
        return synthesize(host, worker, renewal)


def _answered(host: Host, worker: Worker, renewal: Renewal, asked: HandoffRequest) -> ParsedHandoff:
    if renewal.ask_again:
        unanswered = CheckpointRefused("it was not answered", worker_id=worker.worker_id, reason="unanswered")
        correction = correct(host, worker, renewal, asked, unanswered)
        # Asked again because its provider failed, the worker has had no chance yet to answer badly.
        again = {"request": correction, "correction": None} if renewal.parks else {"correction": correction}
        renewal = amend(host, standing(host, renewal.renewal_id), **again, ask_again=False, delivery=None)
        asked = correction if renewal.parks else asked
    latest = renewal.correction or asked
    reply = _await_reply(host, worker, latest)
    # From here on it is seen whether the worker rests, so that the stop need not begin to look then.
    process_at_rest(host, worker)
    try:
        return weighed(host, worker, renewal, reply, asked, is_last_try=renewal.correction is not None)
    except CheckpointRefused as refusal:
        if renewal.correction is not None:
            refusal.evidence = refusal.evidence or reply.text[-4000:]
            raise
        host.progress(worker.worker_id, f"asks once for a correction: {refusal.detail}")
        host.event("handoff.refused", worker, renewal.renewal_id, reason=refusal.reason, detail=refusal.detail)
        correction = correct(host, worker, renewal, asked, refusal)
        renewal = amend(host, standing(host, renewal.renewal_id), correction=correction, delivery=None)
        return _answered(host, worker, renewal, asked)


def _await_reply(host: Host, worker: Worker, asked: HandoffRequest) -> Reply:
    agent, limit = host.agent(worker), host.settings.deadlines.handoff_answer
    left = max(limit - (host.now() - asked.row.at), timedelta())
    watch = TurnWatch(host, worker)

    def probe() -> Reply | None:
        reply = agent.find_reply(worker, asked.row, asked.text)
        if reply is None:
            look = host.look(worker)
            if look.state in GONE:
                msg = f"{worker.worker_id}: the agent ended before it answered the handoff request"
                raise AgentGone(msg, worker_id=worker.worker_id, evidence=look.evidence())
            host.progress(worker.worker_id, f"waits for the handoff ({look.state})")
            watch.see(look)
        return reply

    try:
        stamp = partial(agent.stamp, worker)
        return wait_until(probe, left, host.clock, UNCHANGED, stamp=stamp, at_once=False)
    except DeadlinePassed as error:
        msg = f"{worker.worker_id}: no answer to the handoff request within {limit.total_seconds():.0f} s"
        raise HandoffTimeout(msg, worker_id=worker.worker_id, evidence=host.look(worker).evidence()) from error
