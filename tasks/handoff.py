"""Steps 1 to 4: until the handoff is saved, the worker is untouched."""

from __future__ import annotations

from datetime import datetime

from lifecycle.decision import Action
from lifecycle.host import Host
from lifecycle.renewal import HandoffRequest, OpenedRenewal, ParsedHandoff, SavedHandoff, Spared, Unasked
from lifecycle.steps import detecting, parsing, persisting, requesting
from lifecycle.worker import Worker
from tasks.retrying import step


@step("detect pressure of {worker.worker_id}")
def detect_context_pressure(
    host: Host,
    worker: Worker,
    *,
    forced: bool,
    by_hand: bool,
    why: str,
    flow_run_id: str,
    wanted: Action = Action.RENEW,
    asked_at: datetime | None = None,
) -> OpenedRenewal | Spared:
    return detecting.detect_context_pressure(
        host,
        worker,
        forced=forced,
        by_hand=by_hand,
        why=why,
        flow_run_id=flow_run_id,
        wanted=wanted,
        asked_at=asked_at,
    )


@step("request handoff of {worker.worker_id}")
def request_handoff(host: Host, worker: Worker, opened: OpenedRenewal) -> HandoffRequest | Unasked:
    return requesting.request_handoff(host, worker, opened)


@step("parse checkpoint of {worker.worker_id}", waits_for="handoff_answer")
def parse_checkpoint(host: Host, worker: Worker, asked: HandoffRequest | Unasked) -> ParsedHandoff:
    return parsing.parse_handoff(host, worker, asked)


@step("persist handoff of {worker.worker_id}")
def persist_handoff(host: Host, worker: Worker, parsed: ParsedHandoff) -> SavedHandoff:
    return persisting.persist_handoff(host, worker, parsed)
