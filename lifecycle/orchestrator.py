"""Telling the orchestrator of a renewal: in its own pane where it is idle, else in its inbox file.

The reference system types into the pane whatever it shows, and says it in the main chat where there is no pane. Here
the text is proved like any other, and what cannot be typed now is a line of a file. No renewal depends on either.
"""

from __future__ import annotations

import json
import logging
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Literal

from lifecycle import prompts
from lifecycle.case import JUST_TYPED
from lifecycle.delivery import deliver
from lifecycle.errors import LifecycleError, RenewalInProgress
from lifecycle.host import Host
from lifecycle.idle import is_idle
from lifecycle.lock import held
from lifecycle.memory_events import append_text
from lifecycle.parking import resting
from lifecycle.renewal import Renewal
from lifecycle.screen import PaneState
from lifecycle.swarm import tell_swarm
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker

log = logging.getLogger(__name__)

Occasion = Literal["requested", "renewed", "blocked"]

WITHIN = timedelta(seconds=5)
"""How long each wait of the delivery may take: the renewal that tells it stands still meanwhile."""


def tell_orchestrator(host: Host, worker: Worker, occasion: Occasion, renewal: Renewal) -> None:
    """Tell it once of this occasion. Never raises for what befalls it, and waits seconds at most."""
    try:
        orchestrator = orchestrator_of(host, worker)
        if orchestrator is not None and _is_first(host, worker, occasion, renewal):
            _tell(host, orchestrator, worker, occasion, renewal)
    except (LifecycleError, OSError) as error:
        log.warning("%s: the orchestrator is not told that it is %s: %s", worker.worker_id, occasion, error)


def orchestrator_of(host: Host, worker: Worker) -> Worker | None:
    """Whom *worker*'s mission names where that is a managed worker, else the one of the settings; never itself."""
    known = {one.worker_id: one for one in host.workers()}
    named = known.get(host.mission(worker).notify_session_key)
    chosen = named if named is not None and named.managed else known.get(host.settings.orchestrator)
    return chosen if chosen is not None and chosen.worker_id != worker.worker_id else None


def inbox_of(host: Host, orchestrator: Worker) -> Path:
    """Its JSON lines, in the form of the memory events. Whoever reads them takes them away."""
    return host.settings.memory_root / "memory" / "inbox" / "swarm" / f"{orchestrator.worker_id}.jsonl"


def _is_first(host: Host, worker: Worker, occasion: Occasion, renewal: Renewal) -> bool:
    at = f":{renewal.block.at:%Y%m%dT%H%M%S}" if renewal.block is not None else ""
    return host.ledger.is_first_notice(
        worker.worker_id, f"orchestrator:{occasion}:{renewal.renewal_id}{at}", at=host.now()
    )


def _tell(host: Host, orchestrator: Worker, worker: Worker, occasion: Occasion, renewal: Renewal) -> None:
    reason = renewal.block.reason if renewal.block is not None else ""
    handoff = renewal.saved.archive if renewal.saved is not None else None
    text = prompts.notice(
        occasion,
        worker_id=worker.worker_id,
        mission_id=renewal.mission_id,
        renewal_id=renewal.renewal_id,
        reason=reason,
        handoff=handoff,
    )
    hindrance = _typed(host, orchestrator, text)
    if hindrance:
        line = {
            "at": f"{host.now():%Y-%m-%dT%H:%M:%S}Z",
            "type": occasion,
            "workerId": worker.worker_id,
            "missionId": renewal.mission_id,
            "assignmentId": renewal.assignment_id,
            "summary": text,
            "event": {
                "renewalId": renewal.renewal_id,
                "reason": reason or None,
                "handoffPath": str(handoff) if handoff else None,
                "notTyped": hindrance,
            },
        }
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        append_text(host.paths(orchestrator), inbox_of(host, orchestrator), f"{text}\n")
    way = "inbox" if hindrance else "pane"
    host.event(
        "orchestrator.told",
        worker,
        renewal.renewal_id,
        orchestrator=orchestrator.worker_id,
        occasion=occasion,
        way=way,
        why=hindrance,
    )
    tell_swarm(host, worker, lastNotifiedAt=f"{host.now():%Y-%m-%dT%H:%M:%S}Z", lastOrchestratorSendOk=not hindrance)


def _typed(host: Host, orchestrator: Worker, text: str) -> str:
    """Type *text* where the orchestrator is idle; why it was not, or is not proved, else an empty string."""
    with ExitStack() as lock:
        try:
            wait_until(lambda: _is_ours(host, orchestrator, lock), WITHIN, host.clock)
            hindrance = _hindrance(host, orchestrator)
            if not hindrance:
                deliver(host.hurried(WITHIN), orchestrator, text, kind="notice", queued_for=WITHIN)
        except DeadlinePassed:
            return "a process is at work on it"
        except LifecycleError as error:
            return error.detail
    return hindrance


def _is_ours(host: Host, orchestrator: Worker, lock: ExitStack) -> bool:
    """Hold its lock, so that nothing else of Afresh's types there; two renewals that tell it take turns."""
    try:
        lock.enter_context(held(host.paths(orchestrator).lock, worker_id=orchestrator.worker_id))
    except RenewalInProgress:
        return False
    return True


def _hindrance(host: Host, orchestrator: Worker) -> str:
    if not orchestrator.managed:
        return "it is no managed worker; nothing is typed into its pane"
    record = host.ledger.record(orchestrator.worker_id)
    if record.is_held or record.open_renewal is not None or resting(host, orchestrator) is not None:
        return "it is held, parked or being renewed itself"
    look, process = host.look_with_process(orchestrator)
    if look.state is not PaneState.READY or not is_idle(look, host.turn(orchestrator, process)):
        return f"it is not idle ({look.state})"
    if look.was_typed_in_since(host.now(), JUST_TYPED):
        return "someone typed in its session in the last two minutes"
    return ""
