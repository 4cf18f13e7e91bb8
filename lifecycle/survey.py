"""Looking at workers: reading, pane, turn and the decision that follows, without touching anything."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from lifecycle.advice import accepts_work
from lifecycle.breaker import Breaker
from lifecycle.compression import judged
from lifecycle.contexts import contexts_of
from lifecycle.decision import Action, Decision, decide
from lifecycle.errors import ContextUnreadable, LaunchUnknown, LedgerError, LifecycleError, TerminalError
from lifecycle.host import Host
from lifecycle.incidents import tell_reboot, tell_server_gone
from lifecycle.launching import launch_of
from lifecycle.notifying import notify, tell_again
from lifecycle.panorama import panes_of
from lifecycle.parking import heed_accounts
from lifecycle.processes import Process, ProcessId
from lifecycle.reading import ContextReading, ContextState
from lifecycle.record import WorkerRecord
from lifecycle.screen import PaneLook, PaneState
from lifecycle.swarm import tell_swarm
from lifecycle.transcript import TurnState
from lifecycle.value import Value
from lifecycle.worker import Worker

log = logging.getLogger(__name__)

PASSING = ("wedged", "absent", "not_an_agent", "dialog", "unreadable", "unexamined")
"""Notices of conditions that a READY pane ends: the next occurrence is told anew."""

REMEMBERED = timedelta(hours=1)
"""How long a death counts for anything: longer than any rule looks back."""

THINNED = "thinning"
THINNED_EVERY = timedelta(hours=1)

WAITS_AS_BUSY = (
    PaneState.BUSY,
    PaneState.TYPED,
    PaneState.COPY_MODE,
    PaneState.COMPACTING,
    PaneState.STARTING,
    PaneState.UNKNOWN,
)

DOWN = (PaneState.ABSENT, PaneState.EXITED, PaneState.NOT_AN_AGENT)

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
    breaker: Breaker | None = None

    @property
    def is_parked(self) -> bool:
        until = self.record.parked_until
        return self.breaker is not None or (until is not None and until > self.at)

    @property
    def accepts_work(self) -> bool:
        return accepts_work(self.reading, self.record, self.worker.policy)

    @property
    def context_state(self) -> ContextState:
        return self.reading.state(self.worker.policy)


def examine(
    host: Host,
    worker: Worker,
    *,
    by_hand: bool = False,
    record: WorkerRecord | None = None,
    seen: tuple[PaneLook, Process | None] | None = None,
    reading: ContextReading | None = None,
    breakers: Sequence[Breaker] | None = None,
) -> Finding:
    """Look at one worker. Nothing is typed or written; what cannot be read is unknown, with the reason.

    *record*, *seen*, *reading* and *breakers* are what a look at many workers has read already: its memory, its pane
    with the agent, its context, and the breakers that are open.
    """
    now = host.now()
    pane, process = seen or _pane(host, worker)
    record = record or host.ledger.record(worker.worker_id)
    reading = reading or host.read(worker, process, overhead=record.overhead, known=record.last_good)
    worker = worker.model_copy(update={"policy": host.settings.policy_of(worker.worker_id, reading.model)})
    turn = _turn(host, worker, process, record.last_turn) if pane.state is not PaneState.ABSENT else None
    boot = host.boot_id()
    identity = process.identity if process else None
    record = counted(record, worker, reading, pane, turn, now, agent=identity, boot=boot)
    record = _knowing_launch(host, worker, process, record)
    agent, breaker = host.agent(worker), host.breaker(worker, breakers)
    # Asked of a busy one only: the answer stands in the profile's configuration.
    is_busy = pane.state is PaneState.BUSY
    queues = is_busy and pane.face is not None and agent.queues_while_busy(worker, pane.face)
    decision = decide(
        worker,
        reading,
        record,
        pane,
        turn,
        now,
        queues_while_busy=queues,
        by_hand=by_hand,
        assignment_open=worker.managed and host.mission(worker).has_open_assignment,
        rebooted=record.was_cut_off_before(boot),
        breaker=breaker,
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
        breaker=breaker,
    )


class Unexamined(Value):
    """A managed worker of which nothing can be said, and why; no other worker pays for that."""

    worker_id: str
    detail: str


class Survey(Value):
    """One look at many workers."""

    findings: tuple[Finding, ...]
    unexamined: tuple[Unexamined, ...] = ()


def survey(host: Host, workers: Iterable[Worker]) -> Survey:
    """Look at all *workers*, remember what was read, tell the swarm and send the notices that are due."""
    chosen = list(workers)
    found = _examine_all(host, chosen)
    seen = [(one.worker, one.pane, one.turn) for one in found.findings if one.worker.managed]
    if heed_accounts(host, seen):
        found = _examine_all(host, chosen)
    findings = found.findings
    with host.ledger.transaction():
        host.ledger.add_readings(finding.reading for finding in findings)
        host.ledger.remember_each({finding.worker_id: partial(_learned, finding) for finding in findings})
    _thin(host)
    gone = [finding for finding in findings if finding.pane.state is PaneState.ABSENT]
    told = tell_server_gone(host, [(found.worker, _key(found)) for found in gone if found.decision.notice == "absent"])
    tell_reboot(host, [finding.worker for finding in findings if finding.decision.action is Action.START])
    for finding in findings:
        _tell(host, finding, has_been_told=finding.worker_id in told)
    over = [finding.worker_id for finding in findings if _is_at_rest(finding)]
    host.ledger.forget_notices(*over, passing=PASSING)
    _tell_unexamined(host, chosen, found.unexamined)
    tell_again(host)
    return found


def _thin(host: Host) -> None:
    """Let go old readings and events, once an hour."""
    now, last = host.now(), host.ledger.stamped(THINNED)
    if last is None or now - last >= THINNED_EVERY:
        host.ledger.thin(now)
        host.ledger.stamp(THINNED, at=now)


def _examine_all(host: Host, workers: list[Worker]) -> Survey:
    findings, unexamined = [], []
    records = known_records(host, workers)
    panes, breakers = panes_of(host, workers), host.ledger.breakers(host.now())
    readings = contexts_of(host, workers, records, panes)
    for worker in workers:
        worker_id = worker.worker_id
        record, seen, reading = records.get(worker_id), panes.get(worker_id), readings.get(worker_id)
        try:
            findings.append(examine(host, worker, record=record, seen=seen, reading=reading, breakers=breakers))
        except LifecycleError as error:
            if worker.managed:
                unexamined.append(Unexamined(worker_id=worker.worker_id, detail=error.detail))
    return Survey(findings=tuple(findings), unexamined=tuple(unexamined))


def known_records(host: Host, workers: Sequence[Worker]) -> dict[str, WorkerRecord]:
    """The records in one go; none where one of them cannot be read, so that each is read by itself."""
    try:
        return host.ledger.records(worker.worker_id for worker in workers)
    except LedgerError:
        return {}


def _tell_unexamined(host: Host, workers: list[Worker], unexamined: tuple[Unexamined, ...]) -> None:
    by_id = {worker.worker_id: worker for worker in workers}
    for one in unexamined:
        log.error("%s: %s", one.worker_id, one.detail)
        notify(host, by_id[one.worker_id], f"unexamined:{one.detail}", "cannot be looked after", one.detail)


def _pane(host: Host, worker: Worker) -> tuple[PaneLook, Process | None]:
    if not worker.managed:
        return PaneLook(state=PaneState.UNKNOWN), None
    try:
        return host.look_with_process(worker)
    except TerminalError as error:
        return PaneLook(state=PaneState.UNKNOWN, unseen=error.detail), None


def _knowing_launch(host: Host, worker: Worker, process: Process | None, record: WorkerRecord) -> WorkerRecord:
    """With how its agent was started, once for each process: after a reboot no process is left to tell."""
    if process is None or not worker.managed or (record.launch is not None and record.agent == process.identity):
        return record
    try:
        return record.model_copy(update={"launch": launch_of(host, worker, process)})
    except LaunchUnknown:
        return record


def _turn(host: Host, worker: Worker, process: Process | None, known: TurnState | None) -> TurnState | None:
    try:
        return host.turn(worker, process, known=known)
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
    boot: str | None = None,
) -> WorkerRecord:
    """The record with this look counted in. Pure."""
    state = reading.state(worker.policy)
    is_unknown = state is ContextState.UNKNOWN
    is_idle = pane.state not in WAITS_AS_BUSY and not pane.background
    is_occupied = not is_idle or (turn is not None and (turn.delegating or turn.compacting))
    # A look that read nothing neither begins nor ends a run: a locked database frees no busy worker.
    busy_since = before.busy_since if is_unknown else (before.busy_since or now) if state in OVER else None
    changes: dict[str, object] = {
        "unknown_streak": before.unknown_streak + 1 if is_unknown else 0,
        "busy_since": busy_since if is_occupied else None,
    }
    mark = pane.stillness(turn.newest_row if turn else 0) if pane.state is PaneState.BUSY else ""
    same = mark and mark == before.still_mark
    changes |= {"still_mark": mark, "still_since": (before.still_since if same else now) if mark else None}
    if turn is not None:
        changes["last_turn"] = turn
    if not is_unknown:
        changes |= {"last_good": reading, "session_id": reading.session_id}
        changes["compression"] = judged(before.compression, reading, turn, now)
    if agent is not None:
        died = before.agent is not None and before.agent != agent and before.open_renewal is None
        recent = [at for at in before.deaths if now - at < REMEMBERED]
        changes |= {"last_alive_at": now, "agent": agent, "deaths": (*recent, now) if died else tuple(recent)}
        changes |= {"last_boot": boot or before.last_boot, "was_alive": True}
    elif pane.state in DOWN and before.last_boot == boot:
        # In another boot it stays as it was: that is how the reboot is told from an operator's exit.
        changes["was_alive"] = False
    return before.model_copy(update=changes)


_COUNTED = (
    "unknown_streak", "busy_since", "last_good", "last_turn", "session_id", "last_alive_at", "agent", "deaths",
    "last_boot", "was_alive", "launch", "still_mark", "still_since",
)  # fmt: skip


def _learned(finding: Finding, stored: WorkerRecord) -> dict[str, object]:
    """What the look changes in the record as it is *stored* now."""
    counted_in = {name: getattr(finding.record, name) for name in _COUNTED}
    seen, known = finding.record.compression, stored.compression
    if seen is not None and known is not None and seen.asked_at == known.asked_at and not known.is_judged:
        # Another process may have asked once more since this one looked.
        counted_in["compression"] = seen
    return counted_in


def _key(finding: Finding) -> str:
    # A second span of waiting in the same session is an occurrence of its own.
    span = finding.record.busy_since.isoformat() if finding.record.busy_since else ""
    return ":".join((finding.decision.notice or "", finding.reading.session_id or "", span))


def _is_at_rest(finding: Finding) -> bool:
    """Nothing is due and nothing is told: what notices of passing conditions said is over."""
    decision, is_ready = finding.decision, finding.pane.state is PaneState.READY
    return finding.worker.managed and is_ready and not decision.notice and decision.action is Action.NONE


def _tell(host: Host, finding: Finding, *, has_been_told: bool) -> None:
    worker, decision = finding.worker, finding.decision
    if not worker.managed:
        return
    if decision.notice and not has_been_told:
        notify(host, worker, _key(finding), decision.action.value, decision.reason)
    tell_swarm(
        host,
        worker,
        contextTokens=finding.reading.tokens,
        contextState=finding.context_state.value,
        acceptingWork=finding.accepts_work,
    )
