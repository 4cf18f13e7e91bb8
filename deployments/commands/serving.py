"""afresh serve: server, schedule and runner in one command."""

from __future__ import annotations

import typer

from deployments.output import tell
from deployments.server import kept_password, recorded, recorded_as, started
from lifecycle.errors import Misuse
from lifecycle.settings import load_settings


def add_to(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve() -> None:
    """Run the Prefect server on loopback, sweep on a schedule, and take renewals from the UI's form."""
    settings = load_settings()
    if settings.server.host not in ("127.0.0.1", "localhost", "::1"):
        msg = f"{settings.path}: server.host {settings.server.host}: only loopback is served"
        raise Misuse(msg)
    running = recorded(settings)
    if running is not None and running.is_healthy():
        msg = f"this home is served already at {running.url} (pid {running.pid})"
        raise Misuse(msg)
    password = kept_password(settings)
    tell(f"starting the Prefect server on port {settings.server.port} (about 20 s)")
    with started(settings, port=settings.server.port, password=password) as running, recorded_as(settings, running):
        from deployments.runner import run  # Prefect, once its server is known

        every = settings.sweep_interval.total_seconds()
        tell(f"Prefect UI: {running.url} (user afresh, password in {settings.home / 'server.password'})")
        tell(f"sweeping every {every:.0f} s; Ctrl-C ends it, agents stay")
        run(settings, running)
