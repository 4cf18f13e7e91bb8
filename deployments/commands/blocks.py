"""afresh blocked and answer: what waits for a human."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deployments.commands.options import AsJson, Why, WorkerId, host_here, who
from deployments.commands.renewals import renew_now
from deployments.output import print_json, say
from lifecycle.answering import Choice, answer
from lifecycle.ending import remedy
from lifecycle.errors import Misuse
from lifecycle.host import Host
from lifecycle.lock import held
from lifecycle.renewal import Block, Renewal
from lifecycle.value import Value


class Waiting(Value):
    """One block that waits for an answer."""

    worker_id: str
    renewal_id: str
    block: Block
    remedy: str


def add_to(app: typer.Typer) -> None:
    app.command("blocked")(blocked)
    app.command("answer")(answer_block)


def blocked(as_json: AsJson = False) -> None:
    """List the blocks that wait for a human, with their evidence and answers."""
    with host_here() as host:
        waiting = [_waiting(host, renewal) for renewal in host.ledger.open_renewals() if renewal.block]
    if as_json:
        print_json(waiting)
        return
    if not waiting:
        say("nothing is blocked")
    for entry in waiting:
        placed = entry.block
        say(f"{entry.worker_id}: {placed.reason} at {placed.phase} since {placed.at:%Y-%m-%d %H:%M:%S} UTC")
        say(f"  {placed.detail}")
        for line in placed.evidence.splitlines():
            say(f"  | {line}")
        say(f"  {entry.remedy}")


def _waiting(host: Host, renewal: Renewal) -> Waiting:
    placed = renewal.block
    if placed is None:
        msg = f"{renewal.renewal_id} is not blocked"
        raise Misuse(msg)
    worker = host.worker(renewal.worker_id)
    return Waiting(
        worker_id=renewal.worker_id, renewal_id=renewal.renewal_id, block=placed, remedy=remedy(worker, placed)
    )


def answer_block(
    worker: WorkerId,
    choice: Annotated[Choice, typer.Argument(help="The answer.")],
    file: Annotated[Path | None, typer.Argument(help="For use-text: the file with the handoff.")] = None,
    why: Why = "",
    as_json: AsJson = False,
) -> int:
    """Answer a block. retry, force, synthesize and use-text go on with the same renewal at once."""
    if (choice is Choice.USE_TEXT) != (file is not None):
        msg = "use-text takes a file, and no other answer does"
        raise Misuse(msg)
    with host_here(quiet=as_json) as host:
        found = host.worker(worker)
        with held(host.paths(found).lock, worker_id=worker):
            answered = answer(host, found, choice, who=who(), why=why, text=_text(file))
    if answered.goes_on:
        return renew_now(worker, force=choice is Choice.FORCE, why=why or choice.value, as_json=as_json)
    if as_json:
        print_json(answered)
    else:
        say(answered.message)
    return 0


def _text(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        return file.read_bytes().decode(errors="replace")
    except OSError as error:
        msg = f"{file}: {error.strerror}"
        raise Misuse(msg) from error
