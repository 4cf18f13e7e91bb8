from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from lifecycle.lock import held
from lifecycle.runtime_file import read_runtime, update

ROOT = Path(__file__).parents[2]
WRITERS = 8
WRITES = 25

WRITE_OFTEN = """
import sys
from pathlib import Path
from lifecycle.runtime_file import update

path, key, times = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sys.stdin.readline()
for number in range(1, times + 1):
    if not update(path, {key: number}):
        sys.exit(9)
"""


class TickingClock:
    """Time passes only by sleeping."""

    def __init__(self) -> None:
        self.passed = timedelta(0)

    def now(self) -> datetime:
        return datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC) + self.passed

    def monotonic(self) -> float:
        return self.passed.total_seconds()

    def sleep(self, span: timedelta) -> None:
        self.passed += span


class Meanwhile(Mapping[str, JsonValue]):
    """Changes during whose reading another program writes the file, so many times."""

    def __init__(self, changes: dict[str, JsonValue], path: Path, times: int) -> None:
        self.changes, self.path, self.times = changes, path, times
        self.count = 0

    def __getitem__(self, key: str) -> JsonValue:
        return self.changes[key]

    def __iter__(self) -> Iterator[str]:
        if self.count < self.times:
            self.count += 1
            self.path.write_text(json.dumps({"theirs": self.count}))
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    profile = tmp_path / "swarm7"
    profile.mkdir()
    return profile / "runtime.json"


def written(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))


def content(path: Path) -> object:
    return json.loads(path.read_text())


def test_a_write_keeps_every_key_that_it_does_not_know(path: Path) -> None:
    written(path, {"workerId": "swarm7", "tasks": [{"id": 1}], "unknown": {"deep": [None, 1.5, "ü"]}, "state": "idle"})
    assert update(path, {"state": "executing", "currentTask": None})
    assert content(path) == {
        "workerId": "swarm7",
        "tasks": [{"id": 1}],
        "unknown": {"deep": [None, 1.5, "ü"]},
        "state": "executing",
        "currentTask": None,
    }


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50)
@given(st.dictionaries(st.text(), _JSON, max_size=5), st.dictionaries(st.text(), _JSON, min_size=1, max_size=3))
def test_any_object_survives_a_write(
    tmp_path_factory: pytest.TempPathFactory, before: dict[str, JsonValue], changes: dict[str, JsonValue]
) -> None:
    path = tmp_path_factory.mktemp("swarm7") / "runtime.json"
    written(path, before)
    assert update(path, changes)
    assert content(path) == before | changes


def test_of_eight_processes_that_write_at_once_none_loses_an_update(path: Path) -> None:
    """W-33, with real processes: each counts up a key of its own, and every last count is there."""
    written(path, {"workerId": "swarm7", "currentMissionId": "mission-1"})
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE_OFTEN, str(path), f"key{number}", str(WRITES)],
            stdin=subprocess.PIPE,
            env=environment,
        )
        for number in range(WRITERS)
    ]
    try:
        for writer in writers:
            assert writer.stdin
            writer.stdin.write(b"\n")
            writer.stdin.flush()
        assert [writer.wait(240) for writer in writers] == [0] * WRITERS
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
            assert writer.stdin
            writer.stdin.close()
    counts = {f"key{number}": WRITES for number in range(WRITERS)}
    assert content(path) == {"workerId": "swarm7", "currentMissionId": "mission-1", **counts}
    assert {entry.name for entry in path.parent.iterdir()} == {"runtime.json", ".runtime.json.afresh.lock"}


def test_what_another_program_writes_meanwhile_is_kept(path: Path) -> None:
    written(path, {"theirs": 0})
    assert update(path, Meanwhile({"ours": 1}, path, times=3))
    assert content(path) == {"theirs": 3, "ours": 1}


def test_a_file_that_appears_meanwhile_is_kept(path: Path) -> None:
    assert update(path, Meanwhile({"ours": 1}, path, times=1))
    assert content(path) == {"theirs": 1, "ours": 1}


def test_against_a_program_that_never_stops_writing_we_give_up(path: Path) -> None:
    written(path, {"theirs": 0})
    assert not update(path, Meanwhile({"ours": 1}, path, times=1_000))
    assert "ours" not in path.read_text()


def test_a_torn_file_is_read_again_until_it_is_whole(path: Path) -> None:
    class FinishingClock(TickingClock):
        def sleep(self, span: timedelta) -> None:
            super().sleep(span)
            if self.passed > timedelta(seconds=1):
                written(path, {"theirs": 1})

    path.write_text('{"theirs": ')
    assert update(path, {"ours": 1}, clock=FinishingClock())
    assert content(path) == {"theirs": 1, "ours": 1}
    assert not list(path.parent.glob("*.unreadable-*"))


@pytest.mark.parametrize("broken", [b"", b'{"state": "idle"', b"[1, 2]", b"null", b"\xff\xfe{}", b"[" * 100_000])
def test_a_file_that_stays_broken_is_never_moved_and_copied_once(path: Path, broken: bytes) -> None:
    path.write_bytes(broken)
    inode = path.stat().st_ino
    clock = TickingClock()
    assert not update(path, {"ours": 1}, clock=clock)
    assert not update(path, {"ours": 2}, clock=clock)
    assert (path.read_bytes(), path.stat().st_ino) == (broken, inode)
    (copy,) = path.parent.glob("runtime.json.unreadable-*")
    assert copy.name == "runtime.json.unreadable-20260304T050609Z"
    assert copy.read_bytes() == broken


def test_a_missing_file_is_created_with_its_worker_id(path: Path) -> None:
    assert update(path, {"state": "idle"})
    assert content(path) == {"workerId": "swarm7", "state": "idle"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_a_profile_folder_nothing_is_created(tmp_path: Path) -> None:
    assert not update(tmp_path / "gone" / "runtime.json", {"state": "idle"})
    assert not (tmp_path / "gone").exists()


def test_the_mode_stays_and_a_symlink_is_written_through(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    written(real, {"workerId": "swarm7"})
    real.chmod(0o640)
    path.symlink_to(real)
    assert update(path, {"state": "idle"})
    assert path.is_symlink()
    assert content(real) == {"workerId": "swarm7", "state": "idle"}
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_write_that_changes_nothing_leaves_the_file_alone(path: Path) -> None:
    written(path, {"state": "idle"})
    before = path.stat().st_mtime_ns, path.stat().st_ino
    assert update(path, {"state": "idle"})
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before


def test_what_the_file_says_already_waits_for_no_lock(path: Path) -> None:
    written(path, {"state": "idle", "cwd": None})
    with held(path.parent / ".runtime.json.afresh.lock"):
        assert update(path, {"state": "idle", "cwd": None}, clock=TickingClock())
        assert not update(path, {"phase": None}, clock=TickingClock()), "a key that is not there is written"


def test_a_lock_that_another_process_keeps_is_not_waited_for_forever(path: Path) -> None:
    written(path, {})
    with held(path.parent / ".runtime.json.afresh.lock"):
        assert not update(path, {"state": "idle"}, clock=TickingClock())
    assert content(path) == {}


def test_one_bad_value_does_not_lose_the_rest(path: Path) -> None:
    """A single unknown enum made the reference system report the whole file as idle."""
    found = {"state": "running", "currentMissionId": "mission-1", "needsHuman": "perhaps", "cwd": 7, "phase": None}
    written(path, found)
    runtime = read_runtime(path)
    assert (runtime.state, runtime.current_mission_id, runtime.needs_human) == ("running", "mission-1", False)
    assert runtime.dropped == ("cwd", "needsHuman")
    assert runtime.error is None


def test_a_missing_or_broken_file_is_an_empty_record(path: Path) -> None:
    assert read_runtime(path).error is None
    path.write_text("{")
    assert "no JSON object" in (read_runtime(path).error or "")
    path.unlink()
    path.mkdir()
    assert "cannot be read" in (read_runtime(path).error or "")
