"""The orchestrator hears of renewals in its own pane, or in its inbox file; no renewal depends on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from lifecycle.host import Host
from lifecycle.orchestrator import Occasion, inbox_of, orchestrator_of, tell_orchestrator
from lifecycle.renewal import Block, Phase, Renewal
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RENEWAL = Renewal(renewal_id="r260101-abc", worker_id="swarm1", generation=1, opened_at=NOW, updated_at=NOW)


@pytest.fixture
def orchestrator(empty_stage: Stage) -> Stage:
    """Its agent, beside a worker whose own pane plays no part."""
    other = empty_stage.another("orchestrator")
    other.start()
    other.wait_ready()
    return other


@pytest.fixture
def host(empty_stage: Stage, orchestrator: Stage) -> Iterator[Host]:
    declared = {stage.worker_id: {"cwd": stage.cwd, "command": stage.command} for stage in (empty_stage, orchestrator)}
    with host_of(empty_stage, workers=declared) as host:
        yield host


def _tell(host: Host, occasion: Occasion = "requested", renewal: Renewal = RENEWAL) -> None:
    tell_orchestrator(host, host.worker("swarm1"), occasion, renewal)


def _typed(orchestrator: Stage) -> list[str]:
    return [
        row.content for row in orchestrator.rows() if row.role == "user" and row.content.startswith("AFRESH_NOTICE")
    ]


def _inbox(host: Host) -> list[dict[str, Any]]:
    path = inbox_of(host, host.worker("orchestrator"))
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_an_idle_orchestrator_is_told_in_its_pane_once_per_occasion(host: Host, orchestrator: Stage) -> None:
    for _ in range(2):
        _tell(host)
    orchestrator.wait_ready()
    _tell(host, "renewed")

    first, second = _typed(orchestrator)
    assert first.splitlines()[:4] == [
        "AFRESH_NOTICE requested",
        "WORKER: swarm1",
        "MISSION: none",
        "RENEWAL_ID: r260101-abc",
    ]
    assert second.startswith("AFRESH_NOTICE renewed")
    assert _inbox(host) == []


def test_a_second_block_of_the_same_renewal_is_told_anew_to_one_that_is_held(host: Host) -> None:
    host.ledger.remember("orchestrator", held_since=NOW)
    for second in (1, 2):
        at = NOW.replace(second=second)
        placed = Block(reason="not_ready", detail="token=ghp_secret", phase=Phase.STOPPED, at=at)
        _tell(host, "blocked", RENEWAL.model_copy(update={"block": placed}))

    told = _inbox(host)
    assert [line["event"]["reason"] for line in told] == ["not_ready", "not_ready"]
    assert "ghp_secret" not in json.dumps(told), "own words only"


def test_a_busy_orchestrator_finds_it_in_its_inbox_and_nothing_is_typed(host: Host, orchestrator: Stage) -> None:
    orchestrator.behave(turn_seconds=30)
    orchestrator.paste("a long turn")
    orchestrator.press("Enter")
    orchestrator.wait_busy()

    _tell(host)

    (line,) = _inbox(host)
    assert (line["type"], line["workerId"]) == ("requested", "swarm1")
    assert "busy" in line["event"]["notTyped"]
    assert not orchestrator.holds("AFRESH_NOTICE requested")
    assert _typed(orchestrator) == []


def test_nothing_is_typed_into_an_orchestrators_dialog(host: Host, orchestrator: Stage) -> None:
    orchestrator.paste("[[dialog]] please")
    orchestrator.press("Enter")
    orchestrator.wait(lambda: "Allow once" in orchestrator.screen(), 60, "the dialog")
    before = orchestrator.screen()

    _tell(host, "blocked")

    assert orchestrator.screen() == before
    assert "dialog" in _inbox(host)[0]["event"]["notTyped"]


def test_an_absent_orchestrator_finds_it_when_it_comes(host: Host, orchestrator: Stage) -> None:
    orchestrator.stop()
    _tell(host)
    assert len(_inbox(host)) == 1


def test_an_orchestrator_that_nobody_declared_is_never_typed_to(empty_stage: Stage, orchestrator: Stage) -> None:
    with host_of(empty_stage) as host:
        _tell(host)
        unmanaged = next(worker for worker in host.workers() if worker.worker_id == "orchestrator")
        assert inbox_of(host, unmanaged).exists()
    assert _typed(orchestrator) == []


def test_an_inbox_that_cannot_be_written_harms_nobody(host: Host, orchestrator: Stage) -> None:
    orchestrator.stop()
    (host.settings.memory_root / "memory").write_text("a file where a folder should be")
    _tell(host)
    assert [event.kind for event in host.ledger.events("swarm1")] == []


def test_a_worker_that_is_the_orchestrator_is_not_told_of_itself(host: Host) -> None:
    assert orchestrator_of(host, host.worker("orchestrator")) is None


def test_the_managed_worker_that_a_mission_names_is_told_instead(host: Host, empty_stage: Stage) -> None:
    runtime = {"currentMissionId": "m-1", "notifySessionKey": "swarm1"}
    (host.paths(host.worker("orchestrator")).runtime_json).write_text(json.dumps(runtime))
    chosen = orchestrator_of(host, host.worker("orchestrator"))
    assert chosen is not None
    assert chosen.worker_id == empty_stage.worker_id


def test_without_an_orchestrator_nobody_is_told_and_no_file_is_made(empty_stage: Stage) -> None:
    with host_of(empty_stage) as host:
        _tell(host)
        assert not (host.settings.memory_root / "memory" / "inbox").exists()
        assert host.ledger.events("swarm1") == []
