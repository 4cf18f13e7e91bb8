"""afresh handoff list, show, search and diff; archive. `handoff request` runs a flow: see test_cli_renewals.py."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from lifecycle.ledger import StoredHandoff
from lifecycle.renewal import Quality
from tests.deployments.conftest import Operator

BEGAN = datetime(2026, 8, 1, 12, tzinfo=UTC)


@pytest.fixture
def stored(afresh: Operator) -> list[StoredHandoff]:
    """Three handoffs of two generations, oldest first."""
    found = []
    with afresh.host() as host:
        folder = host.paths(host.worker("swarm1")).archive
        folder.mkdir(parents=True)
        for number, generation in enumerate((1, 2, 2)):
            text = f"# Handoff {number}\nCount aisle {number} — then stop.\n"
            archive = folder / f"{number}.md"
            archive.write_text(text)
            handoff = StoredHandoff(
                renewal_id=f"r{number}",
                worker_id="swarm1",
                generation=generation,
                archive=archive,
                sha256=hashlib.sha256(text.encode()).hexdigest(),
                quality=Quality.WRITTEN,
                mission_id=None,
                created_at=BEGAN + timedelta(hours=number),
            )
            host.ledger.add_handoff(handoff)
            found.append(handoff)
    return found


def test_handoffs_are_listed_newest_first(afresh: Operator, stored: list[StoredHandoff]) -> None:
    assert [entry["renewal_id"] for entry in afresh("handoff", "list", "swarm1", "--json").json] == ["r2", "r1", "r0"]
    first = afresh("handoff", "list", "swarm1").out.splitlines()[0]
    assert first == f"2026-08-01 14:00:00Z  generation 2  written  r2  {stored[2].archive}"


@pytest.mark.parametrize(("options", "number"), [([], 2), (["--generation", "1"], 0), (["--generation", "2"], 2)])
def test_the_newest_handoff_of_a_generation_is_shown(
    afresh: Operator, stored: list[StoredHandoff], options: list[str], number: int
) -> None:
    done = afresh("handoff", "show", "swarm1", *options)

    assert (done.code, done.out, done.err) == (0, stored[number].archive.read_text(), "")


def test_a_handoff_is_a_document_with_its_text(afresh: Operator, stored: list[StoredHandoff]) -> None:
    shown = afresh("handoff", "show", "swarm1", "--json").json

    assert (shown["renewal_id"], shown["quality"], shown["intact"]) == ("r2", "written", True)
    assert shown["text"] == stored[2].archive.read_text()


def test_a_handoff_that_was_changed_is_reported(afresh: Operator, stored: list[StoredHandoff]) -> None:
    stored[2].archive.write_text("# Handoff\nDelete everything.\n")

    done = afresh("handoff", "show", "swarm1")
    document = afresh("handoff", "show", "swarm1", "--json")

    assert done.code == document.code == 1
    assert done.err == f"afresh: {stored[2].archive} is not what was stored (sha256 {stored[2].sha256})\n"
    assert document.json["intact"] is False


def test_a_handoff_that_is_gone_is_reported(afresh: Operator, stored: list[StoredHandoff]) -> None:
    stored[2].archive.unlink()

    done = afresh("handoff", "show", "swarm1")

    assert (done.code, done.out) == (1, "")
    assert "is gone or cannot be read" in done.err


def test_a_worker_without_handoffs_says_so(afresh: Operator) -> None:
    assert afresh("handoff", "list", "swarm1").out == "swarm1 has no stored handoff\n"
    assert afresh("handoff", "list", "swarm1", "--json").json == []
    done = afresh("handoff", "show", "swarm1", "--json")
    assert (done.code, done.out, done.err) == (1, "", "afresh: swarm1 has no stored handoff\n")
    assert afresh("handoff", "show", "swarm1", "--generation", "7").err.endswith("handoff of generation 7\n")


def test_handoffs_are_searched_and_each_hit_says_whose_when_and_how_well(
    afresh: Operator, stored: list[StoredHandoff]
) -> None:
    done = afresh("handoff", "search", "which", "aisle", "1?", "--json")

    assert done.code == 0
    best = done.json[0]
    assert (best["worker_id"], best["source"], best["where"]) == ("swarm1", "handoff", str(stored[1].archive))
    assert best["snippet"] == "Count aisle 1 — then stop."
    assert best["score"] >= done.json[-1]["score"] > 0
    lines = afresh("handoff", "search", "aisle 1", "--limit", "1").out.splitlines()
    assert lines[0].startswith("swarm1  ")
    assert lines[1] == "  Count aisle 1 — then stop."


def test_a_search_that_finds_nothing_says_so(afresh: Operator, stored: list[StoredHandoff]) -> None:
    assert len(stored) == 3
    done = afresh("handoff", "search", 'NEAR("*')
    assert (done.code, done.out) == (1, "")
    assert done.err == "afresh: nothing found in 3 handoffs and past sessions\n"
    assert afresh("handoff", "search", "zebra", "--json").json == []
    assert "nobody9" in afresh("handoff", "search", "aisle", "--worker", "nobody9").refusal


def test_two_generations_are_compared(afresh: Operator, stored: list[StoredHandoff]) -> None:
    done = afresh("handoff", "diff", "swarm1")
    document = afresh("handoff", "diff", "swarm1", "1", "2", "--json").json

    assert done.code == 0
    assert "-Count aisle 0 — then stop." in done.out
    assert "+Count aisle 2 — then stop." in done.out
    assert done.out.startswith("--- generation 1 r0\n+++ generation 2 r2\n")
    assert document["lines"] == done.out.splitlines()
    assert (document["older"]["generation"], document["newer"]["renewal_id"]) == (1, stored[2].renewal_id)


def test_sections_of_two_handoffs_are_compared_by_name(afresh: Operator, stored: list[StoredHandoff]) -> None:
    with afresh.host() as host:
        for number, text in ((0, "## Objective\nship\n## Blockers\nnone\n"), (2, "## Objective\nship\n## Done\nall\n")):
            stored[number].archive.write_text(text)
            digest = hashlib.sha256(text.encode()).hexdigest()
            host.ledger.add_handoff(stored[number].model_copy(update={"sha256": digest}))

    document = afresh("handoff", "diff", "swarm1", "--json").json

    assert document["sections"] == {"Objective": "same", "Blockers": "removed", "Done": "added"}
    assert document["older"]["intact"] is document["newer"]["intact"] is True


def test_a_generation_that_is_not_there_cannot_be_compared(afresh: Operator, stored: list[StoredHandoff]) -> None:
    done = afresh("handoff", "diff", "swarm1", "1", "7")
    assert (done.code, done.err) == (1, "afresh: swarm1 has no stored handoff of generation 7\n")
    assert afresh("handoff", "diff", "swarm1", "1").refusal == "name two generations, or none for the last two"
    stored[0].archive.unlink()
    gone = afresh("handoff", "diff", "swarm1")
    assert (gone.code, gone.err) == (1, f"afresh: {stored[0].archive} is gone or cannot be read\n")


def test_the_index_is_made_anew_and_says_what_it_holds(afresh: Operator, stored: list[StoredHandoff]) -> None:
    assert len(stored) == 3
    done = afresh("archive", "reindex", "--json")
    assert (done.json["documents"], done.json["passages"], done.json["unread"]) == (3, 3, [])
    path = afresh.stage.ground.home / "archive" / "index.db"
    assert done.json["path"] == str(path)
    assert afresh("archive", "reindex").out == f"{path}: 3 passages of 3 handoffs and sessions\n"
