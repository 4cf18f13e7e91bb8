"""afresh archive: the index that the archive is searched through."""

from __future__ import annotations

import typer

from deployments.commands.options import AsJson, host_here
from deployments.output import print_json, say, tell

group = typer.Typer(help="The archive of handoffs, and the index that it is searched through.")


def add_to(app: typer.Typer) -> None:
    app.add_typer(group, name="archive")


@group.callback()
def _one_command() -> None:
    """Without it, a group of one command would be that command."""


@group.command("reindex")
def reindex(as_json: AsJson = False) -> None:
    """Make the search index anew from the archive and the workers' databases. Nothing else is changed."""
    from lifecycle.archive_sources import reindex as made_anew

    with host_here(quiet=True) as host:
        indexed = made_anew(host)
    for unread in indexed.unread:
        tell(f"afresh: not indexed: {unread}")
    if as_json:
        print_json(indexed)
        return
    say(f"{indexed.path}: {indexed.passages:,} passages of {indexed.documents:,} handoffs and sessions")
