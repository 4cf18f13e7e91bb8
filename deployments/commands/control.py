"""afresh enable, disable, hold, release, start, adopt: what the operator allows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deployments.commands.options import AsJson, Why, WorkerId, WorkerIds, host_here, who
from deployments.output import print_json, say
from lifecycle.adopting import Proposal, proposals
from lifecycle.errors import Misuse
from lifecycle.host import Host
from lifecycle.lock import held
from lifecycle.starting import start_worker
from lifecycle.value import Value
from lifecycle.worker import Worker

All = Annotated[bool, typer.Option("--all", help="Every managed worker.")]


class Changed(Value):
    """What a command changed for one worker."""

    worker_id: str
    change: str
    message: str


def add_to(app: typer.Typer) -> None:
    for command in (enable, disable, hold, release, start, adopt):
        app.command(command.__name__)(command)


def enable(workers: WorkerIds = None, every: All = False, why: Why = "", as_json: AsJson = False) -> None:
    """Let sweeps renew these workers."""
    _set_automatic(workers, every=every, automatic=True, why=why, as_json=as_json)


def disable(workers: WorkerIds = None, every: All = False, why: Why = "", as_json: AsJson = False) -> None:
    """Let sweeps only read and report these workers."""
    _set_automatic(workers, every=every, automatic=False, why=why, as_json=as_json)


def hold(worker: WorkerId, why: Why = "", as_json: AsJson = False) -> None:
    """Hands off: nothing is typed, started or stopped until released."""
    with host_here() as host:
        found = _managed(host, worker)
        host.ledger.remember(worker, held_since=host.now(), held_why=why or f"held by {who()}")
        host.event("held", found, who=who(), why=why)
    _print([Changed(worker_id=worker, change="held", message=f"{worker} is held")], as_json=as_json)


def release(worker: WorkerId, why: Why = "", as_json: AsJson = False) -> None:
    """End a hold."""
    with host_here() as host:
        found = _managed(host, worker)
        was = host.ledger.record(worker).is_held
        host.ledger.remember(worker, held_since=None, held_why="")
        host.event("released", found, who=who(), why=why)
    message = f"{worker} is released" if was else f"{worker} was not held"
    _print([Changed(worker_id=worker, change="released" if was else "none", message=message)], as_json=as_json)


def start(worker: WorkerId, why: Why = "", as_json: AsJson = False) -> None:
    """Start an absent worker in a clean session."""
    with host_here(quiet=as_json) as host:
        found = _managed(host, worker)
        with held(host.paths(found).lock, worker_id=worker):
            started = start_worker(host, found, who=who(), why=why)
    _print([Changed(worker_id=worker, change="started", message=started)], as_json=as_json)


def adopt(as_json: AsJson = False) -> None:
    """Find agents that run in tmux now, and print the configuration lines that would manage them."""
    with host_here() as host:
        found: list[Proposal] = proposals(host)
        target = host.settings.path or host.settings.home / "afresh.toml"
    if as_json:
        print_json(found)
        return
    fresh = [proposal for proposal in found if not proposal.managed]
    for proposal in found:
        if proposal.managed:
            say(f"# {proposal.worker_id} is managed already ({proposal.session})")
    if not fresh:
        say("# no agent runs that is not managed")
        return
    say(f"# add to {target}:")
    for proposal in fresh:
        say(proposal.toml)


def _set_automatic(workers: list[str] | None, *, every: bool, automatic: bool, why: str, as_json: bool) -> None:
    if bool(workers) == every:
        msg = "name workers, or say --all"
        raise Misuse(msg)
    changed = []
    with host_here() as host:
        chosen = [w for w in host.workers() if w.managed] if every else [_managed(host, w) for w in workers or []]
        for worker in chosen:
            host.ledger.remember(worker.worker_id, automatic=automatic)
            host.event("automatic", worker, on=automatic, who=who(), why=why)
            word = "on" if automatic else "off"
            message = f"automatic renewal of {worker.worker_id} is {word}"
            changed.append(Changed(worker_id=worker.worker_id, change=word, message=message))
    _print(changed, as_json=as_json)


def _managed(host: Host, worker_id: str) -> Worker:
    worker = host.worker(worker_id)
    if not worker.managed:
        place: Path = host.settings.path or host.settings.home / "afresh.toml"
        msg = f"{worker_id} is not managed: add [workers.{worker_id}] to {place} first"
        raise Misuse(msg, worker_id=worker_id)
    return worker


def _print(changed: list[Changed], *, as_json: bool) -> None:
    if as_json:
        print_json(changed)
        return
    for entry in changed:
        say(entry.message)
