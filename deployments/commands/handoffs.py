"""afresh handoff: ask for one, show one, list them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployments.commands.options import AsJson, WorkerId, host_here
from deployments.commands.renewals import request_now
from deployments.output import DONE, FAILED, aligned, page_width, print_json, say, stamp, tell

if TYPE_CHECKING:
    from lifecycle.host import Host
    from lifecycle.ledger import StoredHandoff

group = typer.Typer(help="Handoffs: the documents that cross a renewal.")


def add_to(app: typer.Typer) -> None:
    app.add_typer(group, name="handoff")


@group.command("request")
def request(worker: WorkerId, as_json: AsJson = False) -> int:
    """Ask the worker for a handoff and store it; the worker works on. Exit code 1 where none was stored."""
    return request_now(worker, as_json=as_json)


@group.command("list")
def list_handoffs(worker: WorkerId, as_json: AsJson = False) -> None:
    """List the stored handoffs of a worker, newest first."""
    with host_here(quiet=True) as host:
        found = _stored(host, worker)
    if as_json:
        print_json(found)
        return
    rows = [
        (stamp(one.created_at), f"generation {one.generation}", one.quality.value, one.renewal_id, str(one.archive))
        for one in found
    ]
    for line in aligned(rows, page_width()):
        say(line)
    if not found:
        say(f"{worker} has no stored handoff")


@group.command("show")
def show(
    worker: WorkerId,
    generation: Annotated[
        int | None,
        typer.Option(min=1, help="The generation that wrote it (default: the newest).", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Print a stored handoff. Exit code 1 where there is none, or where the file is not what was stored."""
    with host_here(quiet=True) as host:
        stored = next((one for one in _stored(host, worker) if generation in (None, one.generation)), None)
        text, intact = host.stored_text(stored) if stored else ("", False)
    if stored is None:
        tell(f"afresh: {worker} has no stored handoff{f' of generation {generation}' if generation else ''}")
        return FAILED
    if as_json:
        print_json({**stored.model_dump(mode="json"), "text": text, "intact": intact})
    elif text:
        say(text.rstrip("\n"))
    if not intact:
        found = "is not what was stored" if text else "is gone or cannot be read"
        tell(f"afresh: {stored.archive} {found} (sha256 {stored.sha256})")
    return DONE if intact else FAILED


def _stored(host: Host, worker_id: str) -> list[StoredHandoff]:
    """Newest first. A worker that nobody declares any more keeps its handoffs."""
    found = host.ledger.handoffs_of(worker_id)
    if not found:
        host.worker(worker_id)
    return found
