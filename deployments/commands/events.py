"""afresh events: what happened, in order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.commands.options import AsJson, host_here
from deployments.output import aligned, page_width, print_json, say, stamp

if TYPE_CHECKING:
    from lifecycle.ledger import Event


def add_to(app: typer.Typer) -> None:
    app.command("events")(events)


def events(
    worker: Annotated[
        str | None, typer.Argument(metavar="[WORKER]", help="Worker id (default: all).", show_default=False)
    ] = None,
    after: Annotated[int, typer.Option(min=0, help="Only events with a higher number.")] = 0,
    limit: Annotated[int, typer.Option(min=1, help="At most this many, the newest.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List what happened to the workers, oldest first."""
    with host_here(quiet=True) as host:
        # A worker that nobody declares any more keeps its events; one that has none and never was is an error.
        if worker is not None and not host.ledger.events(worker, limit=1):
            host.worker(worker)
        found = host.ledger.events(worker, after=after, limit=limit)
    if as_json:
        print_json(found)
        return
    for line in aligned([_row(event) for event in found], page_width()):
        say(line)
    if not found:
        say("no events")


def _row(event: Event) -> tuple[str, ...]:
    detail = {"renewal": event.renewal_id, **event.detail} if event.renewal_id else event.detail
    words = "  ".join(f"{name}={_shown(value)}" for name, value in detail.items() if value not in ("", None))
    return f"{event.event_id:>6}", stamp(event.at), event.worker_id, event.kind, words


def _shown(value: object) -> str:
    """One line, quoted where it holds spaces."""
    return value if isinstance(value, str) and not set(value) & set(' \n\t"') else json.dumps(value, ensure_ascii=False)
