"""What crosses a renewal, through all eight steps with the scripted agent in a real pane."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifecycle.answering import answer
from lifecycle.choice import Choice
from lifecycle.ending import block
from lifecycle.errors import HandoffOutdated, LifecycleError
from lifecycle.handoff import IDENTIFIERS, ORDERS, TRANSCRIPT
from lifecycle.host import Host
from lifecycle.renewal import Block, OpenedRenewal, Renewal
from lifecycle.resumption import LAST_WORDS, Resumption
from lifecycle.status import status_of
from lifecycle.steps.detecting import detect_context_pressure
from lifecycle.steps.parsing import parse_handoff
from lifecycle.steps.persisting import persist_handoff
from lifecycle.steps.proving import mark_healthy
from lifecycle.steps.requesting import request_handoff
from lifecycle.steps.respawning import respawn_worker
from lifecycle.steps.resuming import send_resume_prompt
from lifecycle.steps.stopping import stop_worker
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of


@pytest.fixture
def host(stage: Stage) -> Iterator[Host]:
    stage.fill(70_000)
    with host_of(stage) as host:
        yield host


def renew(host: Host) -> Renewal:
    """All eight steps, from where the renewal stands; an error blocks."""
    worker = host.worker("swarm1")
    try:
        opened = detect_context_pressure(host, worker, by_hand=True)
        assert isinstance(opened, OpenedRenewal), opened
        worker = host.governed(worker, opened.reading)
        saved = persist_handoff(host, worker, parse_handoff(host, worker, request_handoff(host, worker, opened)))
        running = respawn_worker(host, worker, stop_worker(host, worker, saved))
        mark_healthy(host, worker, send_resume_prompt(host, worker, running, saved))
    except LifecycleError as error:
        opened_one = host.ledger.record("swarm1").open_renewal
        assert opened_one is not None
        block(host, worker, opened_one, error)
    return host.ledger.renewals_of("swarm1", limit=1)[0]


def pack_of(renewal: Renewal) -> str:
    assert renewal.block is None, renewal.block
    assert renewal.resume is not None
    assert renewal.resume.pack is not None
    return renewal.resume.pack.read_text()


def archive_of(renewal: Renewal) -> str:
    assert renewal.saved is not None
    return renewal.saved.archive.read_text()


def blocked(renewal: Renewal) -> Block:
    assert renewal.block is not None
    return renewal.block


def user_texts(stage: Stage) -> list[str]:
    return [row.content for row in stage.rows() if row.role == "user"]


def test_the_third_generation_still_has_what_the_first_was_told(host: Host, stage: Stage) -> None:
    stage.answer_to(stage.say("Never open drawer nine. Use blue ink only."))
    stage.wait_ready()

    renewals = [renew(host) for _ in range(3)]

    for generation, renewal in enumerate(renewals, start=2):
        pack = pack_of(renewal)
        assert renewal.resume is not None
        assert f"\nPACK: {renewal.resume.pack}\nPACK_SHA256: " in renewal.resume.text
        assert "Read the PACK file first" in renewal.resume.text
        assert pack.splitlines()[-1].startswith("NEXT_ACTION: count the packets of drawer three")
        assert pack.splitlines()[0].startswith(f"# Resume — worker swarm1 — generation {generation} — ")
        assert "Never open drawer nine. [said to the worker " in pack
        assert "Never open drawer nine." in archive_of(renewal).partition(f"## {ORDERS}")[2]
        assert renewal.acknowledgement is not None
        assert renewal.acknowledgement.fit is not None
        assert renewal.acknowledgement.fit.verdict == "proved"


def test_what_the_document_lacks_is_asked_for_once_and_then_added(host: Host, stage: Stage) -> None:
    used = ["/srv/seeds/a.csv", "/srv/seeds/b.csv", "/srv/seeds/c.csv", "8443", "PAY-9"]
    stage.answer_to(stage.say(f"Move {used[0]}, {used[1]} and {used[2]} to port {used[3]}, see {used[4]}."))
    stage.wait_ready()

    renewal = renew(host)

    assert renewal.correction is not None
    assert "5 of 6 paths, ports, URLs, commits and ticket ids used last are missing" in renewal.correction.text
    assert "a.csv" not in renewal.correction.text, "it is the worker's word, and stands in the file"
    listed = next(line for line in renewal.correction.text.splitlines() if line.startswith("MISSING: "))
    assert all(one in Path(listed.removeprefix("MISSING: ")).read_text() for one in used)
    document = archive_of(renewal)
    assert "The ledger in this folder holds one line for each packet" in document, "the worker's words are there"
    assert f"## {TRANSCRIPT}" in document
    assert "/srv/seeds/a.csv" in document.partition(f"## {TRANSCRIPT}")[2] or IDENTIFIERS in document
    assert all(one in document for one in used)
    assert all(one in pack_of(renewal) for one in used)


def test_who_asked_a_person_resumes_as_waiting_for_the_answer(host: Host, stage: Stage) -> None:
    stage.behave(next_action="drop the table of drawer three. Execute now?")

    renewal = renew(host)

    assert pack_of(renewal).splitlines()[-1] == f"NEXT_ACTION: {LAST_WORDS[Resumption.ANSWER]}"
    assert renewal.resume is not None
    assert renewal.resume.text.splitlines()[-1] == f"NEXT_ACTION: {LAST_WORDS[Resumption.ANSWER]}"
    assert not any(text.startswith("CONTINUE") for text in user_texts(stage))
    runtime = json.loads((stage.profile / "runtime.json").read_text())
    assert (runtime["state"], runtime["needsHuman"]) == ("waiting", True)
    notices = [event.detail for event in host.ledger.events("swarm1", limit=500) if event.kind == "notice"]
    assert "waits for a person's answer" in [notice["subject"] for notice in notices]


def test_a_finished_mission_is_not_resumed(host: Host, stage: Stage) -> None:
    """aidevops #27978: a finished "research only" worker went on, committed and pushed."""
    (stage.profile / "runtime.json").write_text(json.dumps({"currentMissionId": "m-1", "currentAssignmentId": "a-1"}))
    ledger = stage.ground.memory_root / ".runtime" / "swarm-missions.json"
    ledger.parent.mkdir(parents=True)
    assignment = {"id": "a-1", "workerId": "swarm1", "task": "Count. Never open drawer nine.", "state": "done"}
    ledger.write_text(json.dumps({"missions": [{"id": "m-1", "state": "complete", "assignments": [assignment]}]}))

    renewal = renew(host)

    assert pack_of(renewal).splitlines()[-1] == f"NEXT_ACTION: {LAST_WORDS[Resumption.FINISHED]}"
    assert "The mission is finished" in pack_of(renewal)
    assert not any(text.startswith("CONTINUE") for text in user_texts(stage))


def test_one_that_will_not_answer_is_spoken_for_where_the_policy_says_so(stage: Stage) -> None:
    stage.fill(70_000)
    stage.behave(handoff="partial")
    with host_of(stage, policy={"on_missing_handoff": "synthesize"}) as host:
        renewal = renew(host)

    assert renewal.substitute == "synthesize"
    assert renewal.correction is not None, "it was asked once more first"
    assert pack_of(renewal).splitlines()[-1] == f"NEXT_ACTION: {LAST_WORDS[Resumption.REGROUND]}"
    assert 'quality: "synthesized"' in archive_of(renewal)
    assert not any(text.startswith("CONTINUE") for text in user_texts(stage))


def test_what_a_worker_does_after_it_was_spoken_for_is_not_lost(stage: Stage) -> None:
    stage.fill(70_000)
    stage.behave(handoff="partial")
    with host_of(stage, policy={"on_missing_handoff": "synthesize"}) as host:
        worker = host.worker("swarm1")
        opened = detect_context_pressure(host, worker, by_hand=True)
        assert isinstance(opened, OpenedRenewal)
        worker = host.governed(worker, opened.reading)
        saved = persist_handoff(host, worker, parse_handoff(host, worker, request_handoff(host, worker, opened)))
        pid = stage.pane_pid
        stage.answer_to(stage.say("one more drawer, please"))

        with pytest.raises(HandoffOutdated):
            stop_worker(host, worker, saved)

    assert stage.pane_pid == pid


def test_a_weak_resume_is_told_and_the_second_in_a_row_waits_for_a_human(host: Host, stage: Stage) -> None:
    stage.behave(resume="astray")

    first = renew(host)
    assert first.acknowledgement is not None
    assert first.acknowledgement.fit is not None
    assert first.acknowledgement.fit.verdict == "weak"
    row = status_of(host, host.worker("swarm1"))
    assert (row.weak_resumes, "its last resume was weak" in row.why) == (1, True)
    assert {"resume.weak"} <= {event.kind for event in host.ledger.events("swarm1", limit=500)}

    second = renew(host)
    placed = blocked(second)
    assert (placed.reason, placed.worker_down) == ("weak_resume", False)
    assert placed.choices == ("retry", "dismiss", "hold")
    assert "paint the fence" in placed.evidence
    assert "count the packets of drawer three" in placed.evidence

    stage.behave(resume="good")
    answer(host, host.worker("swarm1"), Choice.RETRY, who="me")
    third = renew(host)
    assert third.renewal_id == second.renewal_id
    assert (third.block, third.reminder is not None) == (None, True)
    assert host.ledger.record("swarm1").weak_resumes == 0


def test_a_human_who_lets_a_weak_resume_be_ends_the_row(host: Host, stage: Stage) -> None:
    host.ledger.remember("swarm1", weak_resumes=1)
    stage.behave(resume="astray")
    assert blocked(renew(host)).reason == "weak_resume"

    answer(host, host.worker("swarm1"), Choice.DISMISS, who="me")

    record = host.ledger.record("swarm1")
    assert (record.weak_resumes, record.generation, record.open_renewal) == (0, 2, None)


def test_a_worker_whose_pack_cannot_be_written_comes_up_without_one(host: Host, stage: Stage) -> None:
    (stage.ground.home / "packs").write_text("no folder")

    renewal = renew(host)

    assert renewal.block is None
    assert renewal.resume is not None
    assert renewal.resume.pack is None
    assert "Read the HANDOFF file first" in renewal.resume.text
    assert any(event.kind == "pack.failed" for event in host.ledger.events("swarm1", limit=500))
