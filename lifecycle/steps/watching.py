"""At watch: a concise checkpoint is asked for once per session, or the agent is told to compact its own context."""

from __future__ import annotations

from lifecycle import prompts
from lifecycle.decision import Action
from lifecycle.delivery import deliver
from lifecycle.host import Host
from lifecycle.steps.compressing import compress
from lifecycle.survey import examine
from lifecycle.value import Value
from lifecycle.worker import Worker


class Asked(Value):
    """Whether the worker was asked, and why or why not."""

    sent: bool
    reason: str


def ask_for_checkpoint(host: Host, worker: Worker, *, by_hand: bool) -> Asked:
    """Ask, if the worker is idle. A sweep asks only where the decision still says so; *by_hand* needs no pressure,
    and passes neither a hold nor an open renewal.

    Raises:
        NotDelivered, Interfered, AgentGone
    """
    finding = examine(host, worker, by_hand=by_hand)
    action = finding.decision.action
    if action not in ((Action.RENEW,) if by_hand else (Action.CHECKPOINT, Action.COMPRESS)):
        return Asked(sent=False, reason=finding.decision.reason)
    if action is Action.COMPRESS:
        compress(host, finding)
        return Asked(sent=True, reason=finding.decision.reason)
    # Written first: asked twice would be worse than not at all.
    host.ledger.remember(worker.worker_id, checkpoint_asked_in=finding.reading.session_id)
    limit = finding.reading.limits(finding.worker.policy).soft
    text = prompts.checkpoint_request(prompts.fullness(finding.reading, limit))
    deliver(host, worker, text, kind="checkpoint")
    host.event("checkpoint.requested", worker, tokens=finding.reading.tokens)
    return Asked(sent=True, reason=finding.decision.reason)
