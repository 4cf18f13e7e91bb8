"""What people see of the fleet in Prefect's UI, and what other hosts read of it: artifacts that each sweep refreshes.

An artifact shows and decides nothing: a server that does not take it is logged, and never ends a sweep or a renewal.
"""

from __future__ import annotations

import json
import logging
from datetime import datetime

from prefect.client.schemas.actions import ArtifactCreate
from prefect.client.schemas.filters import ArtifactCollectionFilter, ArtifactCollectionFilterKey
from pydantic import ValidationError

from lifecycle.host import Host
from lifecycle.status import WorkerStatus, described, status_of
from lifecycle.survey import Survey, Unexamined
from lifecycle.value import Value
from tasks.artifact import own_client, show_table, shown_only

log = logging.getLogger(__name__)

FLEET = "afresh-fleet-"
"""Before the host's name: the key of the table that people read."""

STATUS = "afresh-status-"
"""Before the host's name: the key of the same as values, one `FleetStatus`, of which only the newest is kept."""


class FleetStatus(Value):
    """The managed workers of one host as its last sweep of all found and left them."""

    host: str
    at: datetime
    workers: tuple[WorkerStatus, ...]
    unexamined: tuple[Unexamined, ...] = ()


def show_fleet(host: Host, found: Survey, acted: set[str]) -> None:
    """Refresh both artifacts of this host. Workers in *acted* are looked at again, the others stand as found."""
    managed = [finding for finding in found.findings if finding.worker.managed]
    records = host.ledger.records(finding.worker_id for finding in managed)
    workers = tuple(
        status_of(host, finding.worker)
        if finding.worker_id in acted
        else described(host, finding.model_copy(update={"record": records[finding.worker_id]}))
        for finding in managed
    )
    name = host.settings.host_name
    fleet = FleetStatus(host=name, at=host.now(), workers=workers, unexamined=found.unexamined)
    with shown_only():
        show_table(
            FLEET + name,
            [*map(row_of, workers), *map(_unexamined, found.unexamined)],
            f"Workers of {name} at {fleet.at:%Y-%m-%d %H:%M:%S} UTC, after the sweep.",
        )
        _keep(fleet)


def row_of(worker: WorkerStatus) -> dict[str, str]:
    """One line of the table."""
    figure = worker.session_total if worker.signal == "session_total" else worker.tokens
    tokens = "unknown" if figure is None else f"{figure:,} of {worker.policy.handoff:,}"
    return {
        "worker": worker.worker_id,
        "state": worker.lifecycle_state if worker.lifecycle_state != "idle" else worker.context_state,
        "tokens of limit": tokens,
        "last handoff": f"{worker.last_handoff_at:%Y-%m-%d %H:%M} UTC" if worker.last_handoff_at else "never",
        "block": worker.block.reason if worker.block else "",
        "accepting work": "yes" if worker.accepting_work else "no",
        "automatic": "on" if worker.automatic else "off",
    }


def _unexamined(worker: Unexamined) -> dict[str, str]:
    row = dict.fromkeys(("tokens of limit", "last handoff", "accepting work", "automatic"), "")
    return {"worker": worker.worker_id, "state": "cannot be looked after", "block": worker.detail, **row}


def fleets() -> list[FleetStatus]:
    """The newest state of every host that sweeps with this server, by host. Of one that cannot be read nothing is said.

    Raises:
        httpx.HTTPError: the server does not answer, or refuses.
    """
    wanted = ArtifactCollectionFilter(key=ArtifactCollectionFilterKey(like_=f"{STATUS}%"))
    with own_client() as client:
        found = client.read_latest_artifacts(artifact_filter=wanted)
    read = []
    for artifact in found:
        try:
            read.append(FleetStatus.recall(json.dumps(artifact.data)))
        except ValidationError as error:
            log.warning("%s cannot be read: %s", artifact.key, error)
    return sorted(read, key=lambda fleet: fleet.host)


def _keep(fleet: FleetStatus) -> None:
    """Write over the last one: a thousand workers are a megabyte, which no timeline needs every ten minutes.

    It belongs to no run, so that it does not go with the old ones.
    """
    key, data = STATUS + fleet.host, fleet.model_dump(mode="json")
    with own_client() as client:
        latest = client.read_latest_artifacts(
            artifact_filter=ArtifactCollectionFilter(key=ArtifactCollectionFilterKey(any_=[key]))
        )
        if not latest:
            client.create_artifact(ArtifactCreate(key=key, type="status", data=data))
            return
        # `update_artifact` of the client would put all of it into an event too.
        client.request("PATCH", "/artifacts/{id}", path_params={"id": latest[0].latest_id}, json={"data": data})
