"""Looking at workers: reading, pane, turn and the decision that follows, without touching anything."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from lifecycle.decision import Action, Decision, accepts_work, decide
from lifecycle.errors import ContextUnreadable, TerminalError
from lifecycle.host import Host
from lifecycle.notifying import notify
from lifecycle.processes import Process, ProcessId
from lifecycle.reading import ContextReading, ContextState
from lifecycle.record import WorkerRecord
from lifecycle.screen import PaneLook, PaneState
from lifecycle.swarm import tell_swarm
from lifecycle.transcript import TurnState
from lifecycle.value import Value
from lifecycle.worker import Worker

log = logging.getLogger(__name__)

PASSING = ("absent", "not_an_agent", "dialog", "unreadable")
"""Notices of conditions that a READY pane ends: the next occurrence is told anew."""

REMEMBERED = timedelta(hours=1)
"""How long a death counts for anything: longer than any rule looks back."""

WAITS_AS_BUSY = (
    PaneState.BUSY,
    PaneState.TYPED,
    PaneState.COPY_MODE,
    PaneState.COMPACTING,
    PaneState.STARTING,
    PaneState.UNKNOWN,
)

OVER = (ContextState.HANDOFF_REQUIRED, ContextState.RENEW_REQUIRED)


class Finding(Value):
    """All that one look at a worker found."""

    worker_id: str
    worker: Worker
    reading: ContextReading
    pane: PaneLook
    turn: TurnState | None
    record: WorkerRecord
    decision: Decision
    at: datetime

    @property
    def accepts_work(self) -> bool:
        return accepts_work(self.reading, self.record, self.worker.policy)

    @property
    def context_state(self) -> ContextState:
        return self.reading.state(self.worker.policy)


def examine(host: Host, worker: Worker, *, by_hand: bool = False, record: WorkerRecord | None = None) -> Finding:
    """Look at one worker. Nothing is typed or written; what cannot be read is unknown, with the reason."""
    now = host.now()
    pane, process = _pane(host, worker)
    record = record or host.ledger.record(worker.worker_id)
    reading = host.read(worker, process, overhead=record.overhead)
    worker = worker.model_copy(update={"policy": host.settings.policy_of(worker.worker_id, reading.model)})
    turn = _turn(host, worker, process) if pane.state is not PaneState.ABSENT else None
    record = counted(record, worker, reading, pane, turn, now, agent=process.identity if process else None)
    agent = host.agent(worker)
    queues = pane.face is not None and agent.queues_while_busy(worker, pane.face)
    decision = decide(
        worker,
        reading,
        record,
        pane,
        turn,
        now,
        queues_while_busy=queues,
        forced=by_hand,
        assignment_open=worker.managed and host.mission(worker).has_open_assignment,
    )
    return Finding(
        worker_id=worker.worker_id,
        worker=worker,
        reading=reading,
        pane=pane,
        turn=turn,
        record=record,
        decision=decision,
        at=now,
    )


def survey(host: Host, workers: Iterable[Worker]) -> list[Finding]:
    """Look at all *workers*, remember what was read, tell the swarm and send the notices that are due."""
    chosen = list(workers)
    records = host.ledger.records(worker.worker_id for worker in chosen)
    findings = [examine(host, worker, record=records[worker.worker_id]) for worker in chosen]
    with host.ledger.transaction():
        host.ledger.add_readings(finding.reading for finding in findings)
        for finding in findings:
            _remember(host, finding)
    for finding in findings:
        _tell(host, finding)
    return findings


def _pane(host: Host, worker: Worker) -> tuple[PaneLook, Process | None]:
    if not worker.managed:
        return PaneLook(state=PaneState.UNKNOWN), None
    try:
        return host.look_with_process(worker)
    except TerminalError as error:
        return PaneLook(state=PaneState.UNKNOWN, dialog=error.detail), None


def _turn(host: Host, worker: Worker, process: Process | None) -> TurnState | None:
    try:
        return host.turn(worker, process)
    except ContextUnreadable:
        return None


def counted(
    before: WorkerRecord,
    worker: Worker,
    reading: ContextReading,
    pane: PaneLook,
    turn: TurnState | None,
    now: datetime,
    *,
    agent: ProcessId | None = None,
) -> WorkerRecord:
    """The record with this look counted in. Pure."""
    state = reading.state(worker.policy)
    is_unknown = state is ContextState.UNKNOWN
    is_idle = pane.state not in WAITS_AS_BUSY and not pane.background
    is_busy_over = state in OVER and not (is_idle and not (turn and (turn.delegating or turn.compacting)))
    changes: dict[str, object] = {
        "unknown_streak": before.unknown_streak + 1 if is_unknown else 0,
        "busy_since": (before.busy_since or now) if is_busy_over else None,
    }
    if not is_unknown:
        changes |= {"last_good": reading, "session_id": reading.session_id}
    if agent is not None:
        died = before.agent is not None and before.agent != agent and before.open_renewal is None
        recent = [at for at in before.deaths if now - at < REMEMBERED]
        changes |= {"last_alive_at": now, "agent": agent, "deaths": (*recent, now) if died else tuple(recent)}
    return before.model_copy(update=changes)


_COUNTED = ("unknown_streak", "busy_since", "last_good", "session_id", "last_alive_at", "agent", "deaths")


def _remember(host: Host, finding: Finding) -> None:
    counted_in = {name: getattr(finding.record, name) for name in _COUNTED}
    host.ledger.remember(finding.worker_id, **counted_in, last_boot=host.boot_id())


def _tell(host: Host, finding: Finding) -> None:
    worker, decision = finding.worker, finding.decision
    if not worker.managed:
        return
    if decision.notice:
        # A second span of waiting in the same session is an occurrence of its own.
        span = finding.record.busy_since.isoformat() if finding.record.busy_since else ""
        key = ":".join((decision.notice, finding.reading.session_id or "", span))
        notify(host, worker, key, decision.action.value, decision.reason)
    elif finding.pane.state is PaneState.READY and decision.action is Action.NONE:
        host.ledger.forget_notices(worker.worker_id, passing=PASSING)
    tell_swarm(
        host,
        worker,
        contextTokens=finding.reading.tokens,
        contextState=finding.context_state.value,
        acceptingWork=finding.accepts_work,
    )
