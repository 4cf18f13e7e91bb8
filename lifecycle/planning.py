"""What a renewal or a sweep would do about a worker now, without doing, sending or recording any of it."""

from __future__ import annotations

import os
from collections.abc import Iterable

from lifecycle.decision import Action
from lifecycle.errors import LifecycleError
from lifecycle.host import Host
from lifecycle.steps.detecting import decide_renewal
from lifecycle.survey import examine
from lifecycle.value import Value
from lifecycle.worker import Worker


class Plan(Value):
    """One action and why; *obstacle* is what would end it in a block at once, *error* why nothing can be planned."""

    worker_id: str
    generation: int
    action: Action
    reason: str
    obstacle: str = ""
    error: str = ""

    @property
    def words(self) -> str:
        return f"{self.reason}; it would block at once: {self.obstacle}" if self.obstacle else self.reason


def plan(host: Host, worker: Worker, *, by_hand: bool, forced: bool = False) -> Plan:
    """The plan for one worker. *by_hand* is an operator's consent, *forced* would also end a busy turn.

    Folders and disk are not tried, because trying them writes.
    """
    finding = examine(host, worker, by_hand=by_hand)
    record, action, reason = finding.record, finding.decision.action, finding.decision.reason
    if record.open_renewal is not None and record.open_renewal.block is None:
        action = Action.RENEW
        reason = f"renewal {record.open_renewal.renewal_id} goes on from {record.open_renewal.phase}"
    elif forced:
        chosen = decide_renewal(finding, forced=True, wanted=Action.RENEW)
        if chosen == "synthesize":
            action, reason = Action.RENEW, f"{reason}; --force: its turn is ended once a synthesized handoff is saved"
    obstacle = _obstacle(host, worker) if action is Action.RENEW and record.open_renewal is None else ""
    return Plan(
        worker_id=worker.worker_id, generation=record.generation, action=action, reason=reason, obstacle=obstacle
    )


def plans(host: Host, workers: Iterable[Worker]) -> list[Plan]:
    """What a sweep would do. A worker of which nothing can be said has a plan with the error; no other pays for it."""
    return [_plan_or_error(host, worker) for worker in workers]


def _plan_or_error(host: Host, worker: Worker) -> Plan:
    try:
        return plan(host, worker, by_hand=False)
    except LifecycleError as error:
        return Plan(
            worker_id=worker.worker_id, generation=0, action=Action.NONE, reason=error.detail, error=error.detail
        )


def _obstacle(host: Host, worker: Worker) -> str:
    """What is missing to start the worker again."""
    agent = host.agent(worker)
    wanted = {name: os.environ[name] for name in host.settings.pass_env if name in os.environ}
    try:
        launch = agent.launch_spec(worker, host.process(worker), wanted)
        return "; ".join(agent.preflight(worker, launch))
    except LifecycleError as error:
        return f"{error.reason}: {error.detail}"
