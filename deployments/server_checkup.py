"""What `afresh doctor` says of the Prefect server: whether it answers, and whether it is set as Afresh needs it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from deployments.address import access_environment
from deployments.prefect_environment import server_environment
from deployments.server import Running, recorded
from lifecycle.remark import Remark, advice, fine, trouble
from lifecycle.settings import Settings

ABOUT = "Prefect server"

WANTED = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "it tells a stranger that it runs",
    "PREFECT_SERVER_DATABASE_TIMEOUT": "sweeps die with «database is locked»",
    "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "sweeps die with «database is locked»",
    "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "a restart of it can block sweeps for ever",
    "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "old runs are kept until schedules stop",
    "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "any page in a browser could act on it",
    "PREFECT_SERVER_UI_V2_ENABLED": "its second UI asks an analytics host from the browser",
}
"""Settings that hurt where they are otherwise, and how. A server that Afresh starts has them all."""


def check_server(settings: Settings) -> list[Remark]:
    """The server that PREFECT_API_URL or the configuration names, else the one that this home serves."""
    if os.environ.get("PREFECT_API_URL") or settings.server.url is not None:
        return _check(settings, _named(settings), fix="start it (afresh server), or correct who names it")
    served = recorded(settings)
    if served is None:
        says = "nothing sweeps by itself; a renewal by hand starts a server for itself"
        return [advice(ABOUT, says, "afresh serve, or afresh install-units for systemd")]
    return _check(settings, served, fix="start `afresh serve` again")


def _check(settings: Settings, running: Running, *, fix: str) -> list[Remark]:
    if not running.is_healthy():
        return [trouble(ABOUT, f"{running.url} does not answer", fix)]
    # Its health it tells anyone.
    if running.ask("/admin/version") is None:
        where = f"server.password_file in {settings.path or 'afresh.toml'}, or PREFECT_API_AUTH_STRING"
        return [trouble(ABOUT, f"{running.url} does not answer with this password", f"correct {where}")]
    by = ", served by `afresh serve`" if running.is_served else ""
    return [fine(ABOUT, f"{running.url} answers{by}"), *_settings(settings, running)]


def _settings(settings: Settings, running: Running) -> list[Remark]:
    """What is set otherwise on the server, as far as it tells."""
    told = running.ask("/admin/settings")
    try:
        found = json.loads(told or "{}")
    except ValueError:
        found = {}
    wanted = server_environment(settings, port=settings.server.port, password=None)
    remarks = []
    for name, harm in WANTED.items():
        value = _value(found, name.removeprefix("PREFECT_").lower())
        if value is not None and _plain(value) != _plain(wanted[name]):
            says = f"{name.lower()} is {_plain(value)}: {harm}"
            remarks.append(advice(ABOUT, says, f"set {name}={wanted[name]} for it, or let `afresh server` start it"))
    return remarks


def _value(found: Mapping[str, Any], name: str) -> object:
    """Of the server's nested settings the one whose flat name is *name*; None where it has none of it."""
    for key, value in found.items():
        if name == key:
            return value
        if isinstance(value, dict) and name.startswith(f"{key}_"):
            inner = _value(value, name.removeprefix(f"{key}_"))
            if inner is not None:
                return inner
    return None


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ",".join(sorted(map(str, value)))
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value).lower()
    return ",".join(sorted(text.split(","))) if "," in text else text


def _named(settings: Settings) -> Running:
    reached = access_environment(settings)
    user, _, password = reached.get("PREFECT_API_AUTH_STRING", "").partition(":")
    return Running(url=reached["PREFECT_API_URL"].removesuffix("/api"), password=password if user else None)
