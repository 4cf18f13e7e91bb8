"""afresh recover: renewals whose flow run died go on, in the calling process."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from deployments.commands.options import AsJson, DryRun, WorkerIds, host_here
from deployments.commands.renewals import handling_of, prefect_here, print_handled, tell_run
from deployments.output import DONE, FAILED, aligned, page_width, print_json, say, tell

if TYPE_CHECKING:
    from lifecycle.recovering import Interrupted


def add_to(app: typer.Typer) -> None:
    app.command("recover")(recover)


def recover(workers: WorkerIds = None, dry_run: DryRun = False, as_json: AsJson = False) -> int:
    """Go on with renewals whose flow run died, each from its phase, and tell workers that a renewal is cancelled.

    Exit code 1 where one ends blocked or fails.
    """
    from lifecycle.recovering import interrupted, untold

    began = datetime.now().astimezone()
    with host_here(quiet=True) as host:
        for worker_id in workers or ():
            host.worker(worker_id)
        found, cancelled = interrupted(host, workers or None), untold(host, workers or None)
    if dry_run:
        _show([*found, *cancelled], as_json=as_json)
        return DONE
    for one in found:
        if not one.goes_on:
            tell(f"afresh: {one.worker_id}: renewal {one.renewal_id} rests at {one.phase}: {one.why}")
    going_on = [one for one in found if one.goes_on]
    entries: list[dict[str, Any]] = []
    if going_on:
        with prefect_here() as url:
            from flows.recovery import recover_renewals

            state = recover_renewals([one.worker_id for one in going_on], renewals="here", return_state=True)
        tell_run(url, state)
        if not state.is_completed():
            tell(f"afresh: the recovery ended as {state.name}: {state.message}")
            return FAILED
        entries = state.result()  # type: ignore[assignment]
    if cancelled:
        entries += _tell([one.worker_id for one in cancelled])
    with host_here(quiet=True) as host:
        told = [handling_of(host, one["worker_id"], "recover", one["outcome"], one["reason"], began) for one in entries]
    if told or as_json:
        print_handled(told, single=False, as_json=as_json)
    else:
        say("nothing was interrupted" if not [*found, *cancelled] else "nothing goes on")
    return FAILED if any(one.outcome in ("blocked", "failed") for one in told) else DONE


def _tell(worker_ids: list[str]) -> list[dict[str, Any]]:
    """Tell these workers that their renewal is cancelled; an entry for each that could be told."""
    from lifecycle.releasing import release_late

    why = "its renewal is cancelled, and it was told to carry on with its task"
    with host_here() as host:
        told = [worker_id for worker_id in worker_ids if release_late(host, host.worker(worker_id))]
    return [{"worker_id": worker_id, "outcome": "spared", "reason": why} for worker_id in told]


def _show(found: list[Interrupted], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [
        (one.worker_id, one.renewal_id, one.phase.value, f"{one.next_step if one.goes_on else 'nothing'}: {one.why}")
        for one in found
    ]
    for line in aligned(rows, page_width()):
        say(line)
    if not found:
        say("nothing was interrupted")
