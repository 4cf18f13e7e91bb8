"""Options that several commands share, and opening the host for them."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.output import tell
from lifecycle.errors import ConfigurationError

if TYPE_CHECKING:
    from lifecycle.host import Host


def known_workers() -> list[str]:
    """Worker ids for the shell to complete; none where the configuration cannot be read."""
    from lifecycle.errors import LifecycleError
    from lifecycle.roster import load_workers
    from lifecycle.settings import load_settings

    try:
        return [worker.worker_id for worker in load_workers(load_settings()) if worker.managed]
    except LifecycleError:
        return []


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else on standard output.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; do, send and record nothing.")]
WorkerId = Annotated[
    str, typer.Argument(metavar="WORKER", help="Worker id.", show_default=False, autocompletion=known_workers)
]
WorkerIds = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[WORKER]...", help="Worker ids (default: all).", show_default=False, autocompletion=known_workers
    ),
]
Why = Annotated[str, typer.Option(help="Why, for the record.", show_default=False)]


@contextmanager
def host_here(*, quiet: bool = False) -> Iterator[Host]:
    """The host that the configuration describes. Progress goes to standard error, each new word once.

    Raises:
        ConfigurationError: the state folder cannot be made, or the configuration cannot be used.
    """
    from lifecycle.host import Host
    from lifecycle.settings import load_settings

    last: dict[str, str] = {}

    def progress(worker_id: str, words: str) -> None:
        if not quiet and last.get(worker_id) != words:
            last[worker_id] = words
            tell(f"{worker_id}: {words}")

    settings = load_settings()
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        msg = f"{settings.home}: no folder for Afresh's state: {error.strerror}; set AFRESH_HOME to one"
        raise ConfigurationError(msg) from error
    with Host.opened(settings, progress=progress) as host:
        yield host


def who() -> str:
    """The person at the keyboard, for the record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return "operator"
