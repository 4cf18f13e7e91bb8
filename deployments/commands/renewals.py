"""afresh renew and sweep: renewals by hand, in the calling process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deployments.commands.options import AsJson, DryRun, Why, WorkerId, WorkerIds, host_here
from deployments.commands.previewing import preview_lines
from deployments.output import DONE, FAILED, MISUSED, aligned, page_width, print_json, say, tell
from deployments.progress import progress_shown
from lifecycle.errors import LedgerError
from lifecycle.value import Value

if TYPE_CHECKING:
    from prefect.client.schemas.objects import State

    from lifecycle.host import Host
    from lifecycle.renewal import Renewal

Result = Literal["renewed", "spared", "blocked", "parked", "requested", "none", "failed"]

OUTCOMES: dict[str, Result] = {
    "Renewed": "renewed",
    "Spared": "spared",
    "Blocked": "blocked",
    "Parked": "parked",
    "Requested": "requested",
    "Stored": "requested",
}


class Handled(Value):
    """What was done for one worker. *seconds* and *phases* count from the renewal's opening.

    *resumed* says whether the new session took up what its handoff left off. *preview* is there in a dry run of one
    worker alone: what would cross.
    """

    worker_id: str
    action: str
    outcome: Result
    reason: str
    renewal_id: str | None = None
    generation: int
    seconds: float | None = None
    phases: dict[str, float] = {}
    handoff_path: Path | None = None
    resumed: Literal["proved", "weak"] | None = None
    preview: dict[str, Any] | None = None


def add_to(app: typer.Typer) -> None:
    app.command("renew")(renew)
    app.command("sweep")(sweep)


def renew(
    worker: WorkerId,
    force: Annotated[bool, typer.Option("--force", help="Also end a busy turn, after a synthesized handoff.")] = False,
    dry_run: DryRun = False,
    why: Why = "",
    as_json: AsJson = False,
) -> int:
    """Renew one worker now, in this process. Naming it is consent; exit code 1 where the renewal ends blocked."""
    if dry_run:
        return _show_plans([worker], by_hand=True, forced=force, as_json=as_json)
    return renew_now(worker, force=force, why=why or "asked by hand", as_json=as_json)


def renew_now(worker_id: str, *, force: bool, why: str, as_json: bool) -> int:
    """Run the renewal flow here and print its outcome; exit code 1 where it ends blocked or fails."""
    asked_at = datetime.now().astimezone()

    def flow() -> State[Any]:
        from flows.renewal import renew_worker

        return renew_worker(worker_id, force=force, why=why, asked_by="operator", asked_at=asked_at, return_state=True)

    return _run_for_one(worker_id, "renew", flow, as_json=as_json)


def request_now(worker_id: str, *, as_json: bool) -> int:
    """Run the flow that only asks for a handoff and stores it; exit code 1 where none was stored."""

    def flow() -> State[Any]:
        from flows.asking import request_handoff_only

        return request_handoff_only(worker_id, return_state=True)

    return _run_for_one(worker_id, "handoff", flow, as_json=as_json)


def sweep(workers: WorkerIds = None, dry_run: DryRun = False, as_json: AsJson = False) -> int:
    """Look at every worker once and do what its context calls for. Exit code 1 where one ends blocked or fails."""
    if dry_run:
        return _show_plans(workers, by_hand=False, forced=False, as_json=as_json)
    with host_here(quiet=True) as host:
        chosen = [host.worker(worker_id) for worker_id in workers or ()] or host.workers()
    began = datetime.now().astimezone()
    with prefect_here() as url:
        from flows.sweep import sweep_workers

        state = sweep_workers(workers or None, renewals="here", return_state=True)
    tell_run(url, state)
    if not state.is_completed():
        tell(f"afresh: the sweep ended as {state.name}: {state.message}")
        return FAILED
    entries: list[dict[str, Any]] = state.result()  # type: ignore[assignment]
    acted = {entry["worker_id"]: entry for entry in entries}
    with host_here(quiet=True) as host:
        handled = [_swept(host, acted[worker.worker_id], began) for worker in chosen if worker.worker_id in acted]
    print_handled(handled, single=False, as_json=as_json)
    return FAILED if any(entry.outcome in ("blocked", "failed") for entry in handled) else DONE


def _swept(host: Host, entry: dict[str, Any], since: datetime) -> Handled:
    """What the sweep did for one worker, or why it did nothing."""
    return handling_of(host, entry["worker_id"], entry["action"], entry["outcome"], entry["reason"], since)


def _run_for_one(worker_id: str, action: str, flow: Callable[[], State[Any]], *, as_json: bool) -> int:
    with host_here(quiet=True) as host:
        host.worker(worker_id)
    began = datetime.now().astimezone()
    with prefect_here() as url:
        state = flow()
    tell_run(url, state)
    outcome = OUTCOMES.get(state.name or "")
    if outcome is None:
        tell(f"afresh: {worker_id}: {state.message}")
        return MISUSED if state.name == "Refused" else FAILED
    with host_here(quiet=True) as host:
        handled = handling_of(host, worker_id, action, outcome, state.message or "", began)
    print_handled([handled], single=True, as_json=as_json)
    failed = outcome == "blocked" or (action == "handoff" and outcome != "requested")
    return FAILED if failed else DONE


@contextmanager
def prefect_here() -> Iterator[str]:
    """Prefect's server, whose address must be known before Prefect is imported.

    Raises:
        ServerError: nobody answers at the address that is configured.
    """
    from deployments.server import ServerError, server_for
    from lifecycle.settings import load_settings

    with server_for(load_settings()) as url:
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            failure = client.api_healthcheck()
        if failure is not None:
            msg = f"no Prefect server answers at {url} ({failure}); without PREFECT_API_URL this command runs its own"
            raise ServerError(msg)
        with progress_shown():
            yield url


def tell_run(url: str, state: State[Any]) -> None:
    """Where the run can be seen: at *url* if that server still runs, else once this home is served again."""
    from deployments.server import Running

    run_id = state.state_details.flow_run_id
    if Running(url=url).is_healthy():
        tell(f"run: {url}/runs/flow-run/{run_id}")
    else:
        tell(f"run: {run_id}; its server has ended, `afresh serve` shows it")


def handling_of(host: Host, worker_id: str, action: str, outcome: Result, reason: str, since: datetime) -> Handled:
    """The entry of one worker, with the renewal that this call moved, if it moved one."""
    try:
        generation = host.ledger.record(worker_id).generation
        newest = next(iter(host.ledger.renewals_of(worker_id, limit=1)), None)
    except LedgerError:  # the outcome is `failed`, and its reason says this
        generation, newest = 0, None
    renewal = newest if newest is not None and newest.updated_at >= since else None
    return Handled(
        worker_id=worker_id,
        action=action,
        outcome=outcome,
        reason=reason.removeprefix(f"{worker_id}: "),
        renewal_id=renewal.renewal_id if renewal else None,
        generation=generation,
        seconds=round((renewal.updated_at - renewal.opened_at).total_seconds(), 3) if renewal else None,
        phases=_seconds(renewal) if renewal else {},
        handoff_path=renewal.saved.archive if renewal and renewal.saved else None,
        resumed=_resumed(renewal),
    )


def _resumed(renewal: Renewal | None) -> Literal["proved", "weak"] | None:
    proof = renewal.acknowledgement if renewal else None
    return proof.fit.verdict if proof is not None and proof.fit is not None else None


def _seconds(renewal: Renewal) -> dict[str, float]:
    return {name: round((at - renewal.opened_at).total_seconds(), 3) for name, at in renewal.phase_times.items()}


def _show_plans(worker_ids: list[str] | None, *, by_hand: bool, forced: bool, as_json: bool) -> int:
    from lifecycle.planning import plan, plans
    from lifecycle.preview import Preview, preview

    previews: dict[str, Preview] = {}
    with host_here(quiet=True) as host:
        chosen = [host.worker(worker_id) for worker_id in worker_ids] if worker_ids else host.workers()
        managed = [worker for worker in chosen if worker.managed]
        if by_hand:
            found = [plan(host, worker, by_hand=True, forced=forced) for worker in managed]
            previews = {worker.worker_id: preview(host, worker) for worker in managed}
        else:
            found = plans(host, managed)
    entries = [
        Handled(
            worker_id=one.worker_id,
            action=one.action.value,
            outcome="failed" if one.error else "none",
            reason=one.words,
            generation=one.generation,
            preview=previews[one.worker_id].model_dump(mode="json") if one.worker_id in previews else None,
        )
        for one in found
    ]
    code = FAILED if any(one.error for one in found) else DONE
    if as_json:
        print_json(entries[0] if by_hand else entries)
        return code
    rows = [(one.worker_id, "nothing" if one.action == "none" else one.action, one.reason) for one in entries]
    for line in aligned(rows, page_width()):
        say(line)
    for shown in previews.values():
        for line in preview_lines(shown):
            say(line)
    if not entries:
        say("no managed workers")
    return code


def print_handled(handled: list[Handled], *, single: bool, as_json: bool) -> None:
    if as_json:
        print_json(handled[0] if single else handled)
        return
    if not handled:
        say("no managed workers")
    for entry in handled:
        took = f" in {entry.seconds:.1f} s" if entry.seconds is not None and entry.outcome == "renewed" else ""
        result = "nothing to do" if entry.outcome == "none" else f"{entry.outcome}{took}"
        say(": ".join(filter(None, (entry.worker_id, result, entry.reason))))
        if entry.outcome == "blocked":
            say("  `afresh blocked` shows the evidence and the answers")
        if entry.handoff_path:
            say(f"  handoff: {entry.handoff_path}")
