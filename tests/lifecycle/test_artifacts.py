from __future__ import annotations

import gzip
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle import artifacts
from lifecycle.errors import ArtifactMissing
from lifecycle.redaction import redact

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
MONTH = timedelta(days=30)


def kept(folder: Path, text: str, *, age: timedelta = timedelta()) -> str:
    handle, _ = artifacts.keep(folder, text)
    at = (NOW - age).timestamp()
    os.utime(path_of(folder, handle), (at, at))
    return handle


def path_of(folder: Path, handle: str) -> Path:
    return next((folder / handle[:2]).glob(f"{handle}*"))


def pruned(folder: Path, *needed: str, quota: int = 10**9) -> int:
    return artifacts.prune(folder, needed=needed, now=NOW, keep_for=MONTH, quota=quota)


def is_kept(folder: Path, handle: str) -> bool:
    try:
        artifacts.read(folder, handle)
    except ArtifactMissing:
        return False
    return True


@given(text=st.text(max_size=2_000))
def test_a_handle_gives_back_what_was_kept(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("artifacts")
    handle, characters = artifacts.keep(folder, text)
    found = artifacts.read(folder, handle)
    assert len(found) == characters
    assert found == redact(text)


def test_the_same_text_is_one_private_compressed_file_whoever_keeps_it(tmp_path: Path) -> None:
    first, second = kept(tmp_path, "line\n" * 5_000), kept(tmp_path, "line\n" * 5_000)
    assert first == second
    (file,) = tmp_path.rglob("*.gz")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.stat().st_size < 1_000


def test_secrets_are_not_kept(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    handle = kept(tmp_path, f"GITHUB_TOKEN={secret}\nok\n")
    (file,) = tmp_path.rglob("*.gz")
    assert secret not in gzip.decompress(file.read_bytes()).decode()
    assert "[redacted:" in artifacts.read(tmp_path, handle)


def test_of_a_result_without_end_the_beginning_is_kept_and_the_rest_counted(tmp_path: Path) -> None:
    found = artifacts.read(tmp_path, kept(tmp_path, "x" * (artifacts.LONGEST + 7)))
    assert found.endswith("x\n[… 7 characters left out …]\n")


def test_a_longer_piece_of_the_hash_is_a_handle_too_and_anything_else_is_refused(tmp_path: Path) -> None:
    handle = kept(tmp_path, "text")
    whole = path_of(tmp_path, handle).stem
    assert artifacts.read(tmp_path, whole) == "text"
    for wrong in ("", "../../etc/passwd", handle[:5], "0" * 12, "*" * 12):
        with pytest.raises(ArtifactMissing):
            artifacts.read(tmp_path, wrong)


def test_a_file_that_is_not_what_was_kept_is_refused(tmp_path: Path) -> None:
    handle = kept(tmp_path, "text")
    path_of(tmp_path, handle).write_bytes(gzip.compress(b"other text"))
    with pytest.raises(ArtifactMissing, match="is not what was kept"):
        artifacts.read(tmp_path, handle)
    path_of(tmp_path, handle).write_bytes(b"no gzip")
    with pytest.raises(ArtifactMissing, match="cannot be read"):
        artifacts.read(tmp_path, handle)


def test_old_results_go_unless_a_latest_handoff_names_them(tmp_path: Path) -> None:
    young = kept(tmp_path, "young", age=timedelta(days=29))
    old, named = (kept(tmp_path, text, age=timedelta(days=31)) for text in ("old", "named"))
    assert pruned(tmp_path, named) == 1
    assert [is_kept(tmp_path, one) for one in (young, old, named)] == [True, False, True]


def test_over_the_quota_the_oldest_go_first_and_none_of_the_last_hour(tmp_path: Path) -> None:
    handles = [kept(tmp_path, os.urandom(900).hex(), age=timedelta(hours=hours)) for hours in (5, 4, 3, 0)]
    size = max(file.stat().st_size for file in tmp_path.rglob("*.gz"))
    assert pruned(tmp_path, handles[0], quota=2 * size) == 2
    assert [is_kept(tmp_path, one) for one in handles] == [True, False, False, True]
    assert pruned(tmp_path, quota=0) == 1
    assert [is_kept(tmp_path, one) for one in handles] == [False, False, False, True]


def test_what_is_kept_again_is_young_again(tmp_path: Path) -> None:
    handle = kept(tmp_path, "again", age=timedelta(days=40))
    artifacts.keep(tmp_path, "again")
    pruned(tmp_path)
    assert is_kept(tmp_path, handle)


def test_the_newest_three_handoffs_of_every_worker_name_what_is_needed(tmp_path: Path) -> None:
    for worker in ("swarm1", "swarm2"):
        folder = tmp_path / worker
        folder.mkdir()
        for month in range(1, 6):
            line = f"- [[OFFLOAD: handle={worker[-1]}{month}0000000000, tool=terminal, chars=9]] x\n"
            (folder / f"2026{month:02d}01T000000Z-r{month}.md").write_text(line)
    found = artifacts.referenced(tmp_path)
    assert found == {f"{worker}{month}0000000000" for worker in (1, 2) for month in (3, 4, 5)}
    assert artifacts.referenced(tmp_path / "nowhere") == frozenset()


def test_there_is_nothing_to_prune_before_the_first_result(tmp_path: Path) -> None:
    assert pruned(tmp_path / "nowhere") == 0
