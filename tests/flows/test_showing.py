"""What Prefect's UI shows of the fleet, a renewal, a block and a wait."""

from __future__ import annotations

import json
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactCollectionFilter, ArtifactCollectionFilterKey

from flows.answering import answer_worker
from flows.artifacts import FLEET, FleetStatus, fleets
from flows.reports import BLOCK, RENEWAL
from flows.sweep import sweep_workers
from lifecycle.choice import Choice
from lifecycle.settings import load_settings
from tests.flows.conftest import Scene


def _newest(key: str) -> Any:
    wanted = ArtifactCollectionFilter(key=ArtifactCollectionFilterKey(any_=[key]))
    with get_client(sync_client=True) as client:
        (found,) = client.read_latest_artifacts(artifact_filter=wanted)
    return found.data


def _row() -> dict[str, str]:
    rows: list[dict[str, str]] = json.loads(_newest(FLEET + load_settings().host_name))
    (row,) = rows
    return row


def _fleet() -> FleetStatus:
    (found,) = [fleet for fleet in fleets() if fleet.host == load_settings().host_name]
    return found


def test_each_sweep_refreshes_the_table_and_what_other_hosts_read(scene: Scene) -> None:
    scene.stage.fill(20_000)
    sweep_workers(renewals="here")
    assert _row() == {
        "worker": "swarm1",
        "state": "healthy",
        "tokens of limit": "20,000 of 60,000",
        "last handoff": "never",
        "block": "",
        "accepting work": "yes",
        "automatic": "on",
    }
    before = _fleet()

    scene.stage.fill(70_000)
    scene.stage.behave(handoff="old_id")
    sweep_workers(renewals="here")

    assert (_row()["state"], _row()["accepting work"]) == ("blocked", "no")
    after = _fleet()
    assert after.at > before.at
    assert after.workers[0].block is not None
    assert after.workers[0].block.reason == _row()["block"]

    page = _newest(f"{BLOCK}swarm1")
    assert scene.block.reason in page
    for choice in scene.block.choices:
        assert f"afresh answer swarm1 {choice}" in page


def test_a_renewals_page_tells_before_handoff_after_and_times(scene: Scene) -> None:
    scene.stage.behave(next_action="``` <img src=x> [press](javascript:1) token=ghp_0123456789012345678901234567890123")
    scene.renew()

    page = _newest(f"{RENEWAL}swarm1")

    renewal = scene.renewal
    assert renewal.saved is not None
    assert renewal.acknowledgement is not None
    for told in ("70,000", renewal.acknowledgement.session_id, str(renewal.saved.archive), "| proved |"):
        assert told in page
    assert "ghp_" not in page
    fence = page[: page.index("<img")].rpartition("text\n")[0].rpartition("\n")[2]
    assert len(fence) > len("```"), "a longer fence than the worker's own"


def test_an_answered_worker_comes_back_in_the_run_that_answers(scene: Scene) -> None:
    scene.stage.behave(handoff="old_id")
    assert scene.renew().name == "Blocked"
    scene.stage.behave(handoff="good")

    state = answer_worker("swarm1", Choice.RETRY, why="seen in the UI", who="ada", return_state=True)

    assert state.name == "Renewed", state.message
    with scene.host() as host:
        (answered,) = [event for event in host.ledger.events("swarm1") if event.kind == "answered"]
    assert (answered.detail["who"], answered.detail["why"]) == ("ada", "seen in the UI")


@pytest.mark.usefixtures("scene")
def test_an_answer_that_fits_nothing_is_refused_in_one_line() -> None:
    state = answer_worker("swarm1", Choice.RETRY, return_state=True)
    assert (state.name, state.is_failed()) == ("Refused", True)
    assert state.message == "swarm1 has no block that waits for an answer"

    unknown = answer_worker("swarm9", Choice.RETRY, return_state=True)
    assert unknown.name == "Refused"
    assert unknown.message == "worker swarm9 is unknown; managed workers: swarm1"


def test_a_run_that_is_retried_answers_no_later_block(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.stage.behave(handoff="old_id")
    scene.renew()
    monkeypatch.setenv("PREFECT__RUNTIME__FLOW_RUN__ID", "the-same-run")
    assert answer_worker("swarm1", Choice.DISMISS, return_state=True).name == "Answered"

    retried = answer_worker("swarm1", Choice.DISMISS, return_state=True)
    assert retried.name == "Spared", "and no renewal is begun for it"
    monkeypatch.delenv("PREFECT__RUNTIME__FLOW_RUN__ID")
    assert scene.renew().name == "Blocked"
    monkeypatch.setenv("PREFECT__RUNTIME__FLOW_RUN__ID", "the-same-run")
    answer_worker("swarm1", Choice.DISMISS, return_state=True)

    assert scene.renewal.block is not None


def test_the_orchestrator_hears_of_request_renewal_and_block(scene: Scene) -> None:
    orchestrator = scene.stage.another("orchestrator")
    orchestrator.start()
    orchestrator.wait_ready()
    (scene.stage.ground.memory_root / "swarm.yaml").write_text("version: 1\nworkers:\n  - id: orchestrator\n")

    assert scene.renew().name == "Renewed"
    orchestrator.wait_ready()
    scene.stage.behave(handoff="old_id")
    assert scene.renew().name == "Blocked"

    with scene.host() as host:
        told = [event for event in host.ledger.events("swarm1") if event.kind == "orchestrator.told"]
    assert [event.detail["occasion"] for event in told] == ["requested", "renewed", "requested", "blocked"]
    typed = [row.content.split()[1] for row in orchestrator.rows() if row.role == "user"]
    assert typed == [event.detail["occasion"] for event in told if event.detail["way"] == "pane"]
    assert typed[0] == "requested"
