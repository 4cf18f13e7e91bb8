"""afresh serve: server, schedule and runner in one command; afresh server and worker: the two apart, for units."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from deployments.output import FAILED, tell

if TYPE_CHECKING:
    from deployments.server import Running
    from lifecycle.settings import Settings


def add_to(app: typer.Typer) -> None:
    app.command("serve")(serve)
    app.command("http")(http)
    app.command("server")(server)
    app.command("worker")(worker)


def serve() -> int:
    """Serve the UI, the page and the HTTP API on loopback, sweep on a schedule, run renewals.

    Renewals also come from the form of the deployment `renew`, from the page and over HTTP.
    """
    from deployments.address import check_bind
    from deployments.server import served_alone
    from lifecycle.settings import load_settings

    settings = load_settings()
    check_bind(settings)
    with served_alone(settings):
        return _serve(settings)


def _serve(settings: Settings) -> int:
    from deployments.address import password_of
    from deployments.server import check_port, recorded_as, started
    from deployments.watching import watched

    check_port(settings)
    if settings.http.enabled:
        from deployments.http.service import check

        check(settings)
    # Until Prefect's runner takes the signal over, a TERM must end the server too.
    signal.signal(signal.SIGTERM, _interrupt)
    password = password_of(settings)
    tell(f"starting the Prefect server on port {settings.server.port} (about 20 s)")
    with started(settings, port=settings.server.port, password=password) as running, recorded_as(settings, running):
        from deployments.runner import run  # Prefect, once its server is known

        every = settings.sweep_interval.total_seconds()
        kept = settings.server.password_file or settings.home / "server.password"
        tell(f"Prefect UI: {running.url} (user afresh, password in {kept})")
        tell(f"sweeping every {every:.0f} s; Ctrl-C ends it, agents stay")
        with watched(settings, running) as ended, _page(settings, running):
            try:
                run(settings, running)
            except KeyboardInterrupt:
                if not ended.is_set():
                    raise
    if ended.is_set():
        tell(f"afresh: the Prefect server has ended: see {settings.home / 'server.log'}")
        return FAILED
    return 0


@contextmanager
def _page(settings: Settings, running: Running) -> Iterator[None]:
    """The HTTP API beside the runner, in this process."""
    if not settings.http.enabled:
        yield
        return
    from deployments.http.access import token_path
    from deployments.http.service import beside
    from deployments.prefect_environment import client_environment
    from deployments.server import point_at

    # The service may be the first that imports Prefect, which then reads its settings.
    os.environ.update(client_environment(settings))
    point_at(running)
    with beside(settings) as url:
        tell(f"page and HTTP API: {url} (token in {token_path(settings)})")
        yield


def http() -> None:
    """Serve the page and the HTTP API alone, on loopback, until Ctrl-C.

    What takes long is a run of the Prefect server of this home, or of the one that the configuration names.
    """
    from deployments.address import origin
    from deployments.http.access import token_path
    from deployments.http.service import alone
    from lifecycle.settings import load_settings

    settings = load_settings()
    signal.signal(signal.SIGTERM, _interrupt)
    where = origin(settings.http.host, settings.http_port)
    tell(f"page and HTTP API: {where} (token in {token_path(settings)}); Ctrl-C ends it")
    alone(settings)


def server() -> NoReturn:
    """Run the Prefect server alone, in this process: for a unit, or for several hosts with PostgreSQL.

    `afresh deploy` and `afresh worker` on each host then make and run what it schedules.
    """
    from deployments.address import check_bind, local_url, password_of
    from deployments.prefect_environment import server_environment
    from deployments.server import Running, check_port, record, served_alone
    from lifecycle.processes import identity_of
    from lifecycle.settings import load_settings

    settings = load_settings()
    check_bind(settings)
    with served_alone(settings):
        check_port(settings)
    port, password, me = settings.server.port, password_of(settings), identity_of(os.getpid())
    (settings.home / "prefect").mkdir(parents=True, exist_ok=True, mode=0o700)
    settings.home.chmod(0o700)
    # Other commands of this home find it so; the process stays the same when it becomes the server.
    record(settings, Running(url=local_url(settings, port), process=me, owner=me, password=password))
    os.environ.update(server_environment(settings, port=port, password=password))
    _become("server", "start", "--host", settings.server.host, "--port", str(port))


def worker(
    wait: Annotated[int, typer.Option(help="Seconds to wait for the server to answer.", min=0)] = 120,
) -> NoReturn:
    """Run this host's Prefect worker, in this process: it takes runs from this host's work pool alone.

    What was cut off is taken up first. TERM and INT end it; its runs end with it, agents live on.
    """
    from deployments.deploying import point_at_server, start_recovery
    from deployments.runner import RUNS_AT_ONCE
    from lifecycle.settings import load_settings

    settings = load_settings()
    point_at_server(settings, patience=timedelta(seconds=wait))
    start_recovery(settings)
    pool = settings.host_name
    options = ("--pool", pool, "--type", "process", "--name", f"afresh-{pool}", "--limit", str(RUNS_AT_ONCE))
    _become("worker", "start", *options, "--install-policy", "never", "--no-create-pool-if-not-found")


def _become(*arguments: str) -> NoReturn:
    """Let Prefect's command take the place of this process, so that a supervisor's signals are its own.

    Prefect hands a TERM on as an INT. A shell's background job inherits an INT that is ignored, and would live on.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", "prefect", "--no-prompt", *arguments])  # noqa: S606 - our own


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
