"""afresh demo: a real worker is renewed before your eyes."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated

import typer

from deployments.commands.options import AsJson
from deployments.output import DONE, FAILED, print_json, say


def add_to(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave folder, worker and records behind to look at.")] = False,
    as_json: AsJson = False,
) -> int:
    """Renew a real Hermes Agent in a scratch folder, as you watch.

    Fills its context, then runs one sweep. Under three minutes; leaves nothing behind.
    """
    from deployments.demo.play import perform  # the stage is built only where it is asked for

    with contextlib.redirect_stdout(sys.stderr):
        performance = perform(keep=keep)
    if as_json:
        print_json(performance)
    elif performance.succeeded:
        say(
            f"renewed: {performance.tokens_before:,} → {performance.tokens_after:,} tokens in a new session, "
            f"and the worker went on with its mission ({performance.seconds:.0f} s in all)"
        )
        if keep:
            say(f"kept: {performance.folder}")
    else:
        say("the worker was not renewed, or did not go on with its mission")
    return DONE if performance.succeeded else FAILED
