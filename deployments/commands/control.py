"""afresh enable, disable, hold, release, start, adopt: what the operator allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployments.commands.options import AsJson, Why, WorkerId, host_here, who
from deployments.output import print_json, say
from lifecycle.errors import Misuse

if TYPE_CHECKING:
    from lifecycle.allowing import Changed

NamedWorkers = Annotated[
    list[str] | None, typer.Argument(metavar="[WORKER]...", help="Worker ids.", show_default=False)
]
All = Annotated[bool, typer.Option("--all", help="Every managed worker.")]


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
    from lifecycle import allowing

    with host_here() as host:
        changed = allowing.hold(host, host.worker(worker), who=who(), why=why)
    _print([changed], as_json=as_json)


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
    from lifecycle import allowing

    with host_here() as host:
        changed = allowing.release(host, host.worker(worker or ""), who=who(), why=why)
    _print([changed], as_json=as_json)


def _release_account(account: str, *, why: str, as_json: bool) -> None:
    from lifecycle.allowing import Changed
    from lifecycle.parking import close_breaker

    with host_here() as host:
        was = close_breaker(host, account, why=why or f"released by {who()}")
    words = f"workers of {account} go on" if was else f"no worker is parked by account {account}"
    _print([Changed(worker_id="", change="released" if was else "none", message=words)], as_json=as_json)


def start(worker: WorkerId, why: Why = "", as_json: AsJson = False) -> None:
    """Start an absent worker in a clean session. Exit code 1 where its input line does not come up."""
    from lifecycle.allowing import Changed
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
    from lifecycle import allowing

    with host_here() as host:
        # All are looked up before the first is changed: a misspelt name changes nothing.
        chosen = [w for w in host.workers() if w.managed] if every else [host.worker(w) for w in workers or []]
        changed = allowing.set_automatic(host, chosen, on=automatic, who=who(), why=why)
    _print(changed, as_json=as_json)


def _print(changed: list[Changed], *, as_json: bool) -> None:
    if as_json:
        print_json(changed)
        return
    for entry in changed:
        say(entry.message)
    if not changed:
        say("no managed workers")
