"""What every request passes before a route sees it: names, access, rates, size; and what every answer carries."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments.http.access import COOKIE, Access
from deployments.http.rates import Rate
from lifecycle.settings import HttpSettings

LONGEST_BODY = 256 * 1024
"""Bytes; the longest that is sent is a handoff."""

BODY_WITHIN = 15.0
"""Seconds that a body may take."""

WRONG_TOKENS_PER_MINUTE = 20

REFERENCE_COOKIE = "claude-auth"

OPEN = ("/login", "/health", "/static/")
PAGES = ("/", "/docs")
"""Shown to people, who are led to the form where they have no session."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": with it a form is sent with the origin "null".
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """ASGI middleware. A request with the token in its header needs nothing else; one with the page's cookie must
    also show that the page sent it.
    """

    def __init__(self, app: ASGIApp, access: Access, settings: HttpSettings) -> None:
        self._app, self._access = app, access
        self._hosts = {"127.0.0.1", "localhost", "::1", *(host.lower() for host in settings.hosts)}
        self._reads = Rate(settings.reads_per_minute, time.monotonic)
        self._acts = Rate(settings.acts_per_minute, time.monotonic)
        self._wrong = Rate(WRONG_TOKENS_PER_MINUTE, time.monotonic)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        send = _with_headers(send)
        refused = self._refusal(scope)
        if refused is None and scope["method"] not in ("GET", "HEAD"):
            body = await _body(Headers(scope=scope), receive)
            refused = body if isinstance(body, Response) else None
            receive = _replayed(body, receive) if isinstance(body, bytes) else receive
        await (refused or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers, path, method = Headers(scope=scope), str(scope["path"]), scope.get("method", "")
        if _host_of(f"//{headers.get('host', '')}") not in self._hosts:
            # A name that someone else may point at this machine (DNS rebinding).
            return refusal(400, "this service is not known by that name; [http] hosts adds names")
        if method not in ("GET", "HEAD", "POST"):
            return refusal(405, "GET or POST")
        address = (scope.get("client") or ("", 0))[0]
        if path.startswith(OPEN):
            return self._open(path, method, address, headers)
        session = _cookie(headers, COOKIE)
        by_token = self._shows_token(headers)
        if not by_token and not self._access.is_session(session):
            return self._unknown(address, path, given="authorization" in headers)
        if not by_token and method == "POST" and not self._comes_from_page(headers, session or ""):
            return refusal(403, "this request does not come from the page: load it again")
        return _counted(self._acts if method == "POST" else self._reads, address)

    def _shows_token(self, headers: Headers) -> bool:
        """In the header; or, as the reference system's sweep script sends it, in its cookie, but from no browser:
        a browser sends a cookie along with what other sites' pages ask for.
        """
        if self._access.is_bearer(headers.get("authorization")):
            return True
        sent = None if {"origin", "sec-fetch-site"} & set(headers.keys()) else _cookie(headers, REFERENCE_COOKIE)
        return sent is not None and self._access.is_token(sent)

    def _open(self, path: str, method: str, address: str, headers: Headers) -> Response | None:
        if method != "POST":
            return None
        if path != "/login" or not self._same_origin(headers, required=False):
            return refusal(403, "this request does not come from the page")
        return _counted(self._wrong, address)

    def _unknown(self, address: str, path: str, *, given: bool) -> Response:
        if path in PAGES and not given:
            return RedirectResponse("/login", status_code=303)
        limited = _counted(self._wrong, address) if given else None
        return limited or refusal(401, "Unauthorized", {"WWW-Authenticate": 'Bearer realm="afresh"'})

    def _comes_from_page(self, headers: Headers, session: str) -> bool:
        return self._same_origin(headers, required=True) and self._access.is_csrf(session, headers.get("x-csrf-token"))

    def _same_origin(self, headers: Headers, *, required: bool) -> bool:
        """Browsers name the page that sends a POST; a proxy may have changed the name that it was sent to."""
        origin = headers.get("origin")
        if origin is None:
            return not required
        return urlsplit(origin).netloc == headers.get("host") or (
            _host_of(origin) in self._hosts - {"127.0.0.1", "localhost", "::1"}
        )


def refusal(status: int, error: str, headers: dict[str, str] | None = None) -> Response:
    """An answer in the reference system's shape, in one line."""
    return JSONResponse({"ok": False, "error": error}, status_code=status, headers=headers)


def _counted(rate: Rate, address: str) -> Response | None:
    seconds = rate.wait(address)
    if seconds:
        return refusal(429, f"too many requests: again in {seconds} s", {"Retry-After": str(seconds)})
    rate.count(address)
    return None


def _host_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _cookie(headers: Headers, name: str) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return found.value if found else None


async def _body(headers: Headers, receive: Receive) -> bytes | Response:
    """The whole body, or the refusal of one that is too long or too slow."""
    if not headers.get("content-length", "0").isdecimal():
        return refusal(400, "Content-Length is no number")
    too_long = refusal(413, f"the body is longer than {LONGEST_BODY // 1024} KiB", {"Connection": "close"})
    if int(headers.get("content-length", "0")) > LONGEST_BODY:
        return too_long
    try:
        async with asyncio.timeout(BODY_WITHIN):
            body, more = b"", True
            while more:
                message = await receive()
                body += message.get("body", b"")
                more = message["type"] == "http.request" and message.get("more_body", False)
                if len(body) > LONGEST_BODY:
                    return too_long
    except TimeoutError:
        return refusal(408, f"the body did not come within {BODY_WITHIN:.0f} s", {"Connection": "close"})
    return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Hand the body out once, then whatever comes: a client that goes away is heard."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _with_headers(send: Send) -> Callable[[MutableMapping[str, Any]], Awaitable[None]]:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending
