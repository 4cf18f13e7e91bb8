"""A snapshot of a worker's work tree: one commit under `refs/afresh/`, and nothing else changed."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from lifecycle.collected import WorkTree
from lifecycle.errors import GitRefused
from lifecycle.foreign_text import cleaned
from lifecycle.work_tree import Caps, Change, Repository, Stored

NAMED = 200
"""Changed paths that are named, and as many untracked ones; a snapshot holds more."""

NAMED_NOT_STORED = 50


def snapshot_ref(worker_id: str, generation: int) -> str:
    return f"refs/afresh/{worker_id}/{generation}"


def rescue_ref(worker_id: str, at: datetime) -> str:
    return f"refs/afresh/{worker_id}/rescue/{at:%Y%m%dT%H%M%S.%fZ}"


def describe(repository: Repository, ref: str, caps: Caps | None, *, message: str, keep: int) -> tuple[WorkTree, str]:
    """What git says of the work tree, with a snapshot of it under *ref*; and what could not be done, if anything.

    Of the worker's snapshots the newest *keep* stay. Without *caps* none is taken.

    Raises:
        GitRefused: nothing could be learned.
    """
    tree = WorkTree(root=Path(_shown(str(repository.root))), branch=repository.branch(), head=repository.commit("HEAD"))
    try:
        changes = repository.changes()
    except GitRefused as error:
        return tree, f"its changes are unknown, and there is no snapshot: {error.detail}"
    tree = _with_changes(tree, changes)
    if caps is None:
        return tree, ""
    try:
        stored = repository.store(changes, caps)
        commit = keep_tree(repository, ref, stored, message=message)
        forget_old(repository, ref, keep=keep)
    except GitRefused as error:
        return tree, f"there is no snapshot: {error.detail}"
    lacking = [f"{path}: {why}" for path, why in stored.not_stored.items()]
    more = [f"({len(lacking) - NAMED_NOT_STORED:,} more)"] if len(lacking) > NAMED_NOT_STORED else []
    not_stored = tuple(map(_shown, [*lacking[:NAMED_NOT_STORED], *more]))
    return tree.model_copy(update={"snapshot": ref, "commit": commit, "not_stored": not_stored}), ""


def _with_changes(tree: WorkTree, changes: list[Change]) -> WorkTree:
    dirty = [f"{change.marks} {change.path}" for change in changes if change.marks != "??"]
    untracked = [change.path for change in changes if change.marks == "??"]
    left_out = max(len(dirty) - NAMED, 0) + max(len(untracked) - NAMED, 0)
    named = {"dirty": tuple(map(_shown, dirty[:NAMED])), "untracked": tuple(map(_shown, untracked[:NAMED]))}
    return tree.model_copy(update={**named, "left_out": left_out})


def keep_tree(repository: Repository, ref: str, stored: Stored, *, message: str) -> str:
    """Put a commit of *stored* at *ref*, and return it.

    Its parents are HEAD and what stood at *ref* before, so that a second snapshot of one generation loses nothing;
    the same one over again is the same commit.
    """
    git, head, before = repository.git, repository.commit("HEAD"), repository.commit(ref)
    if before is not None and git.line("rev-parse", f"{before}^{{tree}}") == stored.tree:
        first = git.line("rev-parse", "--quiet", "--verify", f"{before}^1", fails=True) or None
        if first == head:
            return before
    parents = [part for parent in (head, before) if parent for part in ("-p", parent)]
    commit = git.line("commit-tree", "--no-gpg-sign", stored.tree, *parents, "-m", message)
    git("update-ref", ref, commit, before or "")
    return commit


def forget_old(repository: Repository, ref: str, *, keep: int) -> None:
    """Delete the oldest refs beside *ref* and its own kind, beyond the newest *keep*."""
    folder = ref.rpartition("/")[0]
    listed = repository.git.line("for-each-ref", "--sort=-committerdate", "--format=%(refname)", f"{folder}/")
    own_kind = [name for name in listed.splitlines() if name.rpartition("/")[0] == folder and name != ref]
    orders = "".join(f"delete {name}\n" for name in own_kind[max(keep - 1, 0) :])
    if orders:
        repository.git("update-ref", "--stdin", text=orders.encode())


def _shown(path: str) -> str:
    """A path fit for a document; one that no document can hold shows where it is odd."""
    text = os.fsencode(path).decode("utf-8", "replace")
    return " ".join(cleaned(text).splitlines())
