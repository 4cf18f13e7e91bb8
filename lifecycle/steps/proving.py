"""Step 8: the new session has answered, and the worker is healthy."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from lifecycle import prompts
from lifecycle.checkpoint import Checkpoint, State, parse_checkpoint
from lifecycle.delivery import deliver
from lifecycle.errors import (
    AgentGone,
    BaselineTooLarge,
    CheckpointRefused,
    LifecycleError,
    ResumeRefused,
    ResumeUnanswered,
    WeakResume,
)
from lifecycle.failed_turn import TurnWatch
from lifecycle.host import Host
from lifecycle.input_line import GONE
from lifecycle.notifying import notify
from lifecycle.packing import resumption
from lifecycle.reading import ContextReading
from lifecycle.renewal import Acknowledgement, Phase, Renewal, Renewed, ResumeFit, ResumePrompt
from lifecycle.resume_fit import fit_of
from lifecycle.resumption import Resumption
from lifecycle.screen import PaneState
from lifecycle.steps.closing import close_renewed
from lifecycle.steps.standing import advance, amend, remembering, standing
from lifecycle.transcript import Reply
from lifecycle.waiting import UNCHANGED, DeadlinePassed, wait_until
from lifecycle.wording import own_words
from lifecycle.worker import Worker

REMIND_AFTER = timedelta(seconds=60)
"""A READY pane without an answer for this long is reminded, once."""


def mark_healthy(host: Host, worker: Worker, prompt: ResumePrompt) -> Renewed:
    """Wait for the new session's own checkpoint; only that makes the worker healthy.

    Raises:
        ResumeUnanswered, ResumeRefused, AgentGone
        ParksHere: the turn ended without an answer; the session is reminded when that is over.
        BaselineTooLarge: the fresh session starts above the soft limit.
    """
    renewal = standing(host, prompt.renewal_id)
    if not renewal.phase.reached(Phase.PROVED):
        proof = acknowledgement(host, worker, renewal, prompt)
        proofs: dict[str, object] = {"acknowledgement": proof, "delivery": None, "parks": 0}
        renewal = advance(host, worker, standing(host, renewal.renewal_id), Phase.PROVED, **proofs)
    if renewal.acknowledgement is None:
        msg = f"{worker.worker_id}: proved without an acknowledgement"
        raise ResumeUnanswered(msg, worker_id=worker.worker_id)
    _carry_on(host, worker, renewal, renewal.acknowledgement)
    return close_renewed(host, worker, renewal, renewal.acknowledgement)


def acknowledgement(host: Host, worker: Worker, renewal: Renewal, prompt: ResumePrompt) -> Acknowledgement:
    """The new session's checkpoint, after at most one reminder."""
    if renewal.weak_asked and renewal.reminder is None:
        # A human had it asked again: its first answer stands, and would be found again.
        return _reminded(host, worker, renewal, prompt)
    latest = renewal.reminder or prompt
    reply, refusal = _await_checkpoint(host, worker, renewal, latest, may_remind=renewal.reminder is None)
    if reply is None:
        return _reminded(host, worker, renewal, prompt)
    if isinstance(refusal, CheckpointRefused):
        kind = ResumeRefused if refusal.reason == "checkpoint_wrong_renewal" else ResumeUnanswered
        msg = f"{worker.worker_id}: the new session's answer is no checkpoint of this renewal: {refusal.detail}"
        raise kind(msg, worker_id=worker.worker_id, evidence=reply.text[-4000:])
    fit = _fit(host, worker, renewal, refusal, reply)
    reading = host.read(worker, host.process(worker))
    _check_baseline(worker, reading)
    return Acknowledgement(
        renewal_id=renewal.renewal_id,
        checkpoint=refusal,
        row=latest.row,
        reply_row=reply.row_id,
        session_id=reply.session_id,
        baseline=reading.tokens,
        fit=fit,
    )


def _reminded(host: Host, worker: Worker, renewal: Renewal, prompt: ResumePrompt) -> Acknowledgement:
    reminder = _remind(host, worker, renewal)
    renewal = amend(host, standing(host, renewal.renewal_id), reminder=reminder, delivery=None, ask_again=False)
    return acknowledgement(host, worker, renewal, prompt)


def _fit(host: Host, worker: Worker, renewal: Renewal, answer: Checkpoint, reply: Reply) -> ResumeFit | None:
    """Whether the answer fits the handoff; a second weak one in a row calls a human."""
    if renewal.parsed is None or renewal.saved is None:
        return None
    handoff = renewal.parsed.checkpoint
    fit = fit_of(answer, handoff, resumption=resumption(host, worker, renewal.saved))
    if fit.verdict == "weak" and host.ledger.record(worker.worker_id).weak_resumes:
        amend(host, standing(host, renewal.renewal_id), weak_asked=True, delivery=None)
        msg = f"{worker.worker_id}: for the second time in a row the new session took up {fit.why}"
        evidence = f"The handoff's next action: {handoff.next_action}\n\nThe answer:\n{reply.text[-3000:]}"
        raise WeakResume(msg, worker_id=worker.worker_id, evidence=evidence)
    return fit


def _await_checkpoint(
    host: Host, worker: Worker, renewal: Renewal, latest: ResumePrompt, *, may_remind: bool
) -> tuple[Reply | None, Checkpoint | CheckpointRefused]:
    """The reply with its checkpoint or refusal; no reply where it is time for the reminder."""
    agent, limit = host.agent(worker), host.settings.deadlines.resume_answer
    # A human who says "again" gives it the whole time anew.
    left = limit if renewal.ask_again else max(limit - (host.now() - latest.row.at), timedelta())
    quiet: list[float] = []
    watch = TurnWatch(host, worker)

    def probe() -> tuple[Reply | None, Checkpoint | CheckpointRefused] | None:
        look = host.look(worker)
        reply = agent.find_reply(worker, latest.row, latest.text)
        if look.state in GONE:
            said = "answered, and ended at once" if reply else "ended before it answered"
            msg = f"{worker.worker_id}: the new agent {said}"
            raise AgentGone(msg, worker_id=worker.worker_id, evidence=look.evidence())
        if reply is not None:
            read = _read(reply, renewal, worker)
            refused = isinstance(read, CheckpointRefused) and read.reason != "checkpoint_wrong_renewal"
            return (None, read) if refused and may_remind else (reply, read)
        host.progress(worker.worker_id, f"waits for the new session's answer ({look.state})")
        if look.state is not PaneState.READY:
            quiet.clear()
            return None
        quiet.append(host.clock.monotonic())
        if not renewal.ask_again:
            watch.see(look)
        late = renewal.ask_again or quiet[-1] - quiet[0] >= REMIND_AFTER.total_seconds()
        return (None, CheckpointRefused("no answer", worker_id=worker.worker_id)) if late and may_remind else None

    try:
        stamp = partial(agent.stamp, worker)
        return wait_until(probe, left, host.clock, UNCHANGED, stamp=stamp, at_once=False)
    except DeadlinePassed as error:
        msg = f"{worker.worker_id}: the new session did not answer within {limit.total_seconds():.0f} s"
        raise ResumeUnanswered(msg, worker_id=worker.worker_id, evidence=host.look(worker).evidence()) from error


def _read(reply: Reply, renewal: Renewal, worker: Worker) -> Checkpoint | CheckpointRefused:
    try:
        return parse_checkpoint(reply.text, renewal_id=renewal.renewal_id, worker_id=worker.worker_id, purpose="resume")
    except CheckpointRefused as refusal:
        return refusal


def _remind(host: Host, worker: Worker, renewal: Renewal) -> ResumePrompt:
    if renewal.saved is None:
        msg = f"{renewal.renewal_id} has no saved handoff"
        raise ResumeUnanswered(msg, worker_id=worker.worker_id)
    text = prompts.reminder(renewal_id=renewal.renewal_id, archive=renewal.saved.archive)
    row = deliver(
        host,
        worker,
        text,
        kind="reminder",
        intent=renewal.delivery,
        remember=remembering(host, renewal.renewal_id),
    )
    return ResumePrompt(renewal_id=renewal.renewal_id, row=row, text=text)


def _check_baseline(worker: Worker, reading: ContextReading) -> None:
    limits = reading.limits(worker.policy)
    soft, handoff = limits.soft, limits.handoff
    if reading.tokens is not None and reading.tokens >= handoff:
        msg = (
            f"{worker.worker_id}: the limits lie below what a fresh session starts with: {reading.tokens:,} tokens, "
            f"and its handoff limit is {handoff:,}; every new session would be renewed at once. Raise the limits"
        )
        raise BaselineTooLarge(msg, worker_id=worker.worker_id, reason="limits_below_floor")
    if reading.tokens is not None and reading.tokens >= soft:
        msg = (
            f"{worker.worker_id}: the fresh session starts with {reading.tokens:,} tokens, above its soft limit of "
            f"{soft:,}; a renewal cannot lower that. Trim what it loads at start, or raise the limits"
        )
        raise BaselineTooLarge(msg, worker_id=worker.worker_id)


def _carry_on(host: Host, worker: Worker, renewal: Renewal, proof: Acknowledgement) -> None:
    """Send the word to go on, where the worker is in the middle of an open mission and nobody must be asked."""
    if proof.checkpoint.state is not State.IN_PROGRESS or worker.policy.after_resume != "continue":
        return
    mission = host.mission(worker)
    must_wait = worker.greenlight_required_for or (mission.mission_id and not mission.is_open)
    if must_wait or renewal.saved is None or resumption(host, worker, renewal.saved) is not Resumption.GO_ON:
        return
    write = partial(prompts.carry_on, renewal_id=renewal.renewal_id, next_action=renewal.saved.next_action)
    text = write(own_words=own_words(host, worker, write(own_words=False)))
    try:
        deliver(
            host,
            worker,
            text,
            kind="continue",
            intent=renewal.delivery,
            remember=remembering(host, renewal.renewal_id),
        )
    except LifecycleError as error:
        # The worker is proved healthy; that it idles is for a human to know and no reason to block it.
        notify(host, worker, f"idle:{renewal.renewal_id}", "renewed, but not told to go on", error.detail)
