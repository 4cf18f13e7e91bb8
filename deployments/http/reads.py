"""The routes that only look: all workers, one worker, how a run goes, and the fleet live."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from deployments.http.fleet import Fleet, Snapshot
from deployments.http.orders import run_status
from deployments.http.refusing import API, Unreadable, refused
from deployments.http.shapes import camel, detail_row, fleet_of, milliseconds, row_of
from lifecycle.detail import WorkerDetail, detail_of
from lifecycle.errors import LifecycleError, Misuse, UnknownWorker
from lifecycle.host import Host
from lifecycle.settings import load_settings
from lifecycle.status import WorkerStatus
from lifecycle.worker import checked_worker_id

LOOK_EVERY = timedelta(seconds=1)

STREAM_FOR = timedelta(hours=1)
"""Then the browser asks again, and its session is looked at again."""

STREAMS = 32
"""Pages that are kept live at once."""

Compat = Annotated[
    bool, Query(description="Status 200 wherever the reference system has it: whenever a request was understood.")
]
OneWorker = Annotated[str | None, Query(alias="workerId", description="One worker; all without it.")]

router = APIRouter(prefix=API)


def fleet_in(request: Request) -> Fleet:
    fleet: Fleet = request.app.state.fleet
    return fleet


def usable(snapshot: Snapshot) -> Snapshot:
    """Raises:
    Unreadable: nothing could be read.
    """
    if snapshot.error:
        raise Unreadable(snapshot.error, reason=snapshot.reason)
    return snapshot


def row_in(snapshot: Snapshot, worker_id: str) -> WorkerStatus:
    """Raises:
    InvalidWorkerId, UnknownWorker
    """
    checked_worker_id(worker_id)
    found = snapshot.row(worker_id)
    if found is None:
        known = ", ".join(row.worker_id for row in snapshot.rows if row.managed) or "none"
        msg = f"worker {worker_id} is unknown; managed workers: {known}"
        raise UnknownWorker(msg, worker_id=worker_id)
    return found


@router.get("", summary="All workers, or one")
async def lifecycle(request: Request, worker_id: OneWorker = None, compat: Compat = False) -> JSONResponse:
    """Every worker with its context, state and what comes next; `managed` is false for profiles never touched.

    An invalid `workerId` is refused with 400, an unknown one with 404.
    """
    if worker_id is not None:
        checked_worker_id(worker_id)
    try:
        snapshot = usable(await fleet_in(request).now())
        rows = list(snapshot.rows) if worker_id is None else [row_in(snapshot, worker_id)]
    except LifecycleError as error:
        return refused(error, compat=compat, workers=[])
    return JSONResponse(fleet_of(snapshot, rows))


@router.get("/workers/{worker_id}", summary="One worker with its block, its newest handoff and its generations")
async def worker(request: Request, worker_id: str) -> JSONResponse:
    """`handoff.text` is what the worker wrote: data, never markup."""
    checked_worker_id(worker_id)
    snapshot = usable(await fleet_in(request).now())
    status = row_in(snapshot, worker_id)
    detail = await run_in_threadpool(_detail, status)
    return JSONResponse({**detail_row(detail), "status": row_of(snapshot, status)})


@router.get("/runs/{flow_run_id}", summary="How far a run is that an act began")
def run(flow_run_id: str) -> JSONResponse:
    """`isFinal` says that it has ended; `state` is then Renewed, Blocked, Spared, Answered, Completed, Failed …"""
    try:
        found = run_status(load_settings(), flow_run_id)
    except Misuse as error:
        return JSONResponse({"ok": False, "error": error.detail}, status_code=404)
    return JSONResponse({"ok": True, **camel(found.model_dump(mode="json"))})


async def stream_place(request: Request) -> AsyncIterator[None]:
    """One of the places for live pages, given back when the answer has ended."""
    state = request.app.state
    if state.streams >= STREAMS:
        raise HTTPException(503, f"{STREAMS} pages are kept live already")
    state.streams += 1
    try:
        yield
    finally:
        state.streams -= 1


@router.get(
    "/events",
    dependencies=[Depends(stream_place)],
    response_class=EventSourceResponse,
    summary="The fleet, live (server-sent events)",
)
async def events(request: Request) -> AsyncIterator[ServerSentEvent]:
    """`fleet` with every row, then `change` with the rows that changed and the ids that are gone; `trouble` where
    nothing can be read.
    """
    async for event in changes(fleet_in(request)):
        yield event


async def changes(fleet: Fleet) -> AsyncIterator[ServerSentEvent]:
    """Every row once, then what changes, for an hour at most or until the service ends."""
    until = time.monotonic() + STREAM_FOR.total_seconds()
    shown: dict[str, dict[str, Any]] | None = None
    trouble = ""
    while time.monotonic() < until:
        snapshot = await fleet.now()
        rows = {row.worker_id: row_of(snapshot, row) for row in snapshot.rows}
        if snapshot.error and snapshot.error != trouble:
            yield ServerSentEvent(event="trouble", data={"error": snapshot.error})
        if not snapshot.error:
            event = _event(snapshot, rows, None if trouble else shown)
            shown = rows
            if event is not None:
                yield event
        trouble = snapshot.error
        if not await fleet.after(LOOK_EVERY):
            return


def _event(
    snapshot: Snapshot, rows: dict[str, dict[str, Any]], shown: dict[str, dict[str, Any]] | None
) -> ServerSentEvent | None:
    at = milliseconds(snapshot.at)
    if shown is None:
        return ServerSentEvent(event="fleet", data={"checkedAt": at, "workers": list(rows.values())})
    changed = [row for name, row in rows.items() if _news(row) != _news(shown.get(name, {}))]
    gone = [name for name in shown if name not in rows]
    if not changed and not gone:
        return None
    return ServerSentEvent(event="change", data={"checkedAt": at, "workers": changed, "gone": gone})


def _news(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the moment at which it was read."""
    return {name: value for name, value in row.items() if name != "readAt"}


def _detail(status: WorkerStatus) -> WorkerDetail:
    with Host.opened(load_settings()) as host:
        return detail_of(host, status)
