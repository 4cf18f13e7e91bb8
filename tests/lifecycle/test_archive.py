from __future__ import annotations

import hashlib
import os
import resource
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from lifecycle import archive, durable
from lifecycle.errors import HandoffNotSaved
from lifecycle.paths import WorkerPaths

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
ROOT = Path(__file__).parents[2]
WRITE_MUCH = """
import sys
from pathlib import Path
from lifecycle import archive
from lifecycle.errors import HandoffNotSaved

target, copy = map(Path, sys.argv[1:])
try:
    archive.save("x" * 100_000, target, [copy])
except HandoffNotSaved as error:
    print(error)
    sys.exit(7)
"""
TEXT = "# Handoff — swarm7 — none\n\nDie Läufe sind grün.\n"


@pytest.fixture
def paths(tmp_path: Path) -> WorkerPaths:
    profile = tmp_path / "hermes" / "profiles" / "swarm7"
    profile.mkdir(parents=True)
    return WorkerPaths(
        worker_id="swarm7", profile=profile, memory_root=tmp_path / "workspace", home=tmp_path / "afresh"
    )


class Places(NamedTuple):
    archive: Path
    copies: tuple[Path, ...]


def places(paths: WorkerPaths, *, at: datetime = NOW, renewal_id: str = "rn-1") -> Places:
    return Places(paths.archived(at, renewal_id), (paths.shared_latest, paths.latest, paths.mission_copy("mission-a1")))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_handoff_is_written_to_archive_shared_latest_profile_latest_and_mission_copy(paths: WorkerPaths) -> None:
    digest = archive.save(TEXT, *places(paths))
    expected = [
        paths.home / "archive" / "swarm7" / "20260304T050607Z-rn-1.md",
        paths.memory_root / "memory" / "handoffs" / "swarm" / "swarm7-latest.md",
        paths.profile / "memory" / "handoffs" / "latest.md",
        paths.profile / "memory" / "handoffs" / "mission-a1.md",
    ]
    assert [place.read_text() for place in expected] == [TEXT] * 4
    assert digest == hashlib.sha256(TEXT.encode()).hexdigest()


def test_files_and_the_folders_we_make_are_private_whatever_the_umask(paths: WorkerPaths) -> None:
    before = os.umask(0)
    try:
        archive.save(TEXT, *places(paths))
    finally:
        os.umask(before)
    assert {mode(path) for path in (places(paths).archive, *places(paths).copies)} == {0o600}
    assert {mode(paths.archive), mode(paths.home), mode(paths.handoffs), mode(paths.shared_latest.parent)} == {0o700}


def test_a_folder_that_existed_keeps_its_mode(paths: WorkerPaths) -> None:
    paths.memory_root.mkdir(mode=0o755)
    paths.memory_root.chmod(0o755)
    archive.save(TEXT, *places(paths))
    assert mode(paths.memory_root) == 0o755


def test_an_interrupted_save_may_be_repeated(paths: WorkerPaths) -> None:
    archive.save(TEXT, *places(paths))
    paths.latest.unlink()
    archive.save(TEXT, *places(paths))
    assert paths.latest.read_text() == TEXT


def test_an_archived_handoff_is_never_overwritten(paths: WorkerPaths) -> None:
    """W-11: the second renewal must not destroy the evidence of the first."""
    archive.save(TEXT, *places(paths))
    with pytest.raises(HandoffNotSaved, match=r"20260304T050607Z-rn-1\.md"):
        archive.save("another text", *places(paths))
    assert places(paths).archive.read_text() == TEXT
    assert paths.latest.read_text() == TEXT


def test_two_renewals_in_one_second_do_not_collide(paths: WorkerPaths) -> None:
    """claude-remember #363: second-resolution names."""
    archive.save("one", *places(paths, renewal_id="rn-1"))
    archive.save("two", *places(paths, renewal_id="rn-2"))
    assert {path.read_text() for path in paths.archive.glob("*.md")} == {"one", "two"}


def test_nothing_is_saved_where_the_archive_cannot_be_written(paths: WorkerPaths) -> None:
    paths.home.mkdir()
    (paths.home / "archive").write_text("a file where a folder belongs")
    with pytest.raises(HandoffNotSaved, match="archive") as caught:
        archive.save(TEXT, *places(paths), worker_id="swarm7")
    assert caught.value.reason == "handoff_not_saved"
    assert caught.value.worker_id == "swarm7"
    assert not paths.shared_latest.exists()
    assert not paths.latest.exists()


def test_a_copy_that_cannot_be_written_is_an_error_that_names_it(paths: WorkerPaths) -> None:
    paths.shared_latest.mkdir(parents=True)
    with pytest.raises(HandoffNotSaved, match=r"swarm7-latest\.md"):
        archive.save(TEXT, *places(paths))
    assert places(paths).archive.read_text() == TEXT


def test_a_full_disk_leaves_the_old_latest_whole_and_no_rubbish(paths: WorkerPaths, tmp_path: Path) -> None:
    """D1, D4: the kernel itself refuses the write half-way (a size limit, as a full disk does)."""
    archive.save("old", *places(paths))
    script = tmp_path / "write.py"
    script.write_text(WRITE_MUCH)

    def small_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    new = places(paths, renewal_id="rn-2").archive
    done = subprocess.run(
        [sys.executable, script, new, paths.latest],
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=small_disk,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (done.returncode, str(new) in done.stdout) == (7, True), done.stderr
    assert paths.latest.read_text() == "old"
    assert not new.exists()
    assert [path.name for path in paths.archive.iterdir()] == ["20260304T050607Z-rn-1.md"]


def test_a_short_write_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """coder/xum PR #4282: the byte count of write() was ignored and half a file published."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, bytes(content[:7])))
    durable.replace(tmp_path / "file", b"0123456789" * 5)
    assert (tmp_path / "file").read_bytes() == b"0123456789" * 5


def test_what_does_not_read_back_as_written_is_not_saved(paths: WorkerPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    """H2: believed only after it was read."""

    def torn(descriptor: int, content: bytes) -> None:
        os.write(descriptor, content[:10])

    monkeypatch.setattr(durable, "write_all", torn)
    with pytest.raises(HandoffNotSaved, match="does not hold the handoff"):
        archive.save(TEXT, *places(paths))


def test_a_symlink_at_latest_is_replaced_and_not_followed(paths: WorkerPaths, tmp_path: Path) -> None:
    elsewhere = tmp_path / "precious"
    elsewhere.write_text("precious")
    paths.handoffs.mkdir(parents=True)
    paths.latest.symlink_to(elsewhere)
    archive.save(TEXT, *places(paths))
    assert elsewhere.read_text() == "precious"
    assert paths.latest.read_text() == TEXT


def test_obstacles_are_told_before_the_worker_is_asked(paths: WorkerPaths) -> None:
    assert archive.obstacles(paths) == ()
    assert not list(paths.archive.iterdir())
    paths.memory_root.rename(paths.memory_root.with_name("moved"))
    paths.memory_root.write_text("a file where a folder belongs")
    (found,) = archive.obstacles(paths)
    assert str(paths.shared_latest.parent) in found
