"""At watch: a concise checkpoint is asked for, or the agent's own compaction started, once per session."""

from __future__ import annotations

from lifecycle import prompts
from lifecycle.commanding import type_command
from lifecycle.decision import Action
from lifecycle.delivery import deliver
from lifecycle.errors import NotDelivered
from lifecycle.host import Host
from lifecycle.screen import PaneState
from lifecycle.survey import examine
from lifecycle.value import Value
from lifecycle.waiting import DeadlinePassed, wait_until
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
    # Written first: asked twice would be worse than not at all.
    host.ledger.remember(worker.worker_id, checkpoint_asked_in=finding.reading.session_id)
    if action is Action.COMPRESS:
        compact(host, worker)
        host.event("compaction.requested", worker, tokens=finding.reading.tokens)
        return Asked(sent=True, reason=finding.decision.reason)
    limit = finding.reading.limits(finding.worker.policy).soft
    text = prompts.checkpoint_request(prompts.fullness(finding.reading, limit))
    deliver(host, worker, text, kind="checkpoint")
    host.event("checkpoint.requested", worker, tokens=finding.reading.tokens)
    return Asked(sent=True, reason=finding.decision.reason)


def compact(host: Host, worker: Worker) -> None:
    """Have the agent compact its own context; the proof is a pane that compacts, or a compaction that was counted.

    Raises:
        NotDelivered, Interfered, AgentGone
    """
    agent, command = host.agent(worker), host.agent(worker).compact_command()
    before = host.read(worker, host.process(worker)).compactions
    type_command(host, worker, command)

    def began() -> bool:
        state = host.look(worker).state
        return state is PaneState.COMPACTING or agent_compacted()

    def agent_compacted() -> bool:
        reading = agent.read_context(worker, since=None, now=host.now())
        return reading.compactions > before

    try:
        wait_until(began, host.settings.deadlines.delivery, host.clock)
    except DeadlinePassed as error:
        msg = f"{worker.worker_id}: typed {command}, and no compaction began"
        raise NotDelivered(msg, worker_id=worker.worker_id, evidence=host.look(worker).evidence()) from error
