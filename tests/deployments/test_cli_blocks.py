"""afresh blocked and answer, as far as no flow is run. What each answer changes is in lifecycle/test_answering.py."""

from __future__ import annotations

import pytest

from lifecycle.decision import Action, Decision
from lifecycle.ending import block_outright
from lifecycle.renewal import Renewal
from tests.deployments.conftest import Operator


@pytest.fixture
def stuck(running: Operator) -> Operator:
    """A worker whose renewal is blocked; nothing was asked of it."""
    running.stage.fill(70_000)
    with running.host() as host:
        worker = host.worker("swarm1")
        decision = Decision(action=Action.BLOCK, block="renewal_loop", reason="4 renewals in an hour")
        blocked = block_outright(host, worker, decision, host.read(worker, host.process(worker)))
        host.ledger.put(
            blocked.renewal.model_copy(
                update={"block": blocked.block.model_copy(update={"evidence": "line one\nline two"})}
            )
        )
    return running


def newest(operator: Operator) -> Renewal:
    with operator.host() as host:
        return host.ledger.renewals_of("swarm1", limit=1)[0]


def test_a_block_is_listed_with_evidence_and_answers(stuck: Operator) -> None:
    done = stuck("blocked")

    assert done.code == 0
    first, *rest = done.out.splitlines()
    assert first.startswith("swarm1: renewal_loop, at opened, 20")
    assert rest == [
        "  4 renewals in an hour",
        "  | line one",
        "  | line two",
        "  Answer with `afresh answer swarm1 retry|force|synthesize|use-text|dismiss|hold`.",
    ]


def test_a_block_is_a_document_with_all_of_it(stuck: Operator) -> None:
    (entry,) = stuck("blocked", "--json").json

    assert (entry["worker_id"], entry["renewal_id"]) == ("swarm1", newest(stuck).renewal_id)
    assert (entry["block"]["reason"], entry["block"]["phase"]) == ("renewal_loop", "opened")
    assert entry["block"]["evidence"] == "line one\nline two"
    assert entry["remedy"].startswith("Answer with ")


def test_status_shows_the_block_and_its_answers(stuck: Operator) -> None:
    (row,) = stuck("status", "--json").json

    assert (row["state"], row["lifecycle_state"], row["phase"]) == ("blocked", "blocked", "opened")
    assert row["block"]["reason"] == "renewal_loop"
    assert "dismiss" in row["block"]["choices"]
    assert row["renewal_id"] == newest(stuck).renewal_id
    assert "renewal_loop: 4 renewals in an hour" in stuck("status").out


def test_the_block_of_a_worker_that_nobody_declares_any_more_is_still_listed(stuck: Operator) -> None:
    stuck.toml.write_text(f'socket = "{stuck.stage.ground.socket}"\n')
    stuck.stage.profile.rename(stuck.stage.root / "gone")

    (entry,) = stuck("blocked", "--json").json

    assert entry["worker_id"] == "swarm1"
    assert "worker swarm1 is unknown" in entry["remedy"]


def test_dismiss_closes_the_block(stuck: Operator) -> None:
    done = stuck("answer", "swarm1", "dismiss", "--why", "I raised the limits", "--json")

    assert done.code == 0
    assert (done.json["choice"], done.json["goes_on"]) == ("dismiss", False)
    assert (newest(stuck).end, newest(stuck).end_reason) == ("dismissed", "I raised the limits")
    assert stuck("blocked", "--json").json == []


def test_hold_closes_the_block_and_holds_the_worker(stuck: Operator) -> None:
    done = stuck("answer", "swarm1", "hold")

    assert (done.code, done.out) == (0, f"renewal {newest(stuck).renewal_id} is closed\n")
    assert stuck("status", "--json").json[0]["lifecycle_state"] == "held"


def test_an_answer_without_a_block_is_wrong_usage(running: Operator) -> None:
    for choice in ("retry", "force", "synthesize", "dismiss", "hold"):
        assert running("answer", "swarm1", choice).refusal == "swarm1 has no block that waits for an answer"


def test_the_file_of_use_text_must_be_there_and_be_text(stuck: Operator) -> None:
    binary = stuck.stage.root / "handoff.bin"
    binary.write_bytes(b"\xff\xfe\x00")
    empty = stuck.stage.root / "handoff.md"
    empty.write_text(" \n")

    assert "No such file" in stuck("answer", "swarm1", "use-text", "/nowhere/handoff.md").refusal
    assert f"{binary}: not UTF-8 text" in stuck("answer", "swarm1", "use-text", str(binary)).refusal
    assert "not empty" in stuck("answer", "swarm1", "use-text", str(empty)).refusal
    assert newest(stuck).block is not None
