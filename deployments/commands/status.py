"""afresh status: every worker, how full its context is, and what comes next."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from deployments.commands.options import AsJson, WorkerIds, host_here
from deployments.output import ago, aligned, page_width, print_json, say
from lifecycle.errors import Misuse

if TYPE_CHECKING:
    from lifecycle.host import Host
    from lifecycle.status import LastGood, WorkerStatus

WATCH_EVERY = timedelta(seconds=5)

HEADINGS = ("WORKER", "STATE", "TOKENS", "OF HANDOFF", "SOURCE", "PANE", "AUTO", "HANDOFF", "WHY")


def add_to(app: typer.Typer) -> None:
    app.command("status")(status)


def status(
    workers: WorkerIds = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show again every 5 seconds until Ctrl-C.")] = False,
    all_hosts: Annotated[
        bool, typer.Option("--all-hosts", help="Show every host of the Prefect server, as its last sweep left it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show every worker: context, state, what comes next, and why. Looks only; exit code 0 whatever it finds."""
    if all_hosts:
        if watch or workers:
            msg = "--all-hosts shows what each host's last sweep left, of all its workers: it goes with --json alone"
            raise Misuse(msg)
        from deployments.all_hosts import show_all

        show_all(as_json=as_json)
        return
    if watch and as_json:
        msg = "--watch shows again and again, --json prints one document: choose one"
        raise Misuse(msg)
    with host_here(quiet=True) as host:
        if watch:
            _watch(host, workers)
        rows = read(host, workers)
        if as_json:
            print_json(rows)
        else:
            show(host, rows)


def _watch(host: Host, workers: list[str] | None) -> NoReturn:
    """Until Ctrl-C: the live view on a terminal, page after page where a program reads."""
    if sys.stdout.isatty():
        from deployments import live

        live.watch(lambda: read(host, workers), now=host.now, wait=lambda: host.clock.sleep(WATCH_EVERY))
    while True:
        say("\n".join((*page(host, read(host, workers), page_width()), "")))
        host.clock.sleep(WATCH_EVERY)


def show(host: Host, rows: list[WorkerStatus]) -> None:
    say("\n".join(page(host, rows, page_width())))


def read(host: Host, worker_ids: list[str] | None) -> list[WorkerStatus]:
    """Rows of the named workers in that order, of all without a name. An unmanaged profile may be named too."""
    from lifecycle.status import statuses

    known = host.workers()
    by_id = {worker.worker_id: worker for worker in known}
    chosen = [by_id.get(worker_id) or host.worker(worker_id) for worker_id in worker_ids or ()]
    return statuses(host, tuple(chosen) or known)


def page(host: Host, rows: list[WorkerStatus], width: int | None) -> list[str]:
    """What people see: the files in use, a line a managed worker, and the names of the others."""
    settings = host.settings
    lines = [f"configuration: {settings.path or 'none (defaults)'}", f"ledger:        {settings.ledger_path}"]
    managed = [row for row in rows if row.managed]
    others = [row.worker_id for row in rows if not row.managed]
    if managed:
        lines += ["", *table(managed, host.now(), width)]
    if others:
        lines += ["", f"unmanaged, never touched: {', '.join(others)}"]
    if not rows:
        profiles = settings.hermes_root / "profiles"
        lines += ["", f"no workers: {profiles} has no profile, and no roster or configuration names one"]
    return lines


def table(rows: list[WorkerStatus], now: datetime, width: int | None) -> list[str]:
    """The headings and a line a worker."""
    return aligned([HEADINGS, *(_row(row, now) for row in rows)], width)


def _row(row: WorkerStatus, now: datetime) -> tuple[str, ...]:
    figure = row.session_total if row.signal == "session_total" and row.tokens is not None else row.tokens
    shown = row.last_good.tokens if figure is None and row.last_good is not None else figure
    share = f"{figure / row.policy.handoff:4.0%} of {_short(row.policy.handoff)}" if figure is not None else "-"
    return (
        row.worker_id,
        row.lifecycle_state if row.lifecycle_state != "idle" else row.context_state,
        f"{shown:>9,}" if shown is not None else "-".rjust(9),
        share,
        row.tokens_source if figure is not None else _age(row.last_good, now),
        row.pane_state,
        "on" if row.automatic else "off",
        f"{ago((now - row.last_handoff_at).total_seconds())} ago" if row.last_handoff_at else "never",
        f"{row.block.reason}: {row.block.detail}" if row.block else row.why,
    )


def _age(last_good: LastGood | None, now: datetime) -> str:
    """Of a figure that could not be read again since."""
    return f"{ago((now - last_good.read_at).total_seconds())} ago" if last_good is not None else "-"


def _short(tokens: int) -> str:
    return f"{tokens // 1000}k" if tokens >= 1000 and tokens % 1000 == 0 else f"{tokens:,}"
