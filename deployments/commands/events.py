"""afresh events: what happened, in order."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from deployments.commands.options import AsJson, host_here
from deployments.output import print_json, say
from lifecycle.worker import checked_worker_id


def add_to(app: typer.Typer) -> None:
    app.command("events")(events)


def events(
    worker: Annotated[str | None, typer.Argument(metavar="[WORKER]", show_default=False)] = None,
    after: Annotated[int, typer.Option(help="Only events with a higher number.")] = 0,
    limit: Annotated[int, typer.Option(min=1, help="At most this many, the newest.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List what happened to the workers, oldest first."""
    worker_id = checked_worker_id(worker) if worker else None
    with host_here() as host:
        found = host.ledger.events(worker_id, after=after, limit=limit)
    if as_json:
        print_json(found)
        return
    for event in found:
        detail = json.dumps(event.detail, ensure_ascii=False) if event.detail else ""
        say(f"{event.event_id:>6}  {event.at:%Y-%m-%d %H:%M:%S}  {event.worker_id}  {event.kind}  {detail}".rstrip())
