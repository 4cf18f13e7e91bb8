"""Step 3: the worker's answer, read from its database and weighed."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

from lifecycle import prompts
from lifecycle.checkpoint import Checkpoint, State, parse_checkpoint
from lifecycle.delivery import deliver
from lifecycle.draft import parse_draft, read_draft
from lifecycle.errors import AgentGone, CheckpointRefused, HandoffTimeout, NotDelivered
from lifecycle.failed_turn import TurnWatch
from lifecycle.gate import weigh
from lifecycle.host import Host
from lifecycle.input_line import GONE
from lifecycle.reboot import after_reboot
from lifecycle.renewal import HandoffRequest, ParsedHandoff, Phase, Quality, Renewal, Unasked
from lifecycle.steps.standing import advance, amend, remembering, standing
from lifecycle.synthesis import synthesize
from lifecycle.transcript import Reply
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.wording import own_words
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
    except (HandoffTimeout, AgentGone) as error:
        if worker.policy.on_missing_handoff != "synthesize":
            raise
        host.event("handoff.synthesized", worker, renewal.renewal_id, reason=error.reason, detail=error.detail)
        renewal = amend(host, standing(host, renewal.renewal_id), substitute="synthesize", delivery=None)
        return synthesize(host, worker, renewal)


def _answered(host: Host, worker: Worker, renewal: Renewal, asked: HandoffRequest) -> ParsedHandoff:
    if renewal.ask_again:
        unanswered = CheckpointRefused("it was not answered", worker_id=worker.worker_id, reason="unanswered")
        correction = _correct(host, worker, renewal, asked, unanswered)
        # Asked again because its provider failed, the worker has had no chance yet to answer badly.
        again = {"request": correction, "correction": None} if renewal.parks else {"correction": correction}
        renewal = amend(host, standing(host, renewal.renewal_id), **again, ask_again=False, delivery=None)
        asked = correction if renewal.parks else asked
    latest = renewal.correction or asked
    reply = _await_reply(host, worker, latest)
    try:
        return _weighed(host, worker, renewal, reply, asked.draft, is_last_try=renewal.correction is not None)
    except CheckpointRefused as refusal:
        if renewal.correction is not None:
            refusal.evidence = refusal.evidence or reply.text[-4000:]
            raise
        host.progress(worker.worker_id, f"asks once for a correction: {refusal.detail}")
        host.event("handoff.refused", worker, renewal.renewal_id, reason=refusal.reason, detail=refusal.detail)
        correction = _correct(host, worker, renewal, asked, refusal)
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
        return wait_until(probe, left, host.clock)
    except DeadlinePassed as error:
        msg = f"{worker.worker_id}: no answer to the handoff request within {limit.total_seconds():.0f} s"
        raise HandoffTimeout(msg, worker_id=worker.worker_id, evidence=host.look(worker).evidence()) from error


def _weighed(
    host: Host, worker: Worker, renewal: Renewal, reply: Reply, draft: Path, *, is_last_try: bool
) -> ParsedHandoff:
    checkpoint = parse_checkpoint(
        reply.text, renewal_id=renewal.renewal_id, worker_id=worker.worker_id, purpose="handoff"
    )
    text = read_draft(draft, worker_id=worker.worker_id)
    if text is not None:
        parse_draft(text, worker.worker_id, mission_id=renewal.mission_id, renewal_id=renewal.renewal_id)
    previous = _previous(host, worker, renewal)
    verdict = weigh(text, checkpoint, previous=previous)
    if verdict.complaints and not is_last_try:
        raise CheckpointRefused("; ".join(verdict.complaints), worker_id=worker.worker_id, reason="handoff_thin")
    return ParsedHandoff(
        renewal_id=renewal.renewal_id,
        checkpoint=checkpoint,
        reply_row=reply.row_id,
        answer=reply.text,
        session_id=reply.session_id,
        draft_text=text,
        quality=Quality.WRITTEN if text is not None else Quality.CHECKPOINT,
        notes=verdict.complaints,
        asks_human=verdict.asks_human,
        worked=_has_worked(host, worker),
    )


def _has_worked(host: Host, worker: Worker) -> bool:
    """Whether the ending session did anything but read handoffs and write its own."""
    process, paths = host.process(worker), host.paths(worker)
    calls = host.agent(worker).digest(worker, since=process.started_at if process else None).calls
    ours = (str(paths.handoffs), str(paths.archive))
    return any(not any(folder in call.arguments for folder in ours) for call in calls)


def _previous(host: Host, worker: Worker, renewal: Renewal) -> str | None:
    """The handoff before this one, if it belongs to the same mission."""
    for stored in host.ledger.handoffs_of(worker.worker_id):
        if stored.mission_id == renewal.mission_id and stored.quality is Quality.WRITTEN:
            return host.stored_text(stored)[0] or None
    return None


def _correct(
    host: Host, worker: Worker, renewal: Renewal, asked: HandoffRequest, refusal: CheckpointRefused
) -> HandoffRequest:
    if renewal.delivery is not None and renewal.delivery.kind == "correction":
        text = renewal.delivery.text
    else:
        write = partial(prompts.correction, renewal_id=renewal.renewal_id, draft=asked.draft, refusal=refusal)
        text = write(own_words=own_words(host, worker, write(own_words=False)))
    try:
        row = deliver(
            host,
            worker,
            text,
            kind="correction",
            intent=renewal.delivery,
            remember=remembering(host, renewal.renewal_id),
        )
    except NotDelivered as error:
        error.detail = f"{refusal.detail}; and the corrective request was not delivered: {error.detail}"
        raise
    return HandoffRequest(renewal_id=renewal.renewal_id, text=text, draft=asked.draft, row=row)
