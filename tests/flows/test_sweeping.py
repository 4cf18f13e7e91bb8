"""One pass over all workers."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from prefect import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import State, StateType

from flows.asking import request_checkpoint, request_handoff_only
from flows.renewal import state_of
from flows.runs import outcome_of
from flows.sweep import sweep_workers
from lifecycle.lock import held
from lifecycle.renewal import End, Outcome, Parked, Spared
from tests.agents.stage import Stage
from tests.flows.conftest import Scene, acted


def _sweep(**parameters: Any) -> tuple[State[Any], list[dict[str, Any]]]:
    state = sweep_workers(renewals="here", return_state=True, **parameters)
    return state, acted(state)


@pytest.mark.usefixtures("scene")
def test_a_sweep_renews_a_worker_over_its_handoff_limit() -> None:
    state, entries = _sweep()

    assert state.is_completed()
    assert [(entry["worker_id"], entry["outcome"]) for entry in entries] == [("swarm1", "renewed")]


def test_a_sweep_leaves_a_healthy_worker_alone(scene: Scene) -> None:
    scene.configure(policy={"soft": 100_000, "handoff": 110_000, "hard": 115_000})
    before = scene.user_texts()

    assert _sweep()[1] == []
    assert scene.user_texts() == before


def test_a_sweep_after_a_renewal_cools_down(scene: Scene) -> None:
    _sweep()
    scene.stage.wait_ready()
    scene.stage.fill(80_000)

    assert _sweep()[1] == []


def test_a_worker_in_a_turn_is_waited_for_and_no_renewal_is_opened(scene: Scene) -> None:
    scene.stage.behave(held=True)
    scene.stage.paste("a turn")
    scene.stage.press("Enter")
    scene.stage.wait_busy()

    assert _sweep()[1] == []
    scene.stage.behave(held=False)
    scene.stage.wait_ready()
    assert [entry["outcome"] for entry in _sweep()[1]] == ["renewed"]


def test_a_worker_at_a_dialog_is_told_of_once_and_nothing_is_typed(scene: Scene) -> None:
    scene.stage.behave(handoff="dialog")
    scene.stage.paste("CONTEXT_HANDOFF_REQUIRED by someone else")
    scene.stage.press("Enter")
    scene.stage.wait(lambda: "Allow once" in scene.stage.screen(), 60, "the dialog")
    before = scene.user_texts()

    assert _sweep()[1] == []
    assert _sweep()[1] == []
    assert scene.user_texts() == before
    assert len(scene.notices()) == 1


def test_a_worker_at_watch_is_asked_once_per_session_for_a_checkpoint(scene: Scene) -> None:
    scene.configure(policy={"handoff": 80_000})

    assert [entry["outcome"] for entry in _sweep()[1]] == ["requested"]
    scene.stage.wait_ready()
    assert _sweep()[1] == []
    assert sum(text.startswith("CHECKPOINT_REQUESTED") for text in scene.user_texts()) == 1


def test_where_renewal_waits_for_the_hard_limit_the_handoff_is_stored_and_the_worker_works_on(scene: Scene) -> None:
    scene.configure(policy={"renew_on_handoff": False})
    pid = scene.stage.pane_pid

    assert [entry["outcome"] for entry in _sweep()[1]] == ["requested"]
    assert scene.stage.pane_pid == pid
    assert scene.renewal.end is End.SPARED
    assert scene.stage.paths.shared_latest.exists()
    scene.stage.wait_ready()
    assert _sweep()[1] == [], "its handoff is stored once per session"


def test_a_blocked_worker_is_left_alone_by_later_sweeps(scene: Scene) -> None:
    scene.stage.behave(handoff="partial")
    assert [entry["outcome"] for entry in _sweep()[1]] == ["blocked"]
    scene.stage.behave(handoff="good")
    before = scene.user_texts()

    assert _sweep()[1] == []
    assert scene.user_texts() == before


def _block_in_time(scene: Scene) -> None:
    scene.stage.behave(held=True)
    scene.configure(deadlines={"handoff_answer": 2})
    assert [entry["outcome"] for entry in _sweep()[1]] == ["blocked"]


def test_a_late_answer_clears_a_timeout_and_the_renewal_goes_on(scene: Scene) -> None:
    _block_in_time(scene)
    assert scene.block.reason == "handoff_timeout"
    scene.stage.behave(held=False)
    scene.stage.wait_ready()
    scene.configure()

    assert [entry["outcome"] for entry in _sweep()[1]] == ["renewed"]
    assert "block.cleared" in scene.events()


def test_two_workers_are_renewed_at_the_same_time(scene: Scene) -> None:
    other = scene.stage.another("swarm2")
    other.start()
    other.wait_ready()
    other.fill(70_000)
    scene.configure()
    path = scene.stage.ground.home / "afresh.toml"
    path.write_text(
        path.read_text() + f'\n[workers.swarm2]\nautomatic = true\ncwd = "{other.cwd}"\n'
        f'command = ["{other.command[0]}", "chat", "--cli"]\n'
    )

    outcomes = {entry["worker_id"]: entry["outcome"] for entry in _sweep()[1]}

    assert outcomes == {"swarm1": "renewed", "swarm2": "renewed"}


def test_a_handoff_can_be_requested_by_hand_while_the_worker_works_on(scene: Scene) -> None:
    pid = scene.stage.pane_pid

    state = request_handoff_only(scene.worker_id, return_state=True)

    assert state.name == "Stored"
    assert scene.stage.pane_pid == pid
    assert scene.user_texts()[-1].startswith("RENEWAL_CANCELLED")


def test_a_checkpoint_can_be_requested_by_hand(scene: Scene) -> None:
    assert request_checkpoint(scene.worker_id, return_state=True).name == "Requested"


async def _task_count(run_id: object) -> int:
    async with get_client() as client:
        runs = await client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run_id])))
        return len(runs)


def test_two_hundred_workers_are_read_in_one_task_in_under_five_seconds(
    empty_stage: Stage, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    sample = Path(__file__).parents[1] / "data" / "hermes" / "live_15turns.db"
    log = sample.with_name("live_15turns.agent.log")
    for number in range(1, 201):
        profile = empty_stage.ground.hermes_root / "profiles" / f"swarm{number}"
        (profile / "logs").mkdir(parents=True, exist_ok=True)
        shutil.copy(sample, profile / "state.db")
        shutil.copy(log, profile / "logs" / "agent.log")
        shutil.copy(empty_stage.profile / "config.yaml", profile / "config.yaml") if number > 1 else None
    Scene(empty_stage, monkeypatch)
    _sweep()  # the first call pays for Prefect's own start

    began, worked = time.monotonic(), time.process_time()
    state, entries = _sweep()
    seconds = time.process_time() - worked

    # Held against the work done, for the time that passes depends on what else the machine does.
    record_property("seconds", {"worked": seconds, "passed": time.monotonic() - began})
    assert entries == []
    assert (state.message or "").startswith("200 workers")
    assert seconds < 5
    empty_stage.wait(lambda: asyncio.run(_task_count(state.state_details.flow_run_id)) == 1, 60, "one task run")


def test_a_sweep_says_of_every_managed_worker_why_nothing_was_done(scene: Scene) -> None:
    scene.configure(automatic=False)

    state = sweep_workers(renewals="here", return_state=True)

    entries: list[dict[str, Any]] = state.result()  # type: ignore[assignment]
    (entry,) = entries
    assert (entry["worker_id"], entry["outcome"]) == ("swarm1", "none")
    assert entry["reason"].startswith("automatic renewal is off, else it would be renewed")


def _with_second_worker(scene: Scene, more: str = "") -> Stage:
    other = scene.stage.another("swarm2")
    other.start()
    other.wait_ready()
    other.fill(70_000)
    path = scene.stage.ground.home / "afresh.toml"
    path.write_text(
        path.read_text() + f'\n[workers.swarm2]\nautomatic = true\ncwd = "{other.cwd}"\n'
        f'command = ["{other.command[0]}", "chat", "--cli"]\n{more}'
    )
    return other


def test_a_record_that_cannot_be_read_hurts_no_other_worker_and_is_told_once(scene: Scene) -> None:
    _with_second_worker(scene)
    with scene.host() as host:
        host.ledger.remember("swarm1", generation=2)
        path = host.ledger.path
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("update workers set doc = '{' where worker_id = 'swarm1'")

    found = {entry["worker_id"]: (entry["outcome"], entry["reason"]) for entry in _sweep()[1]}
    again = {entry["worker_id"]: entry["outcome"] for entry in _sweep()[1]}

    assert found["swarm2"][0] == "renewed"
    assert found["swarm1"][0] == again["swarm1"] == "failed"
    assert "the stored WorkerRecord swarm1 cannot be read" in found["swarm1"][1]
    assert scene.notices().count("swarm1: cannot be looked after") == 1


def test_an_open_renewal_that_cannot_be_read_hurts_no_other_worker(scene: Scene) -> None:
    scene.stage.behave(handoff="partial")
    assert scene.renew(asked_by="sweep").name == "Blocked"
    _with_second_worker(scene)
    with scene.host() as host:
        path = host.ledger.path
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("update renewals set doc = '{' where worker_id = 'swarm1'")

    found = {entry["worker_id"]: entry["outcome"] for entry in _sweep()[1]}

    assert found == {"swarm1": "failed", "swarm2": "renewed"}


def test_a_model_whose_policy_clashes_with_one_workers_own_hurts_no_other_worker(scene: Scene) -> None:
    scene.configure(policy={"soft": 65_000, "handoff": 68_000})
    _with_second_worker(scene, "[workers.swarm2.policy]\nhandoff = 67_000\nhard = 69_000\n")
    path = scene.stage.ground.home / "afresh.toml"
    path.write_text(path.read_text() + '[models."scripted-*"]\nsoft = 67_500\n')

    found = {entry["worker_id"]: (entry["outcome"], entry["reason"]) for entry in _sweep()[1]}

    assert found["swarm1"][0] == "renewed"
    assert found["swarm2"][0] == "failed"
    assert "policy of worker swarm2: limits must rise" in found["swarm2"][1]


def test_a_stored_handoff_that_ends_blocked_is_reported_as_that(scene: Scene) -> None:
    scene.configure(policy={"renew_on_handoff": False})
    scene.stage.behave(handoff="partial")

    (entry,) = _sweep()[1]

    assert (entry["action"], entry["outcome"]) == ("handoff", "blocked")
    assert "checkpoint_incomplete" in entry["reason"]


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("Renewed", "renewed"),
        ("Spared", "spared"),
        ("Blocked", "blocked"),
        ("Parked", "parked"),
        ("Stored", "requested"),
        ("Requested", "requested"),
        ("Refused", "failed"),
        ("Failed", "failed"),
        ("Crashed", "failed"),
        ("Cancelled", "failed"),
    ],
)
def test_every_end_of_a_run_is_reported_as_what_it_is(name: str, outcome: str) -> None:
    assert outcome_of(State(type=StateType.FAILED, name=name)) == outcome


def test_nobody_looks_for_a_proof_while_a_process_is_at_work_on_the_worker(scene: Scene) -> None:
    _block_in_time(scene)
    scene.stage.behave(held=False)
    scene.stage.wait_ready()

    with held(scene.stage.paths.lock):
        assert _sweep()[1] == []

    assert "block.cleared" not in scene.events()


def test_a_held_worker_is_asked_for_nothing_by_hand_either(scene: Scene) -> None:
    with scene.host() as host:
        host.ledger.remember(scene.worker_id, held_since=host.now(), held_why="mine")
    before = scene.user_texts()

    state = request_checkpoint(scene.worker_id, return_state=True)

    assert (state.name, state.message) == ("Spared", "held (mine); afresh release swarm1 lets it go")
    assert scene.user_texts() == before


def test_no_secret_stands_in_the_message_of_a_state() -> None:
    secret = "sk-abcdef0123456789abcd"
    ends: list[Outcome] = [
        Spared(worker_id="swarm1", reason=f"the line holds {secret}"),
        Parked(worker_id="swarm1", until=None, why=f"key {secret} is over its limit"),
    ]
    assert all(secret not in (state_of(end).message or "") for end in ends)
