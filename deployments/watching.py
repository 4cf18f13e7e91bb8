"""The second way to people: it looks from outside at the server and its sweeps, and tells by the sinks alone."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psutil

from deployments.address import access_environment, local_url
from deployments.output import FAILED, tell
from deployments.prefect_environment import client_environment
from deployments.server import Running
from lifecycle.errors import LifecycleError
from lifecycle.host import Host
from lifecycle.outage import SWEPT, heed_server, heed_sweeps
from lifecycle.processes import is_alive
from lifecycle.settings import Settings
from lifecycle.value import Value
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until

log = logging.getLogger(__name__)

EVERY = timedelta(minutes=1)

PATIENCE = timedelta(seconds=30)
"""A server that answers within this was busy, not down."""

LEAVES_WITHIN = timedelta(seconds=30)
"""Prefect's runner (3.9.1) may wait for its dead server for ever when a run was under way, and nobody would sweep."""

_TRIES = timedelta(seconds=2)


class Watch(Value):
    """What one look found; *told* says that people were told of it now."""

    url: str
    answers: bool
    last_sweep_at: datetime | None
    told: bool


def look(host: Host, *, url: str, up_since: datetime, remedy: str) -> Watch:
    """Look once. Where the server is down, that alone is told: its sweeps cannot come."""
    server = Running(url=url)
    try:
        answers = wait_until(server.is_healthy, PATIENCE, SystemClock(), every=_TRIES)
    except DeadlinePassed:
        answers = False
    told = heed_server(host, url, answers=answers, remedy=remedy)
    if answers:
        from deployments.crashes import heed_crashes  # noqa: PLC0415 - Prefect, once its server is known

        told = heed_sweeps(host, up_since=up_since)
        told = heed_crashes(host, url, up_since=up_since) or told
    return Watch(url=url, answers=answers, last_sweep_at=host.ledger.stamped(SWEPT), told=told)


def look_from_here(host: Host) -> Watch:
    """Look at the server of the environment or configuration, or at that of this host."""
    settings = host.settings
    access = access_environment(settings)
    os.environ.update(client_environment(settings) | access)
    url = access["PREFECT_API_URL"].removesuffix("/api")
    booted = datetime.fromtimestamp(psutil.boot_time(), UTC)
    return look(host, url=url, up_since=booted, remedy=remedy_for(url, settings))


def remedy_for(url: str, settings: Settings) -> str:
    if url == local_url(settings, settings.server.port):
        return (
            f"Start it: `systemctl [--user] restart afresh-server`, or `afresh serve`; it says why in {_log(settings)}."
        )
    return "Start it on its host."


def _log(settings: Settings) -> str:
    return f"{settings.home / 'server.log'} or its journal"


@contextmanager
def watched(settings: Settings, server: Running) -> Iterator[threading.Event]:
    """Look every minute beside `afresh serve`.

    When the server's process has ended, people are told, the event is set, and this process gets a TERM.
    """
    over, ended = threading.Event(), threading.Event()
    began, remedy = datetime.now(UTC), remedy_for(server.url, settings)
    clock = SystemClock()
    with _kept_going(), Host.opened(settings) as host:
        # It answers now: its next end is another one, however soon it comes.
        heed_server(host, server.url, answers=True, remedy=remedy)

    def watch() -> None:
        looked = clock.monotonic()
        while not over.wait(1):
            has_ended = server.process is not None and not is_alive(server.process)
            if not has_ended and clock.monotonic() - looked < EVERY.total_seconds():
                continue
            looked = clock.monotonic()
            with _kept_going(), Host.opened(settings) as host:
                if has_ended:
                    heed_server(host, server.url, answers=False, remedy=remedy)
                else:
                    look(host, url=server.url, up_since=began, remedy=remedy)
            if has_ended:
                ended.set()
                os.kill(os.getpid(), signal.SIGTERM)
                if not over.wait(LEAVES_WITHIN.total_seconds()):
                    tell(f"afresh: the Prefect server has ended: see {settings.home / 'server.log'}")
                    os._exit(FAILED)
                return

    thread = threading.Thread(target=watch, name="watch", daemon=True)
    thread.start()
    try:
        yield ended
    finally:
        over.set()
        thread.join(PATIENCE.total_seconds())


@contextmanager
def _kept_going() -> Iterator[None]:
    """What keeps one look from being made does not end the watch."""
    try:
        yield
    except LifecycleError as error:
        log.error("the watch could not look: %s", error.detail)  # noqa: TRY400 - one line says it
