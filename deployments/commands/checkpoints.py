"""afresh checkpoint parse: what the parser makes of a text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployments.commands.options import AsJson
from deployments.output import DONE, FAILED, aligned, page_width, print_json, say, tell
from lifecycle.errors import CheckpointRefused, Misuse

if TYPE_CHECKING:
    from lifecycle.checkpoint import Checkpoint

group = typer.Typer(help="Checkpoints: the six-field block in a worker's reply.")


def add_to(app: typer.Typer) -> None:
    app.add_typer(group, name="checkpoint")


@group.command("parse")
def parse(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="A file, or - for standard input.")] = "-",
    worker: Annotated[
        str | None, typer.Option(help="The worker whose checkpoint it must be.", show_default=False)
    ] = None,
    renewal_id: Annotated[
        str | None,
        typer.Option(help="The renewal that it must answer, with a next action to go on from.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Parse a reply. Exit code 1 where it holds no usable checkpoint, and why."""
    from lifecycle.checkpoint import parse_checkpoint
    from lifecycle.worker import checked_worker_id

    worker_id = checked_worker_id(worker) if worker is not None else None
    text = _read(file)
    try:
        checkpoint = parse_checkpoint(
            text, renewal_id=renewal_id, worker_id=worker_id, purpose="handoff" if renewal_id else "any"
        )
    except CheckpointRefused as refusal:
        if as_json:
            print_json(
                {"ok": False, "reason": refusal.reason, "detail": refusal.detail, "missing": list(refusal.missing)}
            )
        else:
            tell(f"refused ({refusal.reason}): {refusal.detail}")
        return FAILED
    if as_json:
        print_json({"ok": True, **_fields(checkpoint)})
    else:
        rows = [(f"{name}:", str(value)) for name, value in _fields(checkpoint).items() if value is not None]
        for line in aligned(rows, page_width()):
            say(line)
    return DONE


def _fields(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "state": checkpoint.state.value,
        "runtime_state": checkpoint.state.runtime_state,
        "checkpoint_status": checkpoint.state.checkpoint_status,
        "files_changed": checkpoint.files_changed,
        "commands_run": checkpoint.commands_run,
        "result": checkpoint.result,
        "blocker": checkpoint.blocker,
        "next_action": checkpoint.next_action,
        "renewal_id": checkpoint.renewal_id,
    }


def _read(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        msg = f"{file}: {error.strerror}"
        raise Misuse(msg) from error
    return raw.decode(errors="replace")
