"""Options that several commands share, and opening the host for them."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from deployments.output import tell
from lifecycle.host import Host
from lifecycle.settings import load_settings

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else on standard output.")]
WorkerId = Annotated[str, typer.Argument(metavar="WORKER", help="Worker id.", show_default=False)]
WorkerIds = Annotated[
    list[str] | None, typer.Argument(metavar="[WORKER]...", help="Worker ids (default: all).", show_default=False)
]
Why = Annotated[str, typer.Option(help="Why, for the record.")]


@contextmanager
def host_here(*, quiet: bool = False) -> Iterator[Host]:
    """The host that the configuration describes. Progress goes to standard error, each new word once."""
    last: dict[str, str] = {}

    def progress(worker_id: str, words: str) -> None:
        if not quiet and last.get(worker_id) != words:
            last[worker_id] = words
            tell(f"{worker_id}: {words}")

    with Host.opened(load_settings(), progress=progress) as host:
        yield host


def who() -> str:
    """The person at the keyboard, for the record."""
    return getpass.getuser()
