"""afresh enable, disable, hold, release, start, adopt: what the operator allows."""

from __future__ import annotations

from typing import Annotated

import typer

from deployments.commands.options import AsJson, Why, WorkerId, host_here, who
from deployments.output import print_json, say
from lifecycle.errors import Misuse
from lifecycle.value import Value

NamedWorkers = Annotated[
    list[str] | None, typer.Argument(metavar="[WORKER]...", help="Worker ids.", show_default=False)
]
All = Annotated[bool, typer.Option("--all", help="Every managed worker.")]


class Changed(Value):
    """What a command changed for one worker; *change* is `none` where it was so already."""

    worker_id: str
    change: str
    message: str


def add_to(app: typer.Typer) -> None:
    for command in (enable, disable, hold, release, start, adopt):
        app.command(command.__name__)(command)


def enable(workers: NamedWorkers = None, every: All = False, why: Why = "", as_json: AsJson = False) -> None:
    """Let sweeps renew these workers."""
    _set_automatic(workers, every=every, automatic=True, why=why, as_json=as_json)


def disable(workers: NamedWorkers = None, every: All = False, why: Why = "", as_json: AsJson = False) -> None:
    """Let sweeps only read and report these workers."""
    _set_automatic(workers, every=every, automatic=False, why=why, as_json=as_json)


def hold(worker: WorkerId, why: Why = "", as_json: AsJson = False) -> None:
    """Hands off: type, start and stop nothing until it is released."""
    from lifecycle.lock import is_held

    with host_here() as host:
        found = host.worker(worker)
        before = host.ledger.record(worker)
        if not before.is_held:
            host.ledger.remember(worker, held_since=host.now(), held_why=why or f"held by {who()}")
            host.event("held", found, who=who(), why=why)
        is_at_work = is_held(host.paths(found).lock)
    words = f"{worker} is held already ({before.held_why})" if before.is_held else f"{worker} is held"
    words += "; what a process does to it right now is finished first" if is_at_work else ""
    _print([Changed(worker_id=worker, change="none" if before.is_held else "held", message=words)], as_json=as_json)


def release(
    worker: Annotated[str | None, typer.Argument(metavar="[WORKER]", help="Worker id.", show_default=False)] = None,
    account: Annotated[
        str | None, typer.Option("--account", help="The account whose workers are parked.", show_default=False)
    ] = None,
    why: Why = "",
    as_json: AsJson = False,
) -> None:
    """End a hold, or with --account the parking of all workers that share a login or a limit."""
    if (worker is None) == (account is None):
        msg = "name a worker, or an account with --account"
        raise Misuse(msg)
    if account is not None:
        _release_account(account, why=why, as_json=as_json)
        return
    worker = worker or ""
    with host_here() as host:
        found = host.worker(worker)
        was = host.ledger.record(worker).is_held
        if was:
            host.ledger.remember(worker, held_since=None, held_why="")
            host.event("released", found, who=who(), why=why)
    words = f"{worker} is released" if was else f"{worker} was not held"
    _print([Changed(worker_id=worker, change="released" if was else "none", message=words)], as_json=as_json)


def _release_account(account: str, *, why: str, as_json: bool) -> None:
    from lifecycle.parking import close_breaker

    with host_here() as host:
        was = close_breaker(host, account, why=why or f"released by {who()}")
    words = f"workers of {account} go on" if was else f"no worker is parked by account {account}"
    _print([Changed(worker_id="", change="released" if was else "none", message=words)], as_json=as_json)


def start(worker: WorkerId, why: Why = "", as_json: AsJson = False) -> None:
    """Start an absent worker in a clean session. Exit code 1 where its input line does not come up."""
    from lifecycle.lock import held
    from lifecycle.starting import start_worker

    with host_here(quiet=as_json) as host:
        found = host.worker(worker)
        with held(host.paths(found).lock, worker_id=worker):
            started = start_worker(host, found, who=who(), why=why)
    _print([Changed(worker_id=worker, change="started", message=started)], as_json=as_json)


def adopt(as_json: AsJson = False) -> None:
    """Find agents in tmux and print the lines that manage them. Changes nothing."""
    from lifecycle.adopting import proposals

    with host_here() as host:
        found = proposals(host)
        target = host.settings.path or host.settings.home / "afresh.toml"
    if as_json:
        print_json(found)
        return
    for proposal in found:
        if proposal.managed or not proposal.toml:
            note = proposal.note or "is managed already"
            say(f"# {proposal.worker_id} in tmux session {proposal.session}: {note}")
    fresh = [proposal for proposal in found if proposal.toml]
    if not found:
        say("# no agent runs in tmux")
    if fresh:
        say(f"# add to {target}:")
    for proposal in fresh:
        say("\n".join(filter(None, ("", proposal.note and f"# {proposal.note}", proposal.toml.rstrip("\n")))))


def _set_automatic(workers: list[str] | None, *, every: bool, automatic: bool, why: str, as_json: bool) -> None:
    if bool(workers) == every:
        msg = "name workers, or say --all"
        raise Misuse(msg)
    word = "on" if automatic else "off"
    changed = []
    with host_here() as host:
        # All are looked up before the first is changed: a misspelt name changes nothing.
        chosen = [w for w in host.workers() if w.managed] if every else [host.worker(w) for w in workers or []]
        for worker in chosen:
            before = host.ledger.record(worker.worker_id).automatic
            was = worker.automatic if before is None else before
            if before is not automatic:
                host.ledger.remember(worker.worker_id, automatic=automatic)
                host.event("automatic", worker, on=automatic, who=who(), why=why)
            message = f"automatic renewal of {worker.worker_id} {'was' if was is automatic else 'is'} {word}"
            change = "none" if was is automatic else word
            changed.append(Changed(worker_id=worker.worker_id, change=change, message=message))
    _print(changed, as_json=as_json)


def _print(changed: list[Changed], *, as_json: bool) -> None:
    if as_json:
        print_json(changed)
        return
    for entry in changed:
        say(entry.message)
    if not changed:
        say("no managed workers")
