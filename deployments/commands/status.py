"""afresh status: every worker, how full its context is, and what comes next."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import typer

from deployments.commands.options import AsJson, WorkerIds, host_here
from deployments.output import ago, print_json, say
from lifecycle.host import Host
from lifecycle.status import WorkerStatus, statuses

WATCH_EVERY = timedelta(seconds=5)


def add_to(app: typer.Typer) -> None:
    app.command("status")(status)


def status(
    workers: WorkerIds = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show again every 5 seconds until interrupted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show every worker: context, state, what comes next, and why."""
    with host_here(quiet=True) as host:
        while True:
            rows = read(host, workers)
            if as_json:
                print_json(rows)
            else:
                show(host, rows)
            if not watch:
                return
            host.clock.sleep(WATCH_EVERY)


def read(host: Host, worker_ids: list[str] | None) -> list[WorkerStatus]:
    chosen = tuple(host.worker(worker_id) for worker_id in worker_ids) if worker_ids else host.workers()
    return statuses(host, chosen)


def show(host: Host, rows: list[WorkerStatus]) -> None:
    settings = host.settings
    say(f"configuration: {settings.path or 'none (defaults)'}   ledger: {settings.ledger_path}")
    if not rows:
        say(f"no workers: {settings.hermes_root / 'profiles'} has no profile, and no roster or configuration names one")
        return
    table: list[tuple[str, ...]] = [
        ("WORKER", "STATE", "TOKENS", "OF LIMIT", "SOURCE", "PANE", "AUTO", "HANDOFF", "WHY")
    ]
    table += [_row(row, host.now()) for row in rows if row.managed]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]) - 1)]
    for line in table:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        say("  ".join((*cells, line[-1])).rstrip())
    others = [row.worker_id for row in rows if not row.managed]
    if others:
        say(f"unmanaged, never touched: {', '.join(others)}")


def _row(row: WorkerStatus, now: datetime) -> tuple[str, ...]:
    tokens = f"{row.tokens:,}" if row.tokens is not None else "-"
    share = f"{row.tokens / row.policy.handoff:.0%} of {row.policy.handoff:,}" if row.tokens is not None else "-"
    handoff = ago((now - row.last_handoff_at).total_seconds()) + " ago" if row.last_handoff_at else "never"
    state = row.lifecycle_state if row.lifecycle_state != "idle" else row.context_state
    why = f"{row.block.reason}: {row.block.detail}" if row.block else row.why
    return (
        row.worker_id,
        state,
        tokens,
        share,
        row.tokens_source,
        row.pane_state,
        "on" if row.automatic else "off",
        handoff,
        why,
    )
