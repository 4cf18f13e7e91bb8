from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from lifecycle.errors import MemoryNotWritten
from lifecycle.memory_events import append_event
from lifecycle.paths import WorkerPaths

AT = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)


@pytest.fixture
def paths(tmp_path: Path) -> WorkerPaths:
    profile = tmp_path / "swarm7"
    profile.mkdir()
    return WorkerPaths(worker_id="swarm7", profile=profile, memory_root=tmp_path, home=tmp_path)


def append(
    paths: WorkerPaths, *, mission_id: str | None = "mission-a1", summary: str = "Asked.", at: datetime = AT
) -> None:
    append_event(
        paths,
        kind="handoff-requested",
        summary=summary,
        mission_id=mission_id,
        assignment_id="assign-1" if mission_id else None,
        event={"sharedHandoffPath": "/w/ü.md", "ok": True},
        at=at,
    )


def events(paths: WorkerPaths) -> Path:
    return paths.memory / "missions" / "mission-a1" / "events.jsonl"


def episode(paths: WorkerPaths) -> Path:
    return paths.memory / "episodes" / "2026-03-04.md"


def test_an_event_has_the_reference_systems_line(paths: WorkerPaths) -> None:
    append(paths)
    assert events(paths).read_text() == (
        '{"at":"2026-03-04T05:06:07.089Z","type":"handoff-requested","workerId":"swarm7","missionId":"mission-a1",'
        '"assignmentId":"assign-1","summary":"Asked.","event":{"sharedHandoffPath":"/w/ü.md","ok":true}}\n'
    )


def test_an_episode_has_the_reference_systems_form(paths: WorkerPaths) -> None:
    append(paths)
    append(paths, mission_id=None, summary="Two\nlines.")
    assert episode(paths).read_text() == (
        "# Episodes — swarm7 — 2026-03-04\n\n"
        "\n## 05:06 UTC — handoff-requested\n- Mission: mission-a1\n- Assignment: assign-1\n- Summary: Asked.\n"
        "\n## 05:06 UTC — handoff-requested\n- Summary: Two lines.\n"
    )


def test_without_a_mission_only_the_episode_is_written(paths: WorkerPaths) -> None:
    append(paths, mission_id=None)
    assert episode(paths).exists()
    assert not (paths.memory / "missions").exists()


def test_the_mission_summary_is_left_alone(paths: WorkerPaths) -> None:
    """W-17: a line for every request pushed the objective out of the startup snapshot."""
    summary = events(paths).with_name("SUMMARY.md")
    summary.parent.mkdir(parents=True)
    summary.write_text("# Mission\n")
    for _ in range(50):
        append(paths)
    assert summary.read_text() == "# Mission\n"
    assert len(events(paths).read_text().splitlines()) == 50


def test_an_event_behind_a_torn_line_stands_on_a_line_of_its_own(paths: WorkerPaths) -> None:
    """D1: a full disk left half a line, and the next append fused the two."""
    append(paths)
    with events(paths).open("a") as file:
        file.write('{"at":"2026-03-0')
    append(paths)
    first, torn, last = events(paths).read_text().splitlines()
    assert json.loads(first) == json.loads(last)
    assert torn == '{"at":"2026-03-0'


def test_the_day_is_a_utc_day(paths: WorkerPaths) -> None:
    append(paths, at=datetime(2026, 3, 4, 23, 30, tzinfo=timezone(timedelta(hours=-5))))
    assert (paths.memory / "episodes" / "2026-03-05.md").exists()


def test_secrets_and_control_characters_do_not_reach_memory(paths: WorkerPaths) -> None:
    append(paths, summary="\x1b[201~set DB_PASSWORD=hunter2\u2028")
    assert "DB_PASSWORD=[redacted:password]" in events(paths).read_text()
    assert "hunter2" not in episode(paths).read_text()
    assert "\x1b" not in episode(paths).read_text()


@pytest.mark.parametrize("mission_id", ["../../../x", ".", "a/b"])
def test_a_mission_id_that_leaves_the_folder_is_refused(paths: WorkerPaths, mission_id: str) -> None:
    with pytest.raises(MemoryNotWritten):
        append(paths, mission_id=mission_id)
    assert not (paths.memory / "missions").exists()


def test_a_file_that_cannot_be_written_is_an_error_that_names_it(paths: WorkerPaths) -> None:
    episode(paths).mkdir(parents=True)
    with pytest.raises(MemoryNotWritten, match=r"2026-03-04\.md") as caught:
        append(paths)
    assert caught.value.worker_id == "swarm7"
