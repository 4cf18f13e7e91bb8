"""What takes long is a run of the Prefect server: begun here, looked after by its runner, asked for by its id."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from deployments.address import USER, access_environment, local_url, public_url
from deployments.prefect_environment import client_environment
from deployments.server import ServerError, answering, recorded
from lifecycle.errors import Misuse
from lifecycle.settings import Settings
from lifecycle.value import Value
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.responses import DeploymentResponse

Flow = Literal["sweep", "renew", "request-handoff", "answer"]

DEPLOYED_WITHIN = timedelta(seconds=20)
"""`afresh serve` makes its deployments some seconds after its server answers; on a busy machine, many."""

_importing = threading.Lock()


class Ordered(Value):
    """A flow run that was created, and its page in the Prefect UI."""

    flow_run_id: str
    flow_run_url: str


class RunStatus(Value):
    """How far a flow run is. *state* is a name as people see it: Scheduled, Running, Renewed, Blocked …"""

    flow_run_id: str
    flow_run_url: str
    name: str
    state: str
    is_final: bool
    message: str


def order(settings: Settings, flow: Flow, parameters: dict[str, Any], *, key: str | None = None) -> Ordered:
    """Create a run of the deployment of *flow* on this host. The same *key* gives the same run again.

    Raises:
        ServerError: no Prefect server answers, or it has no such deployment.
    """
    with _client(settings) as (client, url):
        deployment = _deployment(client, flow, settings)
        run = client.create_flow_run_from_deployment(
            deployment.id, parameters={**deployment.parameters, **parameters}, idempotency_key=key
        )
        return Ordered(flow_run_id=str(run.id), flow_run_url=_page(url, run.id))


def run_status(settings: Settings, flow_run_id: str) -> RunStatus:
    """Raises:
    Misuse: there is no such run.
    ServerError: no Prefect server answers.
    """
    try:
        wanted = UUID(flow_run_id)
    except ValueError as error:
        msg = f"{flow_run_id[:80]!r} is no flow run's id"
        raise Misuse(msg) from error
    with _client(settings) as (client, url):
        from prefect.exceptions import ObjectNotFound  # noqa: PLC0415 - after its settings

        try:
            run = client.read_flow_run(wanted)
        except ObjectNotFound as error:
            msg = f"no flow run {wanted}"
            raise Misuse(msg) from error
        state = run.state
        return RunStatus(
            flow_run_id=str(run.id),
            flow_run_url=_page(url, run.id),
            name=run.name,
            state=(state.name or state.type.value) if state else "Unknown",
            is_final=state is not None and state.is_final(),
            message=(state.message or "") if state else "",
        )


@contextmanager
def _client(settings: Settings) -> Iterator[tuple[SyncPrefectClient, str]]:
    """A client of the server that holds now, and the address of its UI: the server may have been started anew."""
    access = _access(settings)
    with _importing:
        # Prefect makes its home when it is imported; which server it asks is said for each order.
        for name, value in client_environment(settings).items():
            os.environ.setdefault(name, value)
        from prefect.client.orchestration import get_client  # noqa: PLC0415
        from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings  # noqa: PLC0415
    url = access["PREFECT_API_URL"].removesuffix("/api")
    asked = {PREFECT_API_URL: f"{url}/api", PREFECT_API_AUTH_STRING: access.get("PREFECT_API_AUTH_STRING")}
    # Who reads the answer may be on another host, behind the proxy that the configuration names.
    port = settings.server.port
    shown = public_url(settings, port) if url == local_url(settings, port) else url
    with answering(url), temporary_settings(asked), get_client(sync_client=True) as client:
        yield client, shown


def _access(settings: Settings) -> dict[str, str]:
    served = recorded(settings)
    if served is None or os.environ.get("PREFECT_API_URL"):
        return access_environment(settings)
    login = {"PREFECT_API_AUTH_STRING": f"{USER}:{served.password}"} if served.password else {}
    return {"PREFECT_API_URL": served.api, **login}


def _deployment(client: SyncPrefectClient, flow: Flow, settings: Settings) -> DeploymentResponse:
    """That of `afresh serve`, else that of this host's work pool; on a server that others share, only the latter."""
    from prefect.exceptions import ObjectNotFound  # noqa: PLC0415

    from flows.runs import deployment_of  # noqa: PLC0415

    shared = settings.server.url is not None
    names = [deployment_of(flow, name) for name in ("", settings.host_name) if name or not shared]

    def found() -> DeploymentResponse | None:
        for name in names:
            with suppress(ObjectNotFound):
                return client.read_deployment_by_name(name)
        return None

    try:
        return wait_until(found, DEPLOYED_WITHIN, SystemClock(), every=timedelta(seconds=1))
    except DeadlinePassed as error:
        msg = f"the Prefect server has no deployment {' or '.join(names)}: `afresh serve` or `afresh deploy` makes it"
        raise ServerError(msg) from error


def _page(url: str, flow_run_id: UUID) -> str:
    return f"{url}/runs/flow-run/{flow_run_id}"
