"""The live view of `afresh status --watch` on a terminal (rich)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from deployments.output import ago

if TYPE_CHECKING:
    from lifecycle.status import WorkerStatus

BAR = 24
"""Characters of a bar; its whole length is the hard limit."""

STYLES = {
    "healthy": "green",
    "watch": "yellow",
    "handoff_required": "dark_orange",
    "renew_required": "red",
    "unknown": "magenta",
    "no_session": "dim",
    "blocked": "bold red",
    "parked": "cyan",
    "held": "blue",
    "renewing": "bold cyan",
    "absent": "dim",
}
"""A colour never says what the word beside it does not."""


def watch(
    read: Callable[[], Sequence[WorkerStatus]], *, now: Callable[[], datetime], wait: Callable[[], None]
) -> NoReturn:
    """Show what *read* finds again and again, *wait* in between, until the caller is interrupted."""
    console = Console()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(screen(read(), now()), refresh=True)
            wait()


def screen(rows: Sequence[WorkerStatus], now: datetime) -> RenderableType:
    """The whole view: a line for the fleet, then the managed workers, those that wait for a human first."""
    managed = sorted((row for row in rows if row.managed), key=lambda row: (row.block is None, row.worker_id))
    table = Table(box=None, expand=True, pad_edge=False, header_style="bold")
    for heading in ("worker", "state", "context", "tokens", "pane", "handoff", "auto"):
        table.add_column(heading, no_wrap=True, justify="right" if heading == "tokens" else "left")
    table.add_column("what comes next", ratio=1)
    for row in managed:
        table.add_row(*cells(row, now))
    return Group(Text(summary(managed, now), style="bold"), Text(), table)


def summary(rows: Sequence[WorkerStatus], now: datetime) -> str:
    """Counts of what matters, and the time of the view."""
    blocked = sum(row.block is not None for row in rows)
    renewing = sum(row.lifecycle_state == "renewing" for row in rows)
    over = sum(row.context_state in ("handoff_required", "renew_required") for row in rows)
    return f"{len(rows)} workers · {blocked} blocked · {renewing} renewing · {over} over a limit · {now:%H:%M:%S} UTC"


def cells(row: WorkerStatus, now: datetime) -> tuple[Text | str, ...]:
    """One line of the table. Words of workers are text here, never markup."""
    state = row.lifecycle_state if row.lifecycle_state != "idle" else row.context_state
    last = ago((now - row.last_handoff_at).total_seconds()) if row.last_handoff_at else "never"
    next_words = f"{row.block.reason}: {row.block.detail}" if row.block else row.why
    return (
        Text(row.worker_id),
        Text(state.replace("_", " "), style=STYLES.get(state, "")),
        bar(row),
        f"{row.tokens:,}" if row.tokens is not None else "-",
        Text(row.pane_state.replace("_", " ")),
        last,
        "on" if row.automatic else "off",
        Text(next_words),
    )


def bar(row: WorkerStatus) -> Text:
    """The context against its hard limit; the marks are the soft and the handoff limit."""
    whole = row.policy.hard
    figure = row.session_total if row.signal == "session_total" else row.tokens
    filled = min(BAR, round(BAR * figure / whole)) if figure is not None else 0
    drawn = ["█" if place < filled else "░" for place in range(BAR)]
    for limit in (row.policy.soft, row.policy.handoff):
        drawn[min(BAR - 1, int(BAR * limit / whole))] = "┃"
    return Text("".join(drawn), style=STYLES.get(row.context_state, ""))
