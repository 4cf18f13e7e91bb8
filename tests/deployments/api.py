"""The HTTP service on loopback in this process, and a client of it that holds its token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from deployments.http.access import token_path
from deployments.http.service import beside
from lifecycle.settings import load_settings
from tests.deployments.conftest import Operator
from tests.ports import free_port

PATH = "/api/swarm-lifecycle"


class Api:
    """Asks with the token unless told otherwise."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token
        self.client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
        self.stranger = httpx.Client(base_url=url, timeout=60)

    def get(self, path: str = PATH, **query: Any) -> httpx.Response:
        return self.client.get(path, params=query)

    def post(self, action: str, worker_id: str | None = None, compat: bool = False, **more: Any) -> httpx.Response:
        body = {"action": action, **({"workerId": worker_id} if worker_id is not None else {}), **more}
        return self.client.post(PATH, params={"compat": 1} if compat else {}, json=body)

    def row(self, worker_id: str = "swarm1") -> dict[str, Any]:
        found: dict[str, Any] = self.get(workerId=worker_id).json()["workers"][0]
        return found

    def close(self) -> None:
        self.client.close()
        self.stranger.close()


def with_ports(operator: Operator, http: str = "", more: str = "") -> None:
    """Configure free ports: for the service, and for a Prefect server that does not run."""
    ports = free_port("127.0.0.1"), free_port("127.0.0.1")
    operator.configure(f"[server]\nport = {ports[0]}\n[http]\nport = {ports[1]}\n{http}\n{more}")


@contextmanager
def serving() -> Iterator[Api]:
    """The service of the home that the environment names."""
    settings = load_settings()
    with beside(settings) as url:
        api = Api(url, token_path(settings).read_text().strip())
        try:
            yield api
        finally:
            api.close()
