from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lifecycle.errors import GitRefused, Misuse
from lifecycle.restoring import Restored, RestorePlan, look_now, patch_of, plan_of, restore
from lifecycle.snapshot import describe, snapshot_ref
from tests.lifecycle.repositories import CAPS, Tree

AT = datetime(2026, 8, 1, 12, tzinfo=UTC)


class Past:
    """A work tree with snapshots of generations, and what is planned and done with them."""

    def __init__(self, root: Path, scratch: Callable[[], Path]) -> None:
        self.tree = Tree(root)
        self._scratch = scratch
        self.commits: list[str] = []

    def snapshot(self) -> None:
        ref = snapshot_ref("swarm1", len(self.commits) + 1)
        found, trouble = describe(self.tree.repository(), ref, CAPS, message="x", keep=20)
        assert found.commit, trouble
        self.commits.append(found.commit)

    def plan(self, generation: int, *only: str) -> RestorePlan:
        repository = self.tree.repository()
        return plan_of(
            repository,
            look_now(repository, CAPS, self._scratch()),
            worker_id="swarm1",
            generation=generation,
            commit=self.commits[generation - 1],
            newest=self.commits[-1],
            only=only,
        )

    def restore(self, plan: RestorePlan) -> Restored:
        return restore(self.tree.repository(), plan, CAPS, at=AT)

    def acts(self, generation: int, *only: str) -> dict[str, str]:
        return {step.path: step.act for step in self.plan(generation, *only).steps}


@pytest.fixture
def past(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Past:
    return Past(tmp_path / "repo", lambda: tmp_path_factory.mktemp("scratch"))


def test_what_later_generations_changed_comes_back_and_what_nobody_recorded_is_kept(past: Past) -> None:
    tree = past.tree
    tree.write("src/rows.py", "rows = 'first'\n")
    tree.write("note.md", "first\n")
    past.snapshot()
    tree.write("src/rows.py", "rows = 'second'\n")
    (tree.root / "note.md").unlink()
    tree.write("later.md", "second only\n")
    past.snapshot()
    tree.write("kept.txt", "a person's own, since the newest snapshot\n")

    plan = past.plan(1)
    assert {step.path: step.act for step in plan.steps} == {
        "src/rows.py": "overwrite",
        "note.md": "create",
        "later.md": "left",
        "kept.txt": "conflict",
    }
    done = past.restore(plan)

    assert set(done.restored) == {"src/rows.py", "note.md"}
    assert done.conflicts == ("kept.txt",)
    assert (tree.root / "src/rows.py").read_text() == "rows = 'first'\n"
    assert (tree.root / "note.md").read_text() == "first\n"
    assert (tree.root / "kept.txt").read_text() == "a person's own, since the newest snapshot\n"
    assert (tree.root / "later.md").read_text() == "second only\n"


def test_everything_is_saved_under_a_ref_of_its_own_before_the_first_write(past: Past) -> None:
    past.tree.write("note.md", "first\n")
    past.snapshot()
    past.tree.write("note.md", "second\n")
    past.tree.write("extra.md", "extra\n")
    past.snapshot()
    done = past.restore(past.plan(1))
    assert done.rescue == "refs/afresh/swarm1/rescue/20260801T120000.000000Z"
    saved = past.tree.in_commit(done.rescue)
    assert (saved["note.md"], saved["extra.md"]) == ("second\n", "extra\n")


def test_index_head_and_stash_stay_and_a_plan_writes_nothing_at_all(past: Past) -> None:
    tree = past.tree
    tree.write("src/rows.py", "rows = 'first'\n")
    past.snapshot()
    tree.write("src/rows.py", "rows = 'second'\n")
    tree.git("add", "src/rows.py")
    past.snapshot()
    index, head = (tree.root / ".git/index").read_bytes(), tree.git("rev-parse", "HEAD")
    before = (tree.marks(), sorted((tree.root / ".git").rglob("*")))

    plan = past.plan(1)
    assert (tree.marks(), sorted((tree.root / ".git").rglob("*"))) == before

    past.restore(plan)
    assert ((tree.root / ".git/index").read_bytes(), tree.git("rev-parse", "HEAD")) == (index, head)


def test_a_changed_file_is_never_restored_from_the_newest_snapshot_and_a_deleted_one_is(past: Past) -> None:
    past.snapshot()
    past.tree.write("src/rows.py", "changed since\n")
    (past.tree.root / "gone.txt").unlink()
    assert past.acts(1) == {"src/rows.py": "conflict", "gone.txt": "create"}


def test_a_file_that_changes_between_plan_and_write_is_kept(past: Past) -> None:
    past.tree.write("note.md", "first\n")
    past.snapshot()
    past.tree.write("note.md", "second\n")
    (past.tree.root / "gone.txt").unlink()
    past.snapshot()
    plan = past.plan(1)
    past.tree.write("note.md", "third, just now\n")
    past.tree.write("gone.txt", "here again, just now\n")
    done = past.restore(plan)
    assert (done.restored, set(done.conflicts)) == ((), {"note.md", "gone.txt"})
    assert (past.tree.root / "note.md").read_text() == "third, just now\n"
    assert (past.tree.root / "gone.txt").read_text() == "here again, just now\n"


def test_a_file_of_which_no_snapshot_knows_is_never_written_over(past: Past) -> None:
    past.tree.write("note.md", "small\n")
    past.snapshot()
    past.tree.write("note.md", "x" * 2_000)  # untracked and over the cap: no snapshot will hold it
    past.snapshot()
    plan = past.plan(1)
    assert [(step.act, step.why) for step in plan.steps] == [
        ("conflict", "something lies there that no snapshot holds")
    ]
    assert past.restore(plan).rescue is None


def test_nothing_is_written_through_a_link_out_of_the_work_tree(past: Past, tmp_path: Path) -> None:
    past.snapshot()
    (past.tree.root / "src" / "rows.py").unlink()
    (past.tree.root / "src").rmdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (past.tree.root / "src").symlink_to(elsewhere)
    past.snapshot()
    plan = past.plan(1)
    assert [(step.path, step.act, step.why) for step in plan.steps if step.act == "conflict"] == [
        ("src/rows.py", "conflict", "src is a symbolic link")
    ]
    past.restore(plan)
    assert list(elsewhere.iterdir()) == []


def test_links_and_the_right_to_execute_come_back(past: Past) -> None:
    root = past.tree.root
    (root / "link").symlink_to("kept.txt")
    past.tree.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    past.snapshot()
    (root / "link").unlink()
    (root / "link").symlink_to("gone.txt")
    (root / "run.sh").chmod(0o600)
    past.snapshot()
    past.restore(past.plan(1))
    assert str((root / "link").readlink()) == "kept.txt"
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o711


def test_only_the_named_files_and_folders_are_planned(past: Past) -> None:
    past.snapshot()
    for path in ("src/rows.py", "gone.txt"):
        (past.tree.root / path).unlink()
    assert past.acts(1, "src") == {"src/rows.py": "create"}
    assert past.acts(1, str(past.tree.root / "gone.txt")) == {"gone.txt": "create"}
    assert past.acts(1, "kept.txt") == {}, "it does not differ"
    with pytest.raises(Misuse, match=r"nowhere\.py: the snapshot of generation 1 has no such path"):
        past.plan(1, "nowhere.py")
    with pytest.raises(Misuse, match="lies outside the work tree"):
        past.plan(1, "../elsewhere")


def test_the_difference_is_shown_as_a_patch_from_the_snapshot_to_now(past: Past, tmp_path: Path) -> None:
    past.snapshot()
    past.tree.write("kept.txt", "changed\n")
    repository = past.tree.repository()
    now = look_now(repository, CAPS, tmp_path)
    plan = plan_of(repository, now, worker_id="swarm1", generation=1, commit=past.commits[0], newest=past.commits[0])
    assert "-kept\n+changed\n" in patch_of(repository, now, plan).decode()


def test_a_snapshot_that_is_gone_is_said(past: Past) -> None:
    past.commits.append("0123456789" * 4)
    with pytest.raises(GitRefused, match="the snapshot 012345678901 is gone"):
        past.plan(1)
