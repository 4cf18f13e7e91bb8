"""What people and programs are told of a worker: one row, the same on the command line, in JSON and over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from lifecycle.advice import recommended_action
from lifecycle.billed import Billed
from lifecycle.breaker import Breaker
from lifecycle.contexts import contexts_of
from lifecycle.decision import Action, Decision
from lifecycle.errors import LedgerError, LifecycleError
from lifecycle.host import Host
from lifecycle.panorama import panes_of
from lifecycle.policy import Limits
from lifecycle.processes import Process
from lifecycle.reading import ContextReading
from lifecycle.record import WorkerRecord
from lifecycle.screen import PaneLook, PaneState
from lifecycle.survey import Finding, examine, known_records
from lifecycle.value import Value
from lifecycle.worker import Worker

LifecycleState = Literal["idle", "renewing", "blocked", "parked", "held", "absent"]


class BlockStatus(Value):
    """A block, as far as a row shows it."""

    reason: str
    detail: str
    phase: str
    at: datetime
    worker_down: bool
    choices: tuple[str, ...]


class LastGood(Value):
    """The newest reading of a worker whose context cannot be read now."""

    tokens: int
    read_at: datetime


class WorkerStatus(Value):
    """One worker now. *state* is one word for all: renewing or blocked, else the context state.

    *signal* says which figure is held against *policy*: `occupancy` (*tokens*) or `session_total`. *error* says why
    a context is unknown, *why* what comes next; *planned* is the next sweep's action in one word. *weak_resumes* counts
    renewals in a row whose new session took up something else than its handoff.
    """

    worker_id: str
    managed: bool
    automatic: bool
    agent: str
    session_id: str | None
    model: str | None
    context_window: int | None
    compaction_point: int | None
    tokens: int | None
    tokens_source: str
    session_total: int
    compactions: int
    context_state: str
    lifecycle_state: str
    state: str
    recommended_action: str
    accepting_work: bool
    policy: Limits
    signal: str
    last_activity_at: datetime | None
    last_handoff_at: datetime | None
    handoff_path: Path
    handoff_exists: bool
    pane_state: str
    block: BlockStatus | None
    phase: str | None
    renewal_id: str | None
    generation: int
    parked_until: datetime | None = None
    last_good: LastGood | None = None
    weak_resumes: int = 0
    read_at: datetime
    error: str | None
    why: str
    profile: Path
    planned: str = "none"
    title: str | None = None
    billed: Billed = Billed()


def status_of(host: Host, worker: Worker, record: WorkerRecord | None = None) -> WorkerStatus:
    """Look at *worker* and describe it. Nothing is written, nothing is typed."""
    return described(host, examine(host, worker, record=record))


def statuses(host: Host, workers: tuple[Worker, ...]) -> list[WorkerStatus]:
    """A row each. A worker of which nothing can be said has one with the `error`, and no other worker pays for it."""
    records, panes, breakers = known_records(host, workers), panes_of(host, workers), host.ledger.breakers(host.now())
    readings = contexts_of(host, workers, records, panes)
    return [
        _row(
            host,
            worker,
            records.get(worker.worker_id),
            panes.get(worker.worker_id),
            readings.get(worker.worker_id),
            breakers,
        )
        for worker in workers
    ]


def _row(
    host: Host,
    worker: Worker,
    record: WorkerRecord | None,
    seen: tuple[PaneLook, Process | None] | None,
    reading: ContextReading | None,
    breakers: Sequence[Breaker],
) -> WorkerStatus:
    try:
        return described(host, examine(host, worker, record=record, seen=seen, reading=reading, breakers=breakers))
    except LifecycleError as error:
        return described(host, _unexamined(host, worker, record, error.detail))


def _unexamined(host: Host, worker: Worker, record: WorkerRecord | None, why: str) -> Finding:
    """What is left to say of a worker that cannot be examined: its context and its pane are unknown."""
    now = host.now()
    if record is None:
        try:
            record = host.ledger.record(worker.worker_id)
        except LedgerError:
            record = WorkerRecord(worker_id=worker.worker_id)
    return Finding(
        worker_id=worker.worker_id,
        worker=worker,
        reading=ContextReading(worker_id=worker.worker_id, at=now, error=why),
        pane=PaneLook(state=PaneState.UNKNOWN),
        turn=None,
        record=record,
        decision=Decision(action=Action.NONE, reason=why),
        at=now,
    )


def described(host: Host, finding: Finding) -> WorkerStatus:
    worker, reading, record = finding.worker, finding.reading, finding.record
    renewal = record.open_renewal
    context = finding.context_state
    lifecycle = lifecycle_state(record, finding)
    shared = host.paths(worker).shared_latest
    placed = renewal.block if renewal else None
    return WorkerStatus(
        worker_id=worker.worker_id,
        managed=worker.managed,
        automatic=worker.managed and (worker.automatic if record.automatic is None else record.automatic),
        agent=worker.agent,
        session_id=reading.session_id,
        model=reading.model,
        context_window=reading.window,
        compaction_point=reading.compaction_point,
        tokens=reading.tokens,
        tokens_source=reading.source.value,
        session_total=reading.session_total,
        compactions=reading.compactions,
        context_state=context.value,
        lifecycle_state=lifecycle,
        state=lifecycle if lifecycle in ("renewing", "blocked") else context.value,
        recommended_action=recommended_action(context),
        accepting_work=finding.accepts_work,
        policy=reading.limits(worker.policy),
        signal=worker.policy.signal,
        last_activity_at=reading.last_activity_at,
        last_handoff_at=record.last_handoff_at,
        handoff_path=shared,
        handoff_exists=shared.exists(),
        pane_state=finding.pane.state.value,
        block=BlockStatus(
            reason=placed.reason,
            detail=placed.detail,
            phase=placed.phase.value,
            at=placed.at,
            worker_down=placed.worker_down,
            choices=placed.choices,
        )
        if placed
        else None,
        phase=renewal.phase.value if renewal else None,
        renewal_id=renewal.renewal_id if renewal else None,
        generation=record.generation,
        parked_until=_parked_until(finding),
        last_good=_last_good(finding),
        weak_resumes=record.weak_resumes,
        read_at=reading.at,
        error=reading.error,
        why=_why(finding),
        profile=worker.profile,
        planned=finding.decision.action.value,
        title=reading.title,
        billed=reading.billed,
    )


def _last_good(finding: Finding) -> LastGood | None:
    known = finding.record.last_good
    if finding.reading.error is None or known is None or known.tokens is None:
        return None
    return LastGood(tokens=known.tokens, read_at=known.at)


def _why(finding: Finding) -> str:
    reason, unseen = finding.decision.reason, finding.pane.unseen
    if finding.record.weak_resumes:
        reason = f"{reason}; its last resume was weak: it took up something else than its handoff"
    return reason if not unseen or unseen in reason else f"{reason}; its pane cannot be seen: {unseen}"


def _parked_until(finding: Finding) -> datetime | None:
    """None also where a lost login parks it: that ends at no known time."""
    if not finding.is_parked:
        return None
    return finding.breaker.until if finding.breaker is not None else finding.record.parked_until


def lifecycle_state(record: WorkerRecord, finding: Finding) -> LifecycleState:
    """The first that holds, most urgent first."""
    renewal = record.open_renewal
    if renewal is not None and renewal.block is not None:
        return "blocked"
    if record.is_held:
        return "held"
    if finding.is_parked:
        return "parked"
    if renewal is not None:
        return "renewing"
    return "absent" if finding.pane.state.value in ("absent", "exited", "not_an_agent") else "idle"
