"""afresh handoff: ask for one, show, list and compare them, search all that is known of the past."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployments.commands.options import AsJson, WorkerId, host_here
from deployments.commands.renewals import request_now
from deployments.output import DONE, FAILED, aligned, indented, page_width, print_json, say, stamp, tell
from lifecycle.errors import Misuse

if TYPE_CHECKING:
    from lifecycle.archive_search import Hit
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


@group.command("search")
def search_handoffs(
    text: Annotated[list[str], typer.Argument(metavar="TEXT...", help="Words to look for.", show_default=False)],
    worker: Annotated[str | None, typer.Option(help="Only this worker's.", show_default=False)] = None,
    handoffs_only: Annotated[bool, typer.Option("--handoffs-only", help="Leave out what past sessions said.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most this many.")] = 10,
    as_json: AsJson = False,
) -> int:
    """Search the handoffs of all workers and generations, and what has left the workers' contexts since.

    Exit code 1 where nothing was found.
    """
    from lifecycle.archive_search import search

    with host_here(quiet=True) as host:
        if worker is not None:
            _stored(host, worker)
        kind = "handoff" if handoffs_only else None
        found, indexed = search(host, " ".join(text), worker_id=worker, kind=kind, limit=limit)
    for unread in indexed.unread:
        tell(f"afresh: not searched: {unread}")
    if as_json:
        print_json(found)
        return DONE if found else FAILED
    for hit in found:
        say(_heading(hit))
        for line in indented(hit.snippet, page_width()):
            say(line)
    if not found:
        tell(f"afresh: nothing found in {indexed.documents} handoffs and past sessions")
    return DONE if found else FAILED


@group.command("diff")
def diff(
    worker: WorkerId,
    older: Annotated[
        int | None, typer.Argument(metavar="[A]", min=1, help="A generation (default: the last but one).")
    ] = None,
    newer: Annotated[int | None, typer.Argument(metavar="[B]", min=1, help="A generation (default: the last).")] = None,
    as_json: AsJson = False,
) -> int:
    """Show what the handoff of one generation says otherwise than that of an earlier one."""
    from lifecycle.comparison import compare

    if (older is None) is not (newer is None):
        msg = "name two generations, or none for the last two"
        raise Misuse(msg)
    with host_here(quiet=True) as host:
        newest_of = {one.generation: one for one in reversed(_stored(host, worker))}
        wanted = [older, newer] if older and newer else sorted(newest_of)[-2:]
        chosen = [newest_of[number] for number in wanted if number in newest_of]
        if len(chosen) < 2:
            missing = next((number for number in wanted if number not in newest_of), None)
            what = (
                f"no stored handoff of generation {missing}"
                if missing
                else "stored handoffs of less than two generations"
            )
            tell(f"afresh: {worker} has {what}")
            return FAILED
        compared = compare(host, *chosen)
    if as_json:
        print_json(compared)
        return DONE
    for line in compared.lines or ("the two say the same",):
        say(line)
    for one in (compared.older, compared.newer):
        if not one.intact:
            tell(f"afresh: {one.archive} is not what was stored")
    return DONE


def _heading(hit: Hit) -> str:
    where = f"generation {hit.generation}" if hit.generation is not None else hit.where
    what = f"handoff, {where}" if hit.source == "handoff" else f"session {hit.where}"
    under = f" ({hit.heading})" if hit.heading else ""
    return f"{hit.worker_id}  {stamp(hit.at)}  {hit.score:.2f}  {what}{under}"


def _stored(host: Host, worker_id: str) -> list[StoredHandoff]:
    """Newest first. A worker that nobody declares any more keeps its handoffs."""
    found = host.ledger.handoffs_of(worker_id)
    if not found:
        host.worker(worker_id)
    return found
