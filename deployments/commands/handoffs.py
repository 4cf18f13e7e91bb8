"""afresh handoff: ask for one, show one, list them."""

from __future__ import annotations

from typing import Annotated

import typer

from deployments.commands.options import AsJson, WorkerId, host_here
from deployments.commands.renewals import request_now
from deployments.output import FAILED, print_json, say, tell

group = typer.Typer(help="Handoffs: the documents that cross a renewal.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    app.add_typer(group, name="handoff")


@group.command("request")
def request(worker: WorkerId, as_json: AsJson = False) -> int:
    """Ask the worker for a handoff and store it; the worker works on."""
    return request_now(worker, as_json=as_json)


@group.command("list")
def list_handoffs(worker: WorkerId, as_json: AsJson = False) -> None:
    """List the stored handoffs of a worker, newest first."""
    with host_here() as host:
        host.worker(worker)
        found = host.ledger.handoffs_of(worker)
    if as_json:
        print_json(found)
        return
    for stored in found:
        say(
            f"{stored.created_at:%Y-%m-%d %H:%M:%S}  generation {stored.generation}  {stored.quality}  {stored.archive}"
        )
    if not found:
        say(f"{worker} has no stored handoff")


@group.command("show")
def show(
    worker: WorkerId,
    generation: Annotated[int | None, typer.Option(help="The generation that wrote it (default: the newest).")] = None,
    as_json: AsJson = False,
) -> int:
    """Print a stored handoff. Exit code 1 where there is none, or where the file is not what was stored."""
    with host_here() as host:
        host.worker(worker)
        stored = [h for h in host.ledger.handoffs_of(worker) if generation in (None, h.generation)]
        text, intact = host.stored_text(stored[0]) if stored else ("", False)
    if not stored:
        tell(f"afresh: {worker} has no stored handoff{f' of generation {generation}' if generation else ''}")
        return FAILED
    if as_json:
        print_json({**stored[0].model_dump(mode="json"), "text": text, "intact": intact})
    else:
        say(text)
    if not intact:
        tell(f"afresh: {stored[0].archive} is not what was stored (sha256 {stored[0].sha256})")
    return 0 if intact else FAILED
