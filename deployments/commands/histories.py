"""afresh history and undo: what became of a worker, and taking the newest act back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployments.commands.options import AsJson, Why, WorkerId, host_here, who
from deployments.output import DONE, FAILED, aligned, page_width, print_json, say, stamp, tell
from lifecycle.errors import Misuse

if TYPE_CHECKING:
    from lifecycle.history import Chapter


def add_to(app: typer.Typer) -> None:
    app.command("history")(history)
    app.command("undo")(undo)


def history(
    worker: WorkerId,
    limit: Annotated[int, typer.Option(min=1, help="At most this many renewals, the newest.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the renewals of a worker, newest first: tokens before and after, the handoff's quality, the proof, why."""
    from lifecycle.history import history as of_worker

    with host_here(quiet=True) as host:
        try:
            paths = host.paths(host.worker(worker))
        except Misuse:
            # A worker that nobody declares any more keeps its history.
            if not host.ledger.renewals_of(worker, limit=1):
                raise
            paths = None
        found = of_worker(host, worker, paths, limit=limit)
    if as_json:
        print_json(found)
        return
    for line in aligned([_row(chapter) for chapter in found], page_width()):
        say(line)
    if not found:
        say(f"{worker} has not been renewed")


def undo(
    worker: WorkerId,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without it the plan is only shown.")] = False,
    why: Why = "",
    as_json: AsJson = False,
) -> int:
    """Take back the newest act on a worker: cancel a request, or put the handoff before back as latest.

    Exit code 1 where nothing can be undone.
    """
    from lifecycle.lock import held
    from lifecycle.undoing import plan_undo
    from lifecycle.undoing import undo as take_back

    with host_here(quiet=as_json) as host:
        found = host.worker(worker)
        planned = plan_undo(host, found)
        if yes and planned.act is not None:
            with held(host.paths(found).lock, worker_id=worker):
                planned = take_back(host, found, who=who(), why=why)
    if as_json:
        print_json(planned)
        return DONE if planned.act is not None else FAILED
    if planned.act is None:
        tell(f"afresh: {worker}: nothing can be undone: {planned.words}")
    else:
        say(planned.words if planned.done else f"would {planned.words}; --yes does it")
    for lasting in planned.cannot:
        say(f"cannot be undone: {lasting}")
    return DONE if planned.act is not None else FAILED


def _row(chapter: Chapter) -> tuple[str, ...]:
    after = f" -> {_tokens(chapter.tokens_after)}" if chapter.tokens_after is not None else ""
    took = f"{chapter.seconds:.0f} s" if chapter.seconds is not None else ""
    marks = " ".join(filter(None, (chapter.quality, chapter.proof, "latest" if chapter.is_latest else "")))
    return (
        f"generation {chapter.generation}",
        stamp(chapter.opened_at),
        chapter.outcome,
        f"{_tokens(chapter.tokens_before)}{after}",
        took,
        marks,
        chapter.renewal_id,
        chapter.why,
    )


def _tokens(count: int | None) -> str:
    return f"{count:,}" if count is not None else "?"
