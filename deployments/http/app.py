"""The application: guard, routes, errors; and the one route that acts."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

from fastapi import FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from deployments.http import pages, reads
from deployments.http.access import Access
from deployments.http.acts import Order, order_of, perform
from deployments.http.fleet import Fleet
from deployments.http.guard import Guard
from deployments.http.reads import Compat, fleet_in, usable
from deployments.http.refusing import API, on_http_error, on_invalid, on_lifecycle_error, refused
from lifecycle.errors import LifecycleError
from lifecycle.settings import Settings

Key = Annotated[
    str | None,
    Header(max_length=200, description="An act that is sent again with the same key begins no second run."),
]


def app_of(settings: Settings, token: str) -> FastAPI:
    """The application, let in by *token*. Each request reads the configuration anew.

    Whoever runs it closes `state.fleet` when it is to end.
    """
    app = FastAPI(
        title="Afresh",
        summary="Renewal of long-lived agent workers.",
        description="Drop-in for the reference system's `/api/swarm-lifecycle`: its fields and actions, and more.",
        version="1",
        docs_url=None,
        redoc_url=None,
        servers=[{"url": "/"}],
    )
    app.state.access, app.state.fleet, app.state.streams = Access(token, time.time), Fleet(), 0
    app.add_middleware(Guard, access=app.state.access, settings=settings.http)
    app.mount("/static", StaticFiles(directory=pages.FILES), name="static")
    app.add_exception_handler(LifecycleError, on_lifecycle_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.include_router(pages.router)
    app.include_router(reads.router)
    app.post(API, summary="Act on a worker, or sweep", status_code=200, responses=_ANSWERS, openapi_extra=_BODY)(act)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]  # FastAPI's own way to change it
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    """The description; what does not fit is answered with 400 here, and FastAPI would always say 422."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            description=app.description,
            routes=app.routes,
            servers=app.servers,
        )
        found.get("components", {}).pop("schemas", None)
        for methods in found["paths"].values():
            for operation in methods.values():
                operation["responses"].pop("422", None)
                operation["security"] = [{"token": []}]
        found["components"] = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
        app.openapi_schema = found
    return app.openapi_schema


async def act(request: Request, idempotency_key: Key = None, compat: Compat = False) -> JSONResponse:
    """`auto-sweep`, `request-handoff`, `renew` and `answer` take long: they answer 202 with `flowRunId`, and
    `/api/swarm-lifecycle/runs/{flowRunId}` tells how it goes. The others are done when they answer.
    """
    asked = order_of(await request.body())
    named = {"action": asked.action, **({"workerId": asked.worker_id} if asked.worker_id else {})}
    fleet = fleet_in(request)
    try:
        snapshot = usable(await fleet.now()) if asked.action == "auto-sweep" else None
        done = await run_in_threadpool(perform, asked, snapshot, key=idempotency_key)
    except LifecycleError as error:
        return refused(error, compat=compat, **named)
    fleet.outdate()
    begun = done.begun and not compat
    headers = {"Location": f"{API}/runs/{done.body['flowRunId']}"} if begun else None
    return JSONResponse({"ok": True, **named, **done.body}, status_code=202 if begun else 200, headers=headers)


def _order_schema() -> dict[str, Any]:
    """The body's schema with what it refers to written out, as an operation wants it."""
    schema = Order.model_json_schema(by_alias=True)
    parts = schema.pop("$defs", {})
    whole: dict[str, Any] = json.loads(
        json.dumps(schema), object_hook=lambda node: parts[node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    )
    return whole


_EXAMPLE = {"action": "renew", "workerId": "swarm1", "why": "before the weekend"}

_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": _order_schema(), "example": _EXAMPLE}},
    }
}

_ANSWERS: dict[int | str, dict[str, object]] = {
    202: {"description": "Begun: `flowRunId` names the run that does it"},
    400: {"description": "Not understood: no JSON, an unknown action or key, an invalid worker id"},
    401: {"description": "No token"},
    404: {"description": "Unknown worker, or an unmanaged profile"},
    409: {"description": "The worker's state does not allow it; nothing was done"},
    413: {"description": "The body is too long"},
    429: {"description": "Too many requests; Retry-After says when"},
    503: {"description": "No Prefect server answers, or the host cannot do it now"},
}
