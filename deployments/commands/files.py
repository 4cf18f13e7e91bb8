"""afresh files: what a snapshot of a worker's work tree holds, and getting it back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.commands.options import AsJson, WorkerId, host_here
from deployments.output import DONE, FAILED, aligned, page_width, print_json, say, stamp, tell
from lifecycle.errors import GitRefused

if TYPE_CHECKING:
    from lifecycle.host import Host
    from lifecycle.kept_snapshots import KeptSnapshot
    from lifecycle.restoring import Now, RestorePlan
    from lifecycle.work_tree import Caps, Repository

PATIENCE = timedelta(minutes=2)
"""For git; a person waits, and can interrupt."""

group = typer.Typer(help="Snapshots of the files of a worker, taken when its handoffs were saved.")

Generation = Annotated[
    int | None,
    typer.Option(min=1, help="The generation that ended with the snapshot (default: the newest).", show_default=False),
]
Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH", help="Files or folders below the top of the work tree.", show_default=False),
]


def add_to(app: typer.Typer) -> None:
    app.add_typer(group, name="files")


@group.command("diff")
def diff(
    worker: WorkerId,
    paths: Paths = None,
    generation: Generation = None,
    patch: Annotated[bool, typer.Option("--patch", help="Show the changed lines too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what changed in the work tree since a snapshot. Nothing is written."""
    from lifecycle.restoring import patch_of

    with _planned(worker, generation, paths or []) as (snapshot, plan, repository, now, _caps, _host):
        changed = patch_of(repository, now, plan) if patch else b""
    if as_json:
        more = {"patch": changed.decode(errors="replace")} if patch else {}
        print_json({"snapshot": snapshot.model_dump(mode="json"), **plan.model_dump(mode="json"), **more})
        return
    _say_plan(snapshot, plan, {"create": "gone", "overwrite": "changed", "conflict": "changed", "left": "new"})
    if changed:
        sys.stdout.flush()
        sys.stdout.buffer.write(changed)


@group.command("restore")
def restore(
    worker: WorkerId,
    paths: Paths = None,
    generation: Generation = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this the plan is shown.")] = False,
    as_json: AsJson = False,
) -> int:
    """Bring files back as a snapshot holds them. A file that changed since the newest snapshot is kept as it is.

    Without --yes only the plan is shown. Before the first write everything is saved under a ref of its own. Nothing
    is ever deleted. Exit code 1 where a file could not be brought back.
    """
    from lifecycle import restoring
    from lifecycle.lock import held

    with _planned(worker, generation, paths or []) as (snapshot, plan, repository, _now, caps, host):
        if not yes:
            if as_json:
                print_json(
                    {"snapshot": snapshot.model_dump(mode="json"), "done": False, **plan.model_dump(mode="json")}
                )
            else:
                _say_plan(
                    snapshot, plan, {"create": "create", "overwrite": "overwrite", "conflict": "keep", "left": "leave"}
                )
                if plan.paths("create", "overwrite"):
                    say("nothing was written; --yes does it")
            return DONE
        with held(host.settings.home / "locks" / f"{worker}.lock", worker_id=worker):
            done = restoring.restore(repository, plan, caps, at=host.now())
    if as_json:
        print_json({"snapshot": snapshot.model_dump(mode="json"), "done": True, **done.model_dump(mode="json")})
    else:
        for path in done.restored:
            say(f"restored {path}")
        if done.rescue:
            say(f"as it was before: {done.rescue}")
    for path in done.conflicts:
        why = next((step.why for step in plan.steps if step.path == path and step.why), "it changed meanwhile")
        tell(f"afresh: kept {path}: {why}; the snapshot's: git show {snapshot.commit[:12]}:{path}")
    return FAILED if done.conflicts else DONE


@contextmanager
def _planned(
    worker: str, generation: int | None, paths: list[str]
) -> Iterator[tuple[KeptSnapshot, RestorePlan, Repository, Now, Caps, Host]]:
    import tempfile
    from pathlib import Path

    from lifecycle.kept_snapshots import chosen, snapshots_of
    from lifecycle.restoring import look_now, plan_of
    from lifecycle.work_tree import Caps, Repository

    with host_here(quiet=True) as host, tempfile.TemporaryDirectory(prefix="afresh-") as scratch:
        found = snapshots_of(host.ledger, worker)
        if not found:
            host.worker(worker)
        snapshot, newest = chosen(found, worker, generation)
        rules = host.settings.collect
        caps = Caps(largest_file=rules.largest_file, most_bytes=rules.largest_snapshot)
        repository = Repository.around(snapshot.root, within=PATIENCE) if snapshot.root.is_dir() else None
        if repository is None or repository.root.resolve() != snapshot.root.resolve():
            msg = f"{snapshot.root}: the work tree of the snapshot is not there any more"
            raise GitRefused(msg, worker_id=worker)
        now = look_now(repository, caps, Path(scratch))
        plan = plan_of(
            repository,
            now,
            worker_id=worker,
            generation=snapshot.generation,
            commit=snapshot.commit,
            newest=newest.commit,
            only=paths,
        )
        yield snapshot, plan, repository, now, caps, host


def _say_plan(snapshot: KeptSnapshot, plan: RestorePlan, words: dict[str, str]) -> None:
    say(f"snapshot of generation {snapshot.generation}, {stamp(snapshot.at)}, {snapshot.ref} in {plan.root}")
    rows = [(words[step.act], step.path + (f"  ({step.why})" if step.why else "")) for step in plan.steps]
    for line in aligned(rows, page_width()):
        say(line)
    if not plan.steps:
        say("nothing differs")
