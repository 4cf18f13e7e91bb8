"""afresh history and undo. What undoing does with a real pane: see tests/lifecycle/test_undoing.py."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lifecycle.durable import make_private
from lifecycle.ledger import StoredHandoff
from lifecycle.reading import ContextReading, Source
from lifecycle.renewal import End, Phase, Quality, Renewal
from tests.deployments.conftest import Operator

BEGAN = datetime(2026, 8, 1, 12, tzinfo=UTC)


@pytest.fixture
def renewed(afresh: Operator) -> list[Path]:
    """Two renewals of swarm1 with their handoffs, the second of which is latest."""
    archives = []
    with afresh.host() as host:
        paths = host.paths(host.worker("swarm1"))
        make_private(paths.archive)
        make_private(paths.shared_latest.parent)
        make_private(paths.handoffs)
        for number in (1, 2):
            at = BEGAN + timedelta(hours=number)
            text = f"# Handoff {number}\n"
            archive = paths.archived(at, f"r{number}")
            archive.write_text(text)
            archives.append(archive)
            reading = ContextReading(
                worker_id="swarm1", at=at, session_id=f"s{number}", tokens=70_000 + number, source=Source.API_LOG
            )
            renewal = Renewal(
                renewal_id=f"r{number}",
                worker_id="swarm1",
                generation=number,
                opened_at=at,
                updated_at=at + timedelta(seconds=42),
                why="over the handoff limit",
                reading=reading,
            )
            host.ledger.open(renewal)
            host.ledger.put(renewal.model_copy(update={"end": End.RENEWED, "phase": Phase.PROVED}))
            host.ledger.add_handoff(
                StoredHandoff(
                    renewal_id=f"r{number}",
                    worker_id="swarm1",
                    generation=number,
                    archive=archive,
                    sha256=hashlib.sha256(text.encode()).hexdigest(),
                    quality=Quality.WRITTEN,
                    mission_id=None,
                    created_at=at,
                )
            )
            paths.shared_latest.write_text(text)
            paths.latest.write_text(text)
    return archives


def test_the_history_says_what_every_renewal_came_to(afresh: Operator, renewed: list[Path]) -> None:
    found = afresh("history", "swarm1", "--json").json

    assert [(entry["renewal_id"], entry["is_latest"]) for entry in found] == [("r2", True), ("r1", False)]
    newest = found[0]
    assert (newest["outcome"], newest["tokens_before"], newest["tokens_source"]) == ("renewed", 70_002, "api_log")
    assert (newest["quality"], newest["seconds"], newest["why"]) == ("written", 42.0, "over the handoff limit")
    assert newest["handoff"] == str(renewed[1])
    line = afresh("history", "swarm1", "--limit", "1").out.splitlines()[0]
    assert line.split("  ")[:4] == ["generation 2", "2026-08-01 14:00:00Z", "renewed", "70,002"]
    assert "written latest" in line


def test_undo_shows_its_plan_first_and_does_it_only_when_told(afresh: Operator, renewed: list[Path]) -> None:
    latest = afresh.stage.paths.shared_latest
    planned = afresh("undo", "swarm1")
    assert planned.code == 0
    assert planned.out.startswith("would put the handoff of generation 1 (written, 2026-08-01 13:00 UTC), r1, back")
    assert latest.read_text() == renewed[1].read_text()

    done = afresh("undo", "swarm1", "--yes", "--why", "the second is wrong", "--json")

    assert (done.code, done.json["done"], done.json["renewal_id"]) == (0, True, "r1")
    assert latest.read_text() == afresh.stage.paths.latest.read_text() == renewed[0].read_text()
    with afresh.host() as host:
        event = host.ledger.events("swarm1")[-1]
    assert (event.kind, event.detail["why"], event.detail["instead_of"]) == ("undone", "the second is wrong", "r2")
    again = afresh("undo", "swarm1", "--yes")
    assert again.code == 1
    assert (
        again.out == f"cannot be undone: that session s2 was ended; its words stay in {afresh.stage.paths.state_db}\n"
    )
    assert again.err == "afresh: swarm1: nothing can be undone: no handoff is older than the latest one\n"


def test_a_worker_without_a_past_has_nothing_to_show_or_undo(afresh: Operator) -> None:
    assert afresh("history", "swarm1").out == "swarm1 has not been renewed\n"
    assert afresh("history", "swarm1", "--json").json == []
    done = afresh("undo", "swarm1", "--json")
    assert (done.code, done.json["act"]) == (1, None)
    assert "nobody9" in afresh("history", "nobody9").refusal
    assert "nobody9" in afresh("undo", "nobody9").refusal
