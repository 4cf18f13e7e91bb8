"""afresh deploy: this host's work pool, deployments and automations on the Prefect server."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from deployments.commands.options import AsJson
from deployments.output import DONE, MISUSED, print_json, say, tell


def add_to(app: typer.Typer) -> None:
    app.command("deploy")(deploy)


def deploy(
    wait: Annotated[int, typer.Option(help="Seconds to wait for the server to answer.", min=0)] = 10,
    automations_only: Annotated[
        bool, typer.Option("--automations-only", help="Leave pool and deployments alone: beside `afresh serve`.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Put this host's work pool, deployments and automations on the Prefect server.

    Asks nothing, and done again changes nothing. Exit code 2 where a notification block is named that is not there.
    """
    from deployments import deploying
    from lifecycle.settings import load_settings

    settings = load_settings()
    done = deploying.deploy(settings, patience=timedelta(seconds=wait), automations_alone=automations_only)
    if as_json:
        print_json(done)
    else:
        say(f"{done.url}: work pool {done.pool}")
        for name in done.deployments:
            say(f"  deployment {name}")
        for name in done.automations:
            say(f"  automation {name}")
    if done.missing:
        names = ", ".join(done.missing)
        tell(f"afresh: {settings.path}: notify.blocks: {names}: not on the server; make it there under Blocks")
        return MISUSED
    return DONE
