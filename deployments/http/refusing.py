"""Errors as answers: one honest status each, one line, in the reference system's shape."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from deployments.server import ServerError
from lifecycle.errors import (
    ConfigurationError,
    InvalidWorkerId,
    LifecycleError,
    Misuse,
    RenewalInProgress,
    RosterError,
    UnknownWorker,
)

log = logging.getLogger(__name__)

API = "/api/swarm-lifecycle"


class Refused(LifecycleError):
    """The worker's state does not allow the act; nothing was done."""

    reason = "refused"


class Unreadable(LifecycleError):
    """The fleet cannot be read now; the reason is the cause's."""


_STATUS: tuple[tuple[type[LifecycleError], int], ...] = (
    (UnknownWorker, 404),
    (Refused, 409),
    (RenewalInProgress, 409),
    (ConfigurationError, 503),
    (RosterError, 503),
    (ServerError, 503),
    (Misuse, 400),
    (LifecycleError, 503),
)
"""The first that fits; the last is what the host cannot do now: an unreadable ledger, a tmux that refuses."""


def status_for(error: LifecycleError) -> int:
    return next(status for kind, status in _STATUS if isinstance(error, kind))


def refused(error: LifecycleError, *, compat: bool = False, **more: Any) -> JSONResponse:
    """With *compat* an error that came of doing what was asked has status 200, as the reference system answers.

    What was not understood has 400 there too, and an invalid worker id always has.
    """
    status = status_for(error)
    was_understood = status != 400 and not isinstance(error, InvalidWorkerId)
    if status >= 500:
        log.error("%s", error.detail)
    body = {"ok": False, **more, "error": " ".join(error.detail.split()), "reason": error.reason}
    return JSONResponse(body, status_code=200 if compat and was_understood else status)


async def on_lifecycle_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, LifecycleError)  # noqa: S101 - registered for nothing else
    return refused(error)


async def on_http_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    return JSONResponse({"ok": False, "error": str(error.detail)}, status_code=error.status_code, headers=error.headers)


async def on_invalid(_: Request, error: Exception) -> JSONResponse:
    """A query that does not fit; the first thing wrong with it."""
    first = getattr(error, "errors", list)()[0]
    return JSONResponse({"ok": False, "error": f"{first['loc'][-1]}: {first['msg']}"}, status_code=400)
