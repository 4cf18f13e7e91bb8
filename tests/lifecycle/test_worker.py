from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.errors import InvalidWorkerId, Misuse
from lifecycle.paths import WorkerPaths, paths_of
from lifecycle.worker import Worker, checked_worker_id


def paths() -> WorkerPaths:
    worker = Worker(worker_id="builder", profile=Path("/hermes/profiles/builder"), session="swarm-builder")
    return paths_of(worker, memory_root=Path("/memory"), home=Path("/afresh"))


@pytest.mark.parametrize("text", ["swarm1", "swarm10", "Swarm7", "builder", "code-reviewer-2", "a", "b2b", "x" * 64])
def test_ids_of_the_reference_system_are_worker_ids(text: str) -> None:
    assert checked_worker_id(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1swarm",
        "-builder",
        "builder-",
        "two--hyphens",
        "under_score",
        "with space",
        "builder\n",
        "../etc",
        "a/b",
        "a.b",
        "a:b",
        "=builder",
        "$(reboot)",
        "bücher",
        "sw\u0430rm1",
        "builder٣",
        "x" * 65,
    ],
)
def test_everything_else_is_refused_before_anything_is_built_from_it(text: str) -> None:  # W-12, W-31
    with pytest.raises(InvalidWorkerId):
        checked_worker_id(text)


@given(st.text())
def test_what_passes_names_one_file_and_one_tmux_session(text: str) -> None:
    try:
        checked_worker_id(text)
    except InvalidWorkerId:
        return
    assert text.isascii()
    assert not set(text) & set("/.:=$%@ \n")


def test_a_refused_id_is_not_repeated_at_length() -> None:
    with pytest.raises(InvalidWorkerId) as refused:
        checked_worker_id("x" * 100_000)
    assert len(str(refused.value)) < 300


def test_automatic_renewal_is_off_unless_declared() -> None:
    assert not Worker(worker_id="builder", profile=Path("/p"), session="s").automatic


def test_all_paths_of_a_worker_lie_where_the_reference_system_looks() -> None:
    found = paths()
    assert found.state_db == Path("/hermes/profiles/builder/state.db")
    assert found.latest == Path("/hermes/profiles/builder/memory/handoffs/latest.md")
    assert found.shared_latest == Path("/memory/memory/handoffs/swarm/builder-latest.md")
    assert found.draft("r1") == Path("/hermes/profiles/builder/memory/handoffs/draft-r1.md")


def test_an_archived_handoff_is_named_by_time_and_renewal() -> None:
    at = datetime(2026, 5, 4, 12, 3, 9, tzinfo=UTC)
    assert paths().archived(at, "r1") == Path("/afresh/archive/builder/20260504T120309Z-r1.md")


@pytest.mark.parametrize("mission", ["", ".hidden", "..", "a/b", "/etc/passwd"])
def test_a_mission_that_cannot_name_a_file_is_refused(mission: str) -> None:
    with pytest.raises(Misuse, match="builder"):
        paths().mission_copy(mission)
