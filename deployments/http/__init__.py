"""The HTTP API, drop-in for the reference system's `/api/swarm-lifecycle`, and the page that uses it."""  # noqa: A005 - always imported as deployments.http
