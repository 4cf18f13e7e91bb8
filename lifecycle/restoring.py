"""Files out of a snapshot: a plan first, and never over what somebody changed since."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

from lifecycle import durable
from lifecycle.errors import GitRefused, Misuse
from lifecycle.snapshot import forget_old, keep_tree, rescue_ref
from lifecycle.value import Value
from lifecycle.work_tree import Caps, Repository, Stored

Act = Literal["create", "overwrite", "conflict", "left"]

RESCUES_KEPT = 20


class Step(Value):
    """What is done with one path that differs from the snapshot.

    `create`: it is gone now. `overwrite`: it lies there as a newer snapshot holds it. `conflict`: it was changed since
    the newest snapshot, or cannot be written safely, and is kept. `left`: the snapshot has no such path; nothing is
    ever deleted.
    """

    path: str
    act: Act
    why: str = ""
    mode: str = ""
    blob: str = ""
    mode_now: str = ""
    blob_now: str = ""


class RestorePlan(Value):
    """All paths that differ between a snapshot and the work tree *root* now."""

    worker_id: str
    generation: int
    root: Path
    commit: str
    steps: tuple[Step, ...] = ()

    def paths(self, *acts: Act) -> tuple[str, ...]:
        return tuple(step.path for step in self.steps if step.act in acts)


class Restored(Value):
    """What was written, what was kept, and the ref of the snapshot that was taken before; none where nothing was."""

    restored: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    rescue: str | None = None


class _Entry(NamedTuple):
    mode: str
    blob: str
    mode_now: str
    blob_now: str


class Now(NamedTuple):
    """The work tree as it is, as a tree in a scratch store of objects that *environment* names."""

    stored: Stored
    environment: dict[str, str]


def plan_of(
    repository: Repository,
    now: Now,
    *,
    worker_id: str,
    generation: int,
    commit: str,
    newest: str,
    only: Sequence[str] = (),
) -> RestorePlan:
    """Compare the work tree with the snapshot *commit*; *newest* is the worker's newest one, by which a file that
    nobody changed since is known. *only* are paths or folders, absolute or below the top of the work tree.

    Raises:
        Misuse: a path of *only* lies outside, or differs in nothing and is not in the snapshot.
        GitRefused
    """
    for name in (commit, newest):
        if repository.commit(name) is None:
            msg = f"{repository.root}: the snapshot {name[:12]} is gone"
            raise GitRefused(msg)
    wanted = [_below(repository.root, path) for path in only]
    differs = _compared(repository, commit, now)
    changed_since = _compared(repository, newest, now).keys()
    for path in wanted:
        if not _is_in(path, differs) and not repository.git("ls-tree", commit, path, fails=True):
            msg = f"{path}: the snapshot of generation {generation} has no such path"
            raise Misuse(msg)
    steps = [
        _step(repository, path, entry, changed=path in changed_since)
        for path, entry in differs.items()
        if not wanted or any(_is_in(folder, [path]) for folder in wanted)
    ]
    return RestorePlan(
        worker_id=worker_id, generation=generation, root=repository.root, commit=commit, steps=tuple(steps)
    )


def look_now(repository: Repository, caps: Caps, folder: Path) -> Now:
    """The work tree as a tree; its objects go into *folder*, not into the repository."""
    objects = repository.root / repository.git.line("rev-parse", "--git-path", "objects")
    known = str(objects)
    if ":" in known:
        known = '"' + known.replace("\\", "\\\\").replace('"', '\\"') + '"'
    environment = {"GIT_OBJECT_DIRECTORY": str(folder), "GIT_ALTERNATE_OBJECT_DIRECTORIES": known}
    return Now(repository.store(repository.changes(), caps, environment=environment), environment)


def patch_of(repository: Repository, now: Now, plan: RestorePlan) -> bytes:
    """From the snapshot to the work tree, as a patch."""
    paths = [step.path for step in plan.steps]
    if not paths:
        return b""
    options = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--binary")
    return repository.git("diff", *options, plan.commit, now.stored.tree, "--", *paths, environment=now.environment)


def restore(repository: Repository, plan: RestorePlan, caps: Caps, *, at: datetime) -> Restored:
    """Do what *plan* says, after a snapshot of everything under a ref of its own. Index and HEAD stay as they are.

    Every file is compared once more right before it is written; one that changed meanwhile is kept.

    Raises:
        GitRefused: nothing was written.
    """
    steps = [step for step in plan.steps if step.act in {"create", "overwrite"}]
    conflicts = list(plan.paths("conflict"))
    if not steps:
        return Restored(conflicts=tuple(conflicts))
    rescue = rescue_ref(plan.worker_id, at)
    stored = repository.store(repository.changes(), caps)
    keep_tree(repository, rescue, stored, message=f"afresh: before files of {plan.worker_id} were restored")
    forget_old(repository, rescue, keep=RESCUES_KEPT)
    restored: list[str] = []
    with tempfile.TemporaryDirectory(prefix="afresh-") as scratch:
        for step in steps:
            try:
                written = _write(repository, step, Path(scratch))
            except (OSError, GitRefused):
                written = False
            (restored if written else conflicts).append(step.path)
    return Restored(restored=tuple(restored), conflicts=tuple(conflicts), rescue=rescue)


def _step(repository: Repository, path: str, entry: _Entry, *, changed: bool) -> Step:
    found = Step(
        path=path,
        act="left",
        mode=entry.mode,
        blob=entry.blob,
        mode_now=entry.mode_now,
        blob_now=entry.blob_now,
    )
    if "160000" in (entry.mode, entry.mode_now):
        return found.model_copy(update={"why": "a submodule"})
    if entry.mode == "000000":
        return found.model_copy(update={"why": "not in the snapshot"})
    is_there = os.path.lexists(repository.root / path)
    if entry.mode_now == "000000":
        blocked = "something lies there that no snapshot holds" if is_there else _in_the_way(repository.root, path)
        return found.model_copy(update={"act": "conflict" if blocked else "create", "why": blocked})
    if changed:
        return found.model_copy(update={"act": "conflict", "why": "changed since the newest snapshot"})
    blocked = _in_the_way(repository.root, path)
    return found.model_copy(update={"act": "conflict" if blocked else "overwrite", "why": blocked})


def _write(repository: Repository, step: Step, scratch: Path) -> bool:
    path = repository.root / step.path
    if _in_the_way(repository.root, step.path):
        return False
    if step.act == "create" and os.path.lexists(path):
        return False
    if step.act == "overwrite" and not _is_as_planned(repository, step, scratch):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    if step.mode == "120000":
        target = os.fsdecode(repository.git("cat-file", "blob", step.blob))
        temporary = path.parent / f".afresh-{secrets.token_hex(6)}"
        temporary.symlink_to(target)
        temporary.replace(path)
    else:
        content = repository.git("cat-file", "--filters", f"--path={step.path}", step.blob)
        durable.replace(path, content, mode=_mode(path, is_executable=step.mode == "100755"))
    return True


def _is_as_planned(repository: Repository, step: Step, scratch: Path) -> bool:
    is_link = (repository.root / step.path).is_symlink()
    same_kind = is_link == (step.mode_now == "120000")
    return same_kind and repository.blob_of(step.path, step.mode_now, scratch) == step.blob_now


def _mode(path: Path, *, is_executable: bool) -> int:
    try:
        found = path.lstat()
        now = stat.S_IMODE(found.st_mode) if stat.S_ISREG(found.st_mode) else 0o644
    except FileNotFoundError:
        now = 0o644
    return now | 0o111 if is_executable else now & ~0o111


def _in_the_way(root: Path, path: str) -> str:
    """What forbids to write *path*: a folder above it that is none, or that leads elsewhere."""
    folder = root
    for part in PurePosixPath(path).parts[:-1]:
        folder /= part
        if folder.is_symlink():
            return f"{folder.relative_to(root)} is a symbolic link"
        if os.path.lexists(folder) and not folder.is_dir():
            return f"{folder.relative_to(root)} is no folder"
    whole = root / path
    return "a folder lies there" if whole.is_dir() and not whole.is_symlink() else ""


def _compared(repository: Repository, commit: str, now: Now) -> Mapping[str, _Entry]:
    listed = repository.git(
        "diff-tree",
        "-r",
        "-z",
        "--raw",
        "--no-renames",
        "--abbrev=64",
        commit,
        now.stored.tree,
        environment=now.environment,
    ).split(b"\0")
    found = {}
    for described, path in zip(listed[::2], listed[1::2], strict=False):
        mode, mode_now, blob, blob_now, _ = described.decode().removeprefix(":").split(" ")
        found[os.fsdecode(path)] = _Entry(mode, blob, mode_now, blob_now)
    return found


def _below(root: Path, path: str) -> str:
    whole = Path(os.path.normpath(root / path))
    if not whole.is_relative_to(root):
        msg = f"{path}: lies outside the work tree {root}"
        raise Misuse(msg)
    return str(whole.relative_to(root))


def _is_in(folder: str, paths: Iterable[str]) -> bool:
    return folder == "." or any(path == folder or path.startswith(f"{folder}/") for path in paths)
