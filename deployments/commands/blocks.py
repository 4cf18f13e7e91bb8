"""afresh blocked and answer: what waits for a human."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deployments.commands.options import AsJson, Why, WorkerId, host_here, who
from deployments.commands.renewals import renew_now
from deployments.output import DONE, indented, page_width, print_json, say, stamp
from lifecycle.choice import Choice
from lifecycle.errors import Misuse


def add_to(app: typer.Typer) -> None:
    app.command("blocked")(blocked)
    app.command("answer")(answer_block)


def blocked(as_json: AsJson = False) -> None:
    """List what waits for a human, with evidence and answers. Exit code 0 whatever it finds."""
    from lifecycle.blocked import waiting

    with host_here(quiet=True) as host:
        found = waiting(host)
    if as_json:
        print_json(found)
        return
    if not found:
        say("nothing is blocked")
    width = page_width()
    for number, entry in enumerate(found):
        placed = entry.block
        lines = [
            *([""] if number else []),
            f"{entry.worker_id}: {placed.reason}, at {placed.phase}, {stamp(placed.at)}",
            *indented(placed.detail, width),
            *indented(placed.evidence, None, by="  | "),
            *indented(entry.remedy, width),
        ]
        say("\n".join(lines))


def answer_block(
    worker: WorkerId,
    choice: Annotated[Choice, typer.Argument(metavar="CHOICE", help="The answer.", show_default=False)],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="With use-text: the file that holds the handoff.", show_default=False),
    ] = None,
    why: Why = "",
    as_json: AsJson = False,
) -> int:
    """Answer what waits: the renewal goes on at once, or is closed. Exit code 1 where it ends blocked again.

    retry goes on from where the renewal stands. force also ends a busy turn, after a synthesized handoff.
    synthesize and use-text go on with a handoff that the worker did not write. dismiss closes the renewal, hold
    closes it and keeps hands off; both first bring a stopped worker back.
    """
    if (choice is Choice.USE_TEXT) != (file is not None):
        msg = "use-text takes a file with the handoff, and no other answer does"
        raise Misuse(msg)
    text = _text(file)
    from lifecycle.answering import answer
    from lifecycle.lock import held

    with host_here(quiet=as_json) as host:
        found = host.worker(worker)
        with held(host.paths(found).lock, worker_id=worker):
            answered = answer(host, found, choice, who=who(), why=why, text=text)
    if answered.goes_on:
        return renew_now(worker, force=choice is Choice.FORCE, why=why or choice.value, as_json=as_json)
    if as_json:
        print_json(answered)
    else:
        say(answered.message)
    return DONE


def _text(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        return file.read_bytes().decode()
    except OSError as error:
        msg = f"{file}: {error.strerror}"
        raise Misuse(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{file}: not UTF-8 text: {error.reason} at byte {error.start}"
        raise Misuse(msg) from error
