"""afresh doctor: everything that an install needs, and what mends what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployments.commands.options import AsJson, host_here, known_workers
from deployments.output import DONE, FAILED, indented, page_width, print_json, say

if TYPE_CHECKING:
    from lifecycle.remark import Remark

MARKS = {"ok": "ok     ", "advice": "advice ", "trouble": "TROUBLE"}


def add_to(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(
    worker: Annotated[
        str | None,
        typer.Argument(
            metavar="[WORKER]",
            help="Only this worker (default: all).",
            show_default=False,
            autocompletion=known_workers,
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check tmux, agents, limits, Prefect, permissions and disk; each finding names what mends it.

    Exit code 1 if something that Afresh does would fail.
    """
    from deployments.server_checkup import check_server
    from lifecycle.checkup import check_files, check_ledger, check_tmux, check_worker, check_workers

    with host_here(quiet=True) as host:
        if worker is not None:
            found = check_worker(host, host.worker(worker))
        else:
            found = [*check_files(host.settings), *check_tmux(host), *check_ledger(host)]
            found += [*check_server(host.settings), *check_workers(host)]
    if as_json:
        print_json(found)
    else:
        show(found)
    return FAILED if any(remark.verdict == "trouble" for remark in found) else DONE


def show(found: list[Remark]) -> None:
    """What is fine in a line each, then what is not with its remedy under it."""
    for remark in sorted(found, key=lambda remark: list(MARKS).index(remark.verdict)):
        say(f"{MARKS[remark.verdict]}  {remark.about}: {remark.says}")
        for line in indented(remark.fix, page_width(), by=" " * 9) if remark.fix else ():
            say(line)
    bad = sum(remark.verdict == "trouble" for remark in found)
    hints = sum(remark.verdict == "advice" for remark in found)
    say(f"\n{len(found) - bad - hints} ok, {hints} to consider, {bad} to mend")
