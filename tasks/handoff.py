"""Steps 1 to 4: until the handoff is saved, the worker is untouched."""

from __future__ import annotations

from datetime import datetime

from prefect import task
from prefect.cache_policies import NO_CACHE

from lifecycle.decision import Action
from lifecycle.host import Host
from lifecycle.renewal import HandoffRequest, OpenedRenewal, ParsedHandoff, SavedHandoff, Spared, Unasked
from lifecycle.steps import detecting, parsing, persisting, requesting
from lifecycle.worker import Worker
from tasks.retrying import RETRIES, RETRY_DELAYS, is_passing


@task(
    task_run_name="detect pressure of {worker.worker_id}",
    retries=RETRIES,
    retry_delay_seconds=RETRY_DELAYS,
    retry_condition_fn=is_passing,
    cache_policy=NO_CACHE,
)
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


@task(
    task_run_name="request handoff of {worker.worker_id}",
    retries=RETRIES,
    retry_delay_seconds=RETRY_DELAYS,
    retry_condition_fn=is_passing,
    cache_policy=NO_CACHE,
)
def request_handoff(host: Host, worker: Worker, opened: OpenedRenewal) -> HandoffRequest | Unasked:
    return requesting.request_handoff(host, worker, opened)


@task(
    task_run_name="parse checkpoint of {worker.worker_id}",
    retries=RETRIES,
    retry_delay_seconds=RETRY_DELAYS,
    retry_condition_fn=is_passing,
    cache_policy=NO_CACHE,
)
def parse_checkpoint(host: Host, worker: Worker, asked: HandoffRequest | Unasked) -> ParsedHandoff:
    return parsing.parse_handoff(host, worker, asked)


@task(
    task_run_name="persist handoff of {worker.worker_id}",
    retries=RETRIES,
    retry_delay_seconds=RETRY_DELAYS,
    retry_condition_fn=is_passing,
    cache_policy=NO_CACHE,
)
def persist_handoff(host: Host, worker: Worker, parsed: ParsedHandoff) -> SavedHandoff:
    return persisting.persist_handoff(host, worker, parsed)
