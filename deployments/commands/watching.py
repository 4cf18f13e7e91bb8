"""afresh watch: one look at server and sweeps from outside, for a timer."""

from __future__ import annotations

import typer

from deployments.commands.options import AsJson, host_here
from deployments.output import DONE, FAILED, print_json, say, stamp


def add_to(app: typer.Typer) -> None:
    app.command("watch")(watch)


def watch(as_json: AsJson = False) -> int:
    """Look once whether the Prefect server answers and sweeps end, and notify where not.

    Meant for a timer, for a server cannot report its own death. Exit code 1 where it does not answer.
    """
    from deployments.watching import look_from_here

    with host_here(quiet=True) as host:
        found = look_from_here(host)
    if as_json:
        print_json(found)
    else:
        swept = f"last sweep ended {stamp(found.last_sweep_at)}" if found.last_sweep_at else "no sweep has ended yet"
        say(f"{found.url}: {'answers' if found.answers else 'does not answer'}; {swept}")
    return DONE if found.answers else FAILED
