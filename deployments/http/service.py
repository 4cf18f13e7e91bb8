"""Running the application: in a thread beside `afresh serve`, or alone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import uvicorn

from deployments.address import origin
from deployments.http.access import kept_token
from deployments.http.app import app_of
from deployments.server import ServerError
from lifecycle.errors import Misuse
from lifecycle.settings import Settings
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until

STARTS_WITHIN = timedelta(seconds=30)

ENDS_WITHIN = timedelta(seconds=5)
"""What answers that are under way may take when the service ends."""

CONNECTIONS = 200


def check(settings: Settings) -> None:
    """What would keep the service from starting, before anything else is started.

    Raises:
        Misuse: the port is taken.
        ConfigurationError: the token cannot be used.
    """
    kept_token(settings)
    with _bound(settings):
        pass


@contextmanager
def beside(settings: Settings) -> Iterator[str]:
    """Serve in a thread for as long as the block lasts, and yield the address, which answers.

    Raises:
        ServerError: it did not start.
        Misuse: the port is taken.
        ConfigurationError: the token cannot be used.
    """
    with _bound(settings) as bound:
        server = _server(settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="http", daemon=True)
        thread.start()
        try:
            _await_start(server, thread)
            yield origin(settings.http.host, settings.http_port)
        finally:
            server.should_exit = True
            thread.join(timeout=2 * ENDS_WITHIN.total_seconds())


def alone(settings: Settings) -> None:
    """Serve in this thread until INT or TERM.

    Raises:
        Misuse: the port is taken.
        ConfigurationError: the token cannot be used.
    """
    with _bound(settings) as bound:
        _server(settings).run(sockets=[bound])


def _await_start(server: uvicorn.Server, thread: threading.Thread) -> None:
    with suppress(DeadlinePassed):
        wait_until(lambda: server.started or not thread.is_alive(), STARTS_WITHIN, SystemClock())
    if not server.started:
        msg = f"the HTTP service did not start within {STARTS_WITHIN.total_seconds():.0f} s"
        raise ServerError(msg)


class _Server(uvicorn.Server):
    """Lets the pages that are kept live go first: else a stop waits for them."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        app = self.config.app
        app.state.fleet.close()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def _server(settings: Settings) -> uvicorn.Server:
    config = uvicorn.Config(
        app_of(settings, kept_token(settings)),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # A client may write anything there, and rates are counted by address.
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=round(ENDS_WITHIN.total_seconds()),
    )
    return _Server(config)


@contextmanager
def _bound(settings: Settings) -> Iterator[socket.socket]:
    host, port = settings.http.host, settings.http_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, port))
        except OSError as error:
            where = settings.path or "the default"
            msg = f"{where}: http.port {port}: {error.strerror}; another port, or [http] enabled = false"
            raise Misuse(msg) from error
        yield bound
