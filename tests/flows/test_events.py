"""Every transition in the ledger's journal, as an event of Prefect's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.events.worker import EventsWorker

from flows.sweep import sweep_workers
from tests.flows.conftest import Scene

Found = list[dict[str, Any]]


@pytest.fixture
def events_of(scene: Scene) -> Callable[[str], Found]:
    """Every event of this test that the server holds, oldest first, once it holds one of that name."""
    began = datetime.now(UTC).isoformat()

    def read(awaited: str) -> Found:
        EventsWorker.drain_all(timeout=10)

        def probe() -> Found | None:
            ours = {"event": {"prefix": ["afresh.worker."]}, "occurred": {"since": began}, "order": "ASC"}
            with get_client(sync_client=True) as client:
                found: Found = client.request("POST", "/events/filter", json={"filter": ours}).json()["events"]
            return found if f"afresh.worker.{awaited}" in {event["event"] for event in found} else None

        return scene.stage.wait(probe, 60, f"the event {awaited}")

    return read


def test_every_transition_of_a_renewal_is_an_event_of_its_worker_and_its_run(
    scene: Scene, events_of: Callable[[str], Found]
) -> None:
    with scene.host() as host:
        host.event("held", host.worker("swarm1"), who="ada", why="a look")
        host.event("released", host.worker("swarm1"), who="ada", why="seen")
    sweep_workers(renewals="here")

    found = events_of("renewed")

    names = Counter(event["event"].removeprefix("afresh.worker.") for event in found)
    with scene.host() as host:
        journal = [event for event in host.ledger.events("swarm1") if event.kind != "notice"]
    assert names == Counter(event.kind.removeprefix("renewal.") for event in journal)
    assert {"held", "released", "opened", "requested", "saved", "stopped", "renewed"} <= set(names)
    renewed = next(event for event in found if event["event"] == "afresh.worker.renewed")
    assert renewed["resource"]["prefect.resource.id"] == "afresh.worker.swarm1"
    roles = {related["prefect.resource.role"] for related in renewed["related"]}
    assert {"flow-run", "task-run", "renewal"} <= roles


def test_what_a_sweep_notices_is_an_event_once(scene: Scene, events_of: Callable[[str], Found]) -> None:
    scene.stage.stop()
    for _ in range(2):
        sweep_workers(renewals="here")

    assert [event["event"] for event in events_of("absent")] == ["afresh.worker.absent"]
