"""The Prefect settings that Afresh runs with, each with its reason. Set before Prefect is imported."""

from __future__ import annotations

import os
from datetime import timedelta

from deployments.address import USER, local_url, origin, public_url
from lifecycle.settings import Settings

HEARTBEAT = timedelta(seconds=30)
"""How often a run says that it lives: Prefect's shortest. Its own 180 s would find a dead run after nine minutes."""

KEPT = timedelta(days=30)
"""How long ended runs are kept for people. The ledger keeps what matters."""


def client_environment(settings: Settings) -> dict[str, str]:
    """For every process that runs flows."""
    return {
        "PREFECT_HOME": str(settings.home / "prefect"),
        # Nothing leaves the machine.
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        # A client that knows no server would start one of its own, without a word and without a password.
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        # The domain logs without knowing Prefect; its lines belong into the run's log.
        "PREFECT_LOGGING_EXTRA_LOGGERS": "lifecycle,tasks,flows",
        # Beside runs, as in the watch, there is no log of a run to write to.
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": f"{HEARTBEAT.total_seconds():.0f}",
        # SQLite answers a busy moment with HTTP 503.
        "PREFECT_CLIENT_MAX_RETRIES": "10",
        # Results are pickles that hold what workers wrote; the ledger has what is needed.
        "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
        # The one that a Prefect worker can serve binds every address.
        "PREFECT_WORKER_WEBSERVER_HOST": "127.0.0.1",
    }


def server_environment(settings: Settings, *, port: int, password: str | None) -> dict[str, str]:
    """For the server process."""
    public = public_url(settings, port)
    environment = {
        **client_environment(settings),
        "PREFECT_SERVER_API_HOST": settings.server.host,
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_API_URL": f"{local_url(settings, port)}/api",
        # The links in what its automations send, and what the browser asks.
        "PREFECT_UI_URL": public,
        "PREFECT_SERVER_UI_API_URL": f"{public}/api",
        # The second UI contacts an analytics host from the browser, analytics switched off or not.
        "PREFECT_SERVER_UI_V2_ENABLED": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        # The defaults of 10 and 5 s let sweeps die with "database is locked", and say nothing of it.
        "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
        "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "60",
        "PREFECT_SERVER_LOG_RETRYABLE_ERRORS": "true",
        # Slots kept in memory are lost with the server and then block a limit of 1 for ever.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        # Only events are cleared away by default; runs would grow until schedules stop.
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": f"{KEPT.total_seconds():.0f}",
        # By default any page in a browser on this host could start deployments.
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": f"{public},{origin('localhost', port)}",
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
    }
    database = settings.server.database
    if database is not None and not os.environ.get("PREFECT_SERVER_DATABASE_CONNECTION_URL"):
        environment["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = database.get_secret_value()
    if password is not None:
        environment["PREFECT_SERVER_API_AUTH_STRING"] = f"{USER}:{password}"
        environment["PREFECT_API_AUTH_STRING"] = f"{USER}:{password}"
    return environment
