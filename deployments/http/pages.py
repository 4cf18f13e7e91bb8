"""The page, the form that lets a browser in, and the description of the API: files of this package and no other."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.responses import Response

from deployments.http.access import COOKIE, SESSION_FOR, Access
from deployments.http.refusing import API

FILES = Path(__file__).parent / "files"

router = APIRouter(include_in_schema=False)


def access_in(request: Request) -> Access:
    access: Access = request.app.state.access
    return access


@router.get("/")
def page() -> HTMLResponse:
    return _file("page.html")


@router.get("/docs")
def docs() -> HTMLResponse:
    return _file("docs.html")


@router.get("/health")
def health() -> dict[str, bool]:
    """Open to all: that it answers, and nothing else."""
    return {"ok": True}


@router.get("/login")
def form(wrong: bool = False) -> HTMLResponse:
    return _file("login.html", note="This is not the token of this home." if wrong else "")


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Open a session for the browser that knows the token. The cookie goes to no other site's requests."""
    found = parse_qs((await request.body()).decode("utf-8", "replace"))
    access = access_in(request)
    if not access.is_token(found.get("token", [""])[0].strip()):
        return RedirectResponse("/login?wrong=1", status_code=303)
    answer = RedirectResponse("/", status_code=303)
    answer.set_cookie(
        COOKIE,
        access.new_session(),
        max_age=int(SESSION_FOR.total_seconds()),
        httponly=True,
        samesite="strict",
        # A proxy in front that speaks TLS says so.
        secure=request.headers.get("x-forwarded-proto", request.url.scheme) == "https",
    )
    return answer


@router.post("/logout")
def log_out() -> Response:
    answer = JSONResponse({"ok": True})
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


@router.get(f"{API}/session")
def session(request: Request) -> JSONResponse:
    """What the page must send along with an act."""
    return JSONResponse({"ok": True, "csrf": access_in(request).csrf_of(request.cookies.get(COOKIE, ""))})


def _file(name: str, *, note: str = "") -> HTMLResponse:
    # Only words of this module are put in; nothing that a worker or a client wrote.
    return HTMLResponse((FILES / name).read_text().replace("<!-- note -->", note))
