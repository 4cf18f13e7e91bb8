from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from lifecycle.mission import Mission, current_mission
from lifecycle.paths import WorkerPaths
from lifecycle.runtime import Runtime


@pytest.fixture
def paths(tmp_path: Path) -> WorkerPaths:
    profile = tmp_path / "swarm7"
    profile.mkdir()
    return WorkerPaths(worker_id="swarm7", profile=profile, memory_root=tmp_path, home=tmp_path)


RUNTIME = Runtime(current_mission_id="mission-a1", current_assignment_id="assign-1", current_task="write the parser")


def ledger(
    tmp_path: Path, *, mission_state: str = "executing", assignment_state: str = "dispatched", label: str | None = None
) -> Path:
    assignment: dict[str, Any] = {
        "id": "assign-1",
        "workerId": "swarm7",
        "task": "Write the parser",
        "state": assignment_state,
        "reviewRequired": True,
        "dependsOn": [],
        "checkpoint": {"stateLabel": label, "raw": ""} if label else None,
    }
    other = assignment | {"id": "assign-2", "workerId": "swarm8", "state": "done"}
    mission = {"id": "mission-a1", "title": "A parser", "state": mission_state, "assignments": [7, other, assignment]}
    path = tmp_path / "swarm-missions.json"
    path.write_text(json.dumps({"version": 1, "missions": ["odd", {"id": "mission-b2"}, mission], "more": {}}))
    return path


def test_a_worker_without_a_mission_has_an_empty_one(paths: WorkerPaths) -> None:
    assert current_mission(paths) == Mission()
    assert not current_mission(paths).has_open_assignment


def test_ids_and_task_come_from_runtime_json(paths: WorkerPaths) -> None:
    paths.runtime_json.write_text(
        json.dumps(
            {"currentMissionId": "mission-a1", "currentAssignmentId": "assign-1", "currentTask": "write", "state": 3}
        )
    )
    found = current_mission(paths)
    assert (found.mission_id, found.assignment_id, found.task) == ("mission-a1", "assign-1", "write")
    assert found.is_open
    assert found.has_open_assignment


def test_the_mission_ledger_knows_title_task_and_state(paths: WorkerPaths, tmp_path: Path) -> None:
    found = current_mission(paths, RUNTIME, ledger=ledger(tmp_path))
    assert (found.title, found.task, found.state) == ("A parser", "Write the parser", "executing")
    assert (found.assignment_state, found.review_required, found.is_open) == ("dispatched", True, True)


@pytest.mark.parametrize(
    ("mission_state", "assignment_state", "label", "is_open"),
    [
        ("executing", "dispatched", None, True),
        ("blocked", "needs_input", "NEEDS_INPUT", True),
        ("executing", "done", "DONE", False),
        ("cancelled", "dispatched", None, False),
        ("executing", "cancelled", None, False),
        ("complete", "checkpointed", "DONE", False),
        ("reviewing", "checkpointed", "DONE", False),
        ("complete", "checkpointed", "HANDOFF", True),
        ("cancelled", "checkpointed", "HANDOFF", False),
    ],
)
def test_a_mission_is_open_until_somebody_closed_it(
    paths: WorkerPaths, tmp_path: Path, mission_state: str, assignment_state: str, label: str | None, is_open: bool
) -> None:
    """W-16: the reference system completes a mission whose worker only handed over."""
    stored = ledger(tmp_path, mission_state=mission_state, assignment_state=assignment_state, label=label)
    assert current_mission(paths, RUNTIME, ledger=stored).is_open is is_open


def test_work_that_waits_for_somebody_else_is_not_expected_to_move(paths: WorkerPaths, tmp_path: Path) -> None:
    stored = ledger(tmp_path, mission_state="blocked", assignment_state="needs_input")
    assert not current_mission(paths, RUNTIME, ledger=stored).has_open_assignment
    asked = RUNTIME.model_copy(update={"checkpoint_status": "needs_input"})
    assert not current_mission(paths, asked).has_open_assignment


def test_without_an_assignment_id_the_workers_own_assignment_is_found(paths: WorkerPaths, tmp_path: Path) -> None:
    runtime = Runtime(current_mission_id="mission-a1")
    assert current_mission(paths, runtime, ledger=ledger(tmp_path)).assignment_id == "assign-1"


def test_another_workers_assignment_is_never_taken(paths: WorkerPaths, tmp_path: Path) -> None:
    runtime = Runtime(current_mission_id="mission-a1", current_assignment_id="assign-2")
    assert current_mission(paths, runtime, ledger=ledger(tmp_path)).assignment_state is None


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"missions": 7}', '{"missions": [null]}', '{"missions": [{"id": "mission-a1", "title": 3}]}'],
)
def test_a_broken_mission_ledger_says_nothing(paths: WorkerPaths, tmp_path: Path, content: str) -> None:
    path = tmp_path / "swarm-missions.json"
    path.write_text(content)
    assert current_mission(paths, RUNTIME, ledger=path) == current_mission(paths, RUNTIME)
    assert current_mission(paths, RUNTIME, ledger=tmp_path / "gone") == current_mission(paths, RUNTIME)


def test_a_mission_ledger_that_changed_is_read_anew(paths: WorkerPaths, tmp_path: Path) -> None:
    stored = ledger(tmp_path)
    assert current_mission(paths, RUNTIME, ledger=stored).state == "executing"
    stamp = stored.stat().st_mtime_ns
    ledger(tmp_path, mission_state="cancelled")
    os.utime(stored, ns=(stamp, stamp))
    assert current_mission(paths, RUNTIME, ledger=stored).state == "cancelled"


def test_of_a_mission_that_is_listed_twice_the_first_counts(paths: WorkerPaths, tmp_path: Path) -> None:
    stored = ledger(tmp_path)
    listed = json.loads(stored.read_text())["missions"]
    stored.write_text(json.dumps({"missions": [7, {"id": None}, *listed, {"id": "mission-a1", "title": "Another"}]}))
    assert current_mission(paths, RUNTIME, ledger=stored).title == "A parser"


@pytest.mark.parametrize("bad", ["../../etc", "a/b", ".hidden", "x" * 200, "a b", "a\nb"])
def test_an_id_that_could_leave_its_folder_is_left_out(paths: WorkerPaths, bad: str) -> None:
    assert current_mission(paths, Runtime(current_mission_id=bad)).mission_id is None


def test_a_mission_that_reported_done_is_not_open(paths: WorkerPaths) -> None:
    assert not current_mission(paths, Runtime(current_mission_id="mission-a1", checkpoint_status="done")).is_open
    assert current_mission(paths, Runtime(current_mission_id="mission-a1", checkpoint_status="handoff")).is_open


def test_a_task_that_no_ledger_and_no_session_could_hold_keeps_its_two_ends(paths: WorkerPaths, tmp_path: Path) -> None:
    long = f"\ud83d begin {'{!touch ran}' * 2**20} end"
    path = tmp_path / "swarm-missions.json"
    given = {"id": "assign-1", "workerId": "swarm7", "task": long}
    path.write_text(json.dumps({"missions": [{"id": "mission-a1", "title": "\udc00", "assignments": [given]}]}))

    for found in (
        current_mission(paths, RUNTIME, ledger=path),
        current_mission(paths, Runtime(current_task=long)),
    ):
        assert Mission.model_validate_json(found.model_dump_json()) == found
        assert found.task.startswith("? begin {!touch ran}")
        assert found.task.endswith("{!touch ran} end")
        assert "characters left out" in found.task
        assert len(found.task) < 100_000
