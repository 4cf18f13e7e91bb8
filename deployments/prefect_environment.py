"""The Prefect settings that Afresh runs with, each with its reason. Set before Prefect is imported."""

from __future__ import annotations

from lifecycle.settings import Settings


def client_environment(settings: Settings) -> dict[str, str]:
    """For every process that runs flows."""
    return {
        "PREFECT_HOME": str(settings.home / "prefect"),
        # Nothing leaves the machine.
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        # The domain logs without knowing Prefect; its lines belong into the run's log.
        "PREFECT_LOGGING_EXTRA_LOGGERS": "lifecycle,tasks,flows",
        # The zombie automation's span is three times this; the default of 180 s would find a dead run after 9 minutes.
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
        # SQLite answers a busy moment with HTTP 503.
        "PREFECT_CLIENT_MAX_RETRIES": "10",
    }


def server_environment(settings: Settings, *, port: int, password: str | None) -> dict[str, str]:
    """For the server process."""
    host = settings.server.host
    origin = f"http://{host}:{port}"
    environment = {
        **client_environment(settings),
        "PREFECT_SERVER_API_HOST": host,
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_API_URL": f"{origin}/api",
        # The second UI contacts an analytics host from the browser, analytics switched off or not.
        "PREFECT_SERVER_UI_V2_ENABLED": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        # The defaults of 10 and 5 s let sweeps die with "database is locked".
        "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
        "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "60",
        # Slots kept in memory are lost with the server and then block a limit of 1 for ever.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        # By default any page in a browser on this host could start deployments.
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": origin,
        "PREFECT_SERVER_API_CSRF_PROTECTION_ENABLED": "true",
    }
    if password is not None:
        environment["PREFECT_SERVER_API_AUTH_STRING"] = f"afresh:{password}"
        environment["PREFECT_API_AUTH_STRING"] = f"afresh:{password}"
    return environment
