"""The command `afresh`. A command imports what it needs when it runs, so that the others answer at once."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from deployments.output import FAILED, INTERRUPTED, MISUSED, exit_code_of, tell
from lifecycle.errors import LifecycleError

EXIT_CODES = (
    "Exit codes: 0 done; 1 a renewal of this call ended blocked, or the thing asked for failed; 2 wrong usage, "
    "configuration, or an unknown worker; 130 interrupted."
)

app = typer.Typer(
    name="afresh",
    help="Renew long-lived AI-agent workers: handoff, clean session, proof that they work again.",
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _options(
    config: Annotated[
        Path | None, typer.Option(help="Configuration file (default: AFRESH_CONFIG, else AFRESH_HOME/afresh.toml).")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and debug logs.")] = False,
) -> None:
    if config is not None:
        # Flow runs in child processes read the same file.
        os.environ["AFRESH_CONFIG"] = str(config.absolute())
    shown = logging.StreamHandler(sys.stderr)
    # On the handler, for Prefect's loggers have levels of their own and would pass the root's.
    shown.setLevel(logging.DEBUG if debug else logging.WARNING)
    logging.basicConfig(handlers=[shown], level=logging.WARNING, format="%(levelname)s %(message)s")
    if debug:
        for package in ("lifecycle", "tasks", "flows", "deployments"):
            logging.getLogger(package).setLevel(logging.DEBUG)


def main() -> None:
    """Run the command line of this process and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; every error that can be foreseen is one line on standard error and an exit code."""
    given = general_options_first(arguments)
    debug = "--debug" in given
    try:
        code = _called(given or ["--help"])
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # Nobody reads on. What is still buffered must not fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "afresh"
        tell(f"afresh: {_one_line(error.format_message())} (`{path} --help` shows how)")
        return MISUSED
    except LifecycleError as error:
        if debug:
            raise
        tell(f"afresh: {_one_line(error.detail)}")
        return exit_code_of(error)
    if code == INTERRUPTED:
        tell("afresh: interrupted")
    return code


def _called(arguments: list[str]) -> int:
    from deployments.commands import register  # noqa: PLC0415 - `afresh` of another tool may import this module

    register(app)
    code = app(args=arguments, prog_name="afresh", standalone_mode=False)
    return code if isinstance(code, int) else 0


def general_options_first(arguments: Sequence[str]) -> list[str]:
    """The same arguments with --debug and --config before the command, where the parser wants them."""
    first: list[str] = []
    rest: list[str] = []
    left = list(arguments)
    while left and left[0] != "--":
        word = left.pop(0)
        if word == "--debug" or word.startswith("--config="):
            first.append(word)
        elif word == "--config" and left:
            first += [word, left.pop(0)]
        else:
            rest.append(word)
    return [*first, *rest, *left]


def _one_line(text: str) -> str:
    return " ".join(text.removeprefix("Value error, ").replace(": Value error, ", ": ").split())


if __name__ == "__main__":
    main()
