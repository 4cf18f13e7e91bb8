"""afresh serve: server, schedule and runner in one command."""

from __future__ import annotations

import signal
from types import FrameType

import typer

from deployments.output import tell
from lifecycle.errors import Misuse


def add_to(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve() -> None:
    """Serve the UI on loopback, sweep on a schedule, run renewals.

    Renewals also come from the form of the deployment `renew`.
    """
    from deployments.server import end_orphan, kept_password, recorded_as, started
    from lifecycle.settings import load_settings

    settings = load_settings()
    if settings.server.host not in ("127.0.0.1", "localhost", "::1"):
        msg = f"{settings.path}: server.host {settings.server.host}: only loopback is served"
        raise Misuse(msg)
    end_orphan(settings)
    # Until Prefect's runner takes the signal over, a TERM must end the server too.
    signal.signal(signal.SIGTERM, _interrupt)
    password = kept_password(settings)
    tell(f"starting the Prefect server on port {settings.server.port} (about 20 s)")
    with started(settings, port=settings.server.port, password=password) as running, recorded_as(settings, running):
        from deployments.runner import run  # Prefect, once its server is known

        every = settings.sweep_interval.total_seconds()
        tell(f"Prefect UI: {running.url} (user afresh, password in {settings.home / 'server.password'})")
        tell(f"sweeping every {every:.0f} s; Ctrl-C ends it, agents stay")
        run(settings, running)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
