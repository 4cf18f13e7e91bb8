from __future__ import annotations

import os
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from lifecycle.collected import WorkTree
from lifecycle.errors import GitRefused
from lifecycle.snapshot import describe, snapshot_ref
from lifecycle.work_tree import Caps, Repository
from tests.lifecycle.repositories import CAPS, Tree

REF = snapshot_ref("swarm1", 3)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "repo")


def taken(tree: Tree, *, caps: Caps | None = CAPS, ref: str = REF, keep: int = 20) -> WorkTree:
    found, trouble = describe(tree.repository(), ref, caps, message="the end of generation 3", keep=keep)
    assert trouble == ""
    return found


def test_a_snapshot_holds_changed_staged_untracked_and_deleted_files_and_names_them(tree: Tree) -> None:
    head = tree.git("rev-parse", "HEAD").strip()
    tree.write("src/rows.py", "rows = 2\n")
    tree.write("staged.py", "staged\n")
    tree.git("add", "staged.py")
    tree.write("staged.py", "staged, and then changed\n")
    tree.write("new folder/ä\nb.txt", "odd name\n")
    (tree.root / "gone.txt").unlink()
    (tree.root / "link").symlink_to("/nowhere/at all")
    (tree.root / "run.sh").write_text("#!/bin/sh\n")
    (tree.root / "run.sh").chmod(0o755)

    found = taken(tree)

    assert (found.root, found.branch, found.head, found.snapshot) == (tree.root, "main", head, REF)
    assert found.dirty == (".D gone.txt", ".M src/rows.py", "AM staged.py")
    assert found.untracked == ("link", "new folder/ä b.txt", "run.sh")
    assert found.commit == tree.git("rev-parse", REF).strip()
    assert tree.in_commit(REF) == {
        "kept.txt": "kept\n",
        "src/rows.py": "rows = 2\n",
        "staged.py": "staged, and then changed\n",
        "new folder/ä\nb.txt": "odd name\n",
        "link": "/nowhere/at all",
        "run.sh": "#!/bin/sh\n",
    }
    assert tree.git("rev-parse", f"{REF}^1").strip() == head
    modes = tree.git("ls-tree", "-r", REF, "--", "link", "run.sh").split()
    assert (modes[0], modes[4]) == ("120000", "100755")


def test_index_head_stash_files_and_their_times_are_untouched(tree: Tree) -> None:
    tree.write("src/rows.py", "rows = 5\n")
    tree.git("stash")
    tree.write("src/rows.py", "rows = 2\n")
    tree.git("add", "src/rows.py")
    tree.write("src/rows.py", "rows = 3\n")
    tree.write("new.txt", "new\n")
    (tree.root / "kept.txt").touch()  # a later time alone: git would like to write that into its index
    before = tree.marks()

    taken(tree)

    assert tree.marks() == before
    assert "refs/stash" in "".join(tree.git("for-each-ref"))


def test_a_second_snapshot_of_a_generation_keeps_the_first_and_the_same_one_is_one_commit(tree: Tree) -> None:
    tree.write("new.txt", "first\n")
    first = taken(tree).commit
    assert taken(tree).commit == first
    tree.write("new.txt", "second\n")
    second = taken(tree).commit
    assert second != first
    assert tree.git("rev-parse", f"{REF}^2").strip() == first


def test_only_the_newest_snapshots_of_a_worker_are_kept(tree: Tree) -> None:
    other = snapshot_ref("swarm10", 1)
    taken(tree, ref=other)
    for generation in range(1, 5):
        tree.write("new.txt", f"{generation}\n")
        taken(tree, ref=snapshot_ref("swarm1", generation), keep=2)
    refs = tree.git("for-each-ref", "--format=%(refname)", "refs/afresh").split()
    assert other in refs
    assert snapshot_ref("swarm1", 4) in refs
    assert len(refs) == 3


def test_before_the_first_commit_and_on_a_detached_head_there_is_a_snapshot_too(tmp_path: Path) -> None:
    unborn = Tree(tmp_path / "unborn", commits=False)
    unborn.write("first.txt", "first\n")
    found = taken(unborn)
    assert (found.branch, found.head, found.untracked) == ("main", None, ("first.txt",))
    assert unborn.in_commit(REF) == {"first.txt": "first\n"}

    detached = Tree(tmp_path / "detached")
    detached.git("checkout", "--quiet", "--detach")
    assert taken(detached).branch is None


def test_a_linked_work_tree_has_its_own_state_and_touches_neither_index(tree: Tree, tmp_path: Path) -> None:
    tree.git("worktree", "add", "--quiet", "-b", "aside", str(tmp_path / "aside"))
    aside = Tree.__new__(Tree)
    aside.root = tmp_path / "aside"
    aside.write("aside.txt", "aside\n")
    before = (tree.marks(), aside.marks())

    found = taken(aside)

    assert (found.root, found.branch, found.untracked) == (aside.root, "aside", ("aside.txt",))
    assert (tree.marks(), aside.marks()) == before


def test_a_submodule_and_a_repository_inside_are_named_and_not_entered(tree: Tree, tmp_path: Path) -> None:
    part = Tree(tmp_path / "part")
    tree.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part.root), "part")
    tree.commit()
    inner = Tree.__new__(Tree)
    inner.root = tree.root / "part"
    inner.write("kept.txt", "changed inside\n")
    inner.git("commit", "--quiet", "--all", "--message=inside")
    Tree(tree.root / "nested")

    found = taken(tree)

    assert found.dirty == (".M part",)
    assert found.not_stored == ("part: a submodule", "nested/: a repository of its own")
    assert tree.git("rev-parse", f"{REF}:part") == tree.git("rev-parse", "HEAD:part")


def test_a_merge_in_conflict_is_stored_as_it_lies_there_and_stays_in_conflict(tree: Tree) -> None:
    tree.git("checkout", "--quiet", "-b", "other")
    tree.write("kept.txt", "theirs\n")
    tree.commit()
    tree.git("checkout", "--quiet", "main")
    tree.write("kept.txt", "ours\n")
    tree.commit()
    identity = ["-c", "user.name=demo", "-c", "user.email=demo@example.org"]
    command = ["git", *identity, "merge", "--quiet", "other"]
    assert subprocess.run(command, cwd=tree.root, capture_output=True, check=False).returncode == 1
    before = tree.marks()
    found = taken(tree)
    assert found.dirty == ("UU kept.txt",)
    assert "<<<<<<<" in tree.in_commit(REF)["kept.txt"]
    assert tree.marks() == before


def test_a_sparse_checkout_keeps_in_the_snapshot_what_is_not_on_the_disk(tree: Tree) -> None:
    tree.git("sparse-checkout", "set", "--no-cone", "/kept.txt")
    assert not (tree.root / "src").exists()
    tree.write("kept.txt", "changed\n")
    before = tree.marks()
    assert taken(tree).dirty == (".M kept.txt",)
    assert tree.in_commit(REF) == {"kept.txt": "changed\n", "src/rows.py": "rows = 1\n", "gone.txt": "gone\n"}
    assert tree.marks() == before


def test_a_repository_of_long_hashes_has_snapshots_too(tmp_path: Path) -> None:
    tree = Tree.__new__(Tree)
    tree.root = tmp_path / "repo"
    tree.root.mkdir()
    tree.git("init", "--quiet", "--object-format=sha256")
    tree.write("kept.txt", "kept\n")
    tree.write("gone.txt", "gone\n")
    tree.commit()
    (tree.root / "gone.txt").unlink()
    tree.write("new.txt", "new\n")
    assert len(taken(tree).commit or "") == 64
    assert tree.in_commit(REF) == {"kept.txt": "kept\n", "new.txt": "new\n"}


def test_ignored_files_are_left_out_and_large_untracked_ones_are_named_only(tree: Tree) -> None:
    tree.write(".gitignore", "*.log\nbuild/\n")
    tree.commit()
    tree.write("noise.log", "x")
    tree.write("build/out.bin", "x")
    tree.write("big.bin", "x" * 1_001)
    tree.write("kept.txt", "x" * 2_000)  # tracked: the cap for untracked files is not its
    found = taken(tree)
    assert found.untracked == ("big.bin",)
    assert found.not_stored == ("big.bin: 1,001 bytes, over 1,000",)
    assert set(tree.in_commit(REF)) == {".gitignore", "gone.txt", "kept.txt", "src/rows.py"}
    assert len(tree.in_commit(REF)["kept.txt"]) == 2_000


def test_what_exceeds_the_whole_size_is_named_and_the_rest_is_stored(tree: Tree) -> None:
    for name in ("a", "b", "c"):
        tree.write(name, name * 400)
    found = taken(tree, caps=Caps(largest_file=1_000, most_bytes=900))
    assert found.not_stored == ("c: 400 bytes, and a snapshot takes 900",)
    assert {"a", "b"} <= set(tree.in_commit(REF))


def test_a_folder_that_became_a_link_is_not_followed_out_of_the_work_tree(tree: Tree, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "rows.py").write_text("a stranger's\n")
    (tree.root / "src" / "rows.py").unlink()
    (tree.root / "src").rmdir()
    (tree.root / "src").symlink_to(elsewhere)
    taken(tree)
    assert tree.in_commit(REF)["src"] == str(elsewhere)
    assert "src/rows.py" not in tree.in_commit(REF)


HOSTILE = {
    "core.fsmonitor": "{evil}",
    "core.hooksPath": "{hooks}",
    "commit.gpgSign": "true",
    "gpg.program": "{evil}",
    "filter.evil.clean": "{evil}",
    "filter.evil.smudge": "{evil}",
    "filter.evil.process": "{evil}",
    "filter.evil.required": "true",
    "diff.external": "{evil}",
    "diff.evil.textconv": "{evil}",
    "core.sshCommand": "{evil}",
    "core.pager": "{evil}",
    "core.editor": "{evil}",
}
HOOKS = ("reference-transaction", "post-index-change", "pre-commit", "post-commit", "post-checkout", "pre-auto-gc")


def test_nothing_that_the_repository_names_is_run(tree: Tree, tmp_path: Path) -> None:
    ran, hooks = tmp_path / "ran", tmp_path / "hooks"
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\necho $0 $* >> {ran}\ncat\n")
    evil.chmod(0o755)
    hooks.mkdir()
    tree.write(".gitattributes", "* filter=evil diff=evil\n")
    tree.commit()
    for hook in HOOKS:
        (hooks / hook).symlink_to(evil)
        (tree.root / ".git" / "hooks").mkdir(exist_ok=True)
        (tree.root / ".git" / "hooks" / hook).symlink_to(evil)
    for key, value in HOSTILE.items():
        tree.git("config", key, value.format(evil=evil, hooks=hooks))
    tree.write("kept.txt", "changed\n")
    tree.write("new.txt", "new\n")

    taken(tree)

    assert not ran.exists(), ran.read_text()
    assert tree.in_commit(REF)["new.txt"] == "new\n"
    tree.git("update-ref", "refs/heads/probe", "HEAD")
    assert ran.exists(), "the trap itself does not work"


def test_line_ends_and_encodings_are_stored_as_git_would(tree: Tree) -> None:
    tree.write(".gitattributes", "*.bat text eol=crlf\n*.u16 text working-tree-encoding=UTF-16\n")
    (tree.root / "run.bat").write_bytes(b"echo 1\r\n")
    (tree.root / "broken.u16").write_bytes(b"\x00\xd8no utf-16")
    taken(tree)
    found = tree.git("cat-file", "blob", f"{REF}:run.bat")
    assert found in {"echo 1\n", "echo 1\r\n"}
    assert "broken.u16" in tree.git("ls-tree", "--name-only", REF)


def test_a_folder_outside_any_repository_has_none(tmp_path: Path) -> None:
    assert Repository.around(tmp_path, within=timedelta(seconds=60)) is None


def test_a_git_folder_that_git_does_not_take_for_one_is_said(tree: Tree) -> None:
    (tree.root / ".git" / "HEAD").write_text("broken\n")
    with pytest.raises(GitRefused, match="not a git repository"):
        tree.repository()


def test_a_broken_configuration_is_said_in_gits_own_words(tree: Tree) -> None:
    (tree.root / ".git" / "config").write_text("[broken\n")
    with pytest.raises(GitRefused, match="bad config"):
        tree.repository()


def test_inside_the_git_folder_there_is_no_work_tree(tree: Tree) -> None:
    assert Repository.around(tree.root / ".git", within=timedelta(seconds=60)) is None


def test_a_deadline_that_has_passed_is_said_and_leaves_no_lock_behind(tree: Tree) -> None:
    with pytest.raises(GitRefused, match="was not done after 0 s"):
        tree.repository(within=0)
    assert not list(tree.root.rglob("*.lock"))


def test_git_that_is_missing_is_said(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GitRefused, match="git cannot be run"):
        Repository.around(tree.root, within=timedelta(seconds=60))


def test_variables_of_git_in_our_own_environment_do_not_reach_it(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert tree.repository().root == tree.root


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_a_repository_of_another_user_is_refused_with_what_to_do(tree: Tree) -> None:
    for path in (tree.root, *tree.root.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    with pytest.raises(GitRefused, match=r"belongs to someone else; `git config --global --add safe\.directory"):
        tree.repository()


def test_where_no_snapshot_can_be_kept_the_state_is_told_all_the_same(tree: Tree) -> None:
    tree.write("new.txt", "new\n")
    (tree.root / ".git" / "refs" / "afresh").write_text("in the way of the ref's folder")
    found, trouble = describe(tree.repository(), REF, CAPS, message="x", keep=3)
    assert (found.untracked, found.snapshot) == (("new.txt",), None)
    assert "update-ref" in trouble


def test_two_thousand_files_take_a_moment(tree: Tree) -> None:
    for number in range(2_000):
        tree.write(f"many/{number}.txt", f"{number}\n")
    found = taken(tree)
    assert len(found.untracked) == 200
    assert found.left_out == 1_800
    assert tree.git("ls-tree", "-r", REF).count("\n") == 2_003


def test_branch_and_commit_are_told_where_the_changes_cannot_be(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poor = tmp_path / "bin" / "git"
    poor.parent.mkdir()
    poor.write_text('#!/bin/sh\n[ "$1" = status ] && exit 3\nexec /usr/bin/env PATH=/usr/bin:/bin git "$@"\n')
    poor.chmod(0o755)
    monkeypatch.setenv("PATH", f"{poor.parent}:/usr/bin:/bin")
    found, trouble = describe(tree.repository(), REF, CAPS, message="x", keep=3)
    assert (found.branch, found.snapshot) == ("main", None)
    assert found.head == tree.git("rev-parse", "HEAD").strip()
    assert trouble.startswith("its changes are unknown, and there is no snapshot: ")
