from __future__ import annotations

import json
from pathlib import Path

import pytest

from lifecycle.gathering import gather
from lifecycle.mission import Mission, current_mission
from lifecycle.orders import Orders, claimed_by, rendered
from lifecycle.paths import WorkerPaths
from lifecycle.rules import MOST, Rule
from lifecycle.worker import Worker
from tests.lifecycle.conversations import asked, called, conversation, said

MISSION = Mission(mission_id="m-1", assignment_id="a-1", title="Count", task="Count.\nRules:\n- ink only", is_open=True)


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    (tmp_path / "profile").mkdir()
    return Worker(
        worker_id="swarm1",
        profile=tmp_path / "profile",
        session="swarm-swarm1",
        greenlight_required_for=("deploy", "delete data"),
    )


def test_every_rule_names_who_gave_it(worker: Worker, tmp_path: Path) -> None:
    (worker.profile / "SOUL.md").write_text("# Rules\n- be kind\n")
    (tmp_path / "AGENTS.md").write_text("Never force-push.\n")
    found = gather(worker, MISSION, conversation(asked("You must not open drawer 9."), said("ok")), cwd=tmp_path)
    assert {rule.text: rule.source.partition(" 20")[0] for rule in found.rules} == {
        "ink only": "the assignment",
        "You must not open drawer 9.": "said to the worker",
        "be kind": "SOUL.md",
        "Never force-push.": "AGENTS.md",
    }
    assert found.greenlight == ("deploy", "delete data")
    text = rendered(found)
    assert "Wait for a person's word before: deploy, delete data [the roster]" in text
    assert "> Count." in text
    assert "Mission: m-1 — Count" in text


def test_a_mission_ledger_that_lists_rules_is_taken_at_its_word(worker: Worker, tmp_path: Path) -> None:
    paths = WorkerPaths(worker_id="swarm1", profile=worker.profile, memory_root=tmp_path, home=tmp_path)
    paths.runtime_json.write_text(json.dumps({"currentMissionId": "m-1", "currentAssignmentId": "a-1"}))
    assignment = {"id": "a-1", "workerId": "swarm1", "task": "Count.", "state": "dispatched", "rules": ["ink only"]}
    mission = {"id": "m-1", "state": "executing", "neverDo": ["open drawer 9"], "assignments": [assignment]}
    ledger = tmp_path / "missions.json"
    ledger.write_text(json.dumps({"missions": [mission]}))
    found = gather(worker, current_mission(paths, ledger=ledger), conversation())
    assert [(rule.text, rule.source) for rule in found.rules] == [
        ("Never: open drawer 9", "the mission"),
        ("ink only", "the assignment"),
    ]


def test_what_was_only_said_crosses_generation_after_generation_in_the_same_mission(worker: Worker) -> None:
    """hermes-agent #33618: a goal that hung on the session died with it."""
    mission = Mission()
    first = gather(worker, mission, conversation(asked("Count. Never open drawer 9."), asked("Always use ink.")))
    second = gather(worker, mission, conversation(asked("go on")), before=first)
    third = gather(worker, mission, conversation(asked("Never use red.")), before=second)
    assert [rule.text for rule in third.rules] == ["Never open drawer 9.", "Always use ink.", "Never use red."]
    assert third.given == "Count. Never open drawer 9."
    elsewhere = gather(worker, Mission(mission_id="m-2", is_open=True), conversation(), before=third)
    assert (elsewhere.rules, elsewhere.given) == ((), "")


def test_a_rule_that_is_said_again_stands_where_it_was_said_last(worker: Worker) -> None:
    told = conversation(asked("Never open drawer 9."), asked("Always use ink."), asked("never open drawer 9!"))
    assert [rule.text for rule in gather(worker, Mission(), told).rules] == ["Always use ink.", "never open drawer 9!"]


def test_our_own_texts_and_pasted_logs_give_no_rules(worker: Worker) -> None:
    log = "\n".join(f"2026-05-04 12:00:{number % 60:02d} ERROR you must not {number}" for number in range(300))
    ours = "RESUME_AFTER_HANDOFF\nYou must not touch anything."
    assert gather(worker, Mission(), conversation(asked(log), asked(ours))).rules == ()


def test_of_very_many_rules_the_first_and_the_last_stay(worker: Worker) -> None:
    told = conversation(*(asked(f"Never open drawer {number}.") for number in range(200)))
    found = [rule.text for rule in gather(worker, Mission(), told).rules]
    assert len(found) == MOST
    assert (found[0], found[-1]) == ("Never open drawer 0.", "Never open drawer 199.")


def test_a_mission_that_somebody_closed_is_finished(worker: Worker) -> None:
    assert gather(worker, Mission(mission_id="m-1", is_open=False), conversation()).finished
    assert not gather(worker, Mission(mission_id="m-1", is_open=True), conversation()).finished
    assert not gather(worker, Mission(), conversation()).finished


def test_files_of_rules_and_skills_are_named_to_be_read_again(worker: Worker) -> None:
    skill = worker.profile / "skills" / "count" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("how to count")
    (worker.profile / "SOUL.md").write_text("be kind")
    told = conversation(
        called("skill_view", name="count"), called("skill_view", name="../../etc"), called("skill_view")
    )
    assert gather(worker, Mission(), told).read_again == (str(worker.profile / "SOUL.md"), str(skill))


def test_an_unreadable_file_gives_no_rules(worker: Worker) -> None:
    (worker.profile / "SOUL.md").mkdir()
    (worker.profile / "USER.md").write_bytes(b"\xff\xfe never \x00")
    assert gather(worker, Mission(), conversation()).read_again == (str(worker.profile / "USER.md"),)


def test_claimed_rules_are_those_that_no_order_holds() -> None:
    orders = Orders(task="Count, and never open drawer 9.", rules=(Rule(text="ink only", source="the assignment"),))
    claimed = tuple(Rule(text=text, source="handoff") for text in ("never open drawer 9", "Ink only!", "no red ink"))
    assert claimed_by(claimed, orders) == (claimed[2],)
    assert "Claimed" in rendered(orders, claimed[2:])


def test_no_secret_of_what_was_ordered_is_kept(worker: Worker, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    (tmp_path / "AGENTS.md").write_text(f"Never push with {secret}.\n")
    told = conversation(asked(f"Always pull with {secret}."), said("ok"))
    mission = Mission(
        mission_id="m-1", title=f"Use {secret}", task=f"Use {secret}.", rules=(Rule(text=secret, source="m"),)
    )
    for one in (mission, Mission()):
        kept = gather(worker, one, told, cwd=tmp_path).model_dump_json()
        assert secret not in kept
        assert "Never push with [redacted:github-token]." in kept
