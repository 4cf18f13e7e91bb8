"""The command `afresh`. Commands import Prefect only where they need it, so that the others answer at once."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import click
import typer

from deployments.output import FAILED, INTERRUPTED, MISUSED, exit_code_of, tell
from lifecycle.errors import LifecycleError

app = typer.Typer(
    name="afresh",
    help="Renew long-lived AI-agent workers: handoff, clean session, proof that they work again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _options(
    config: Annotated[Path | None, typer.Option(help="Configuration file (default: AFRESH_HOME/afresh.toml).")] = None,
    debug: Annotated[bool, typer.Option(help="Show tracebacks and debug logs.")] = False,
) -> None:
    if config is not None:
        # Flow runs in child processes read the same file.
        os.environ["AFRESH_CONFIG"] = str(config.absolute())
    level = logging.DEBUG if debug else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="%(levelname)s %(message)s")


def main() -> None:
    """Run a command; every error that can be foreseen is one line and an exit code."""
    from deployments.commands import register  # noqa: PLC0415 - `afresh` of another tool may import this module

    register(app)
    debug = "--debug" in sys.argv
    try:
        code = app(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(MISUSED)
    except KeyboardInterrupt:
        tell("afresh: interrupted")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(FAILED)
    except LifecycleError as error:
        if debug:
            raise
        tell(f"afresh: {error.detail}")
        sys.exit(exit_code_of(error))
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
