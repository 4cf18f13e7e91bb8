"""afresh renew and sweep: renewals by hand, in the calling process."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from deployments.commands.options import AsJson, Why, WorkerId, WorkerIds, host_here
from deployments.output import DONE, FAILED, MISUSED, print_json, say, tell
from deployments.server import server_for
from lifecycle.host import Host
from lifecycle.renewal import Renewal
from lifecycle.settings import load_settings
from lifecycle.survey import examine
from lifecycle.value import Value

Result = Literal["renewed", "spared", "blocked", "parked", "requested", "none"]

OUTCOMES: dict[str, Result] = {
    "Renewed": "renewed",
    "Spared": "spared",
    "Blocked": "blocked",
    "Parked": "parked",
    "Requested": "requested",
    "Stored": "requested",
}


class Handled(Value):
    """What was done for one worker. *phases* are seconds from the renewal's opening."""

    worker_id: str
    action: str
    outcome: Result
    reason: str
    renewal_id: str | None = None
    generation: int
    seconds: float | None = None
    phases: dict[str, float] = {}
    handoff_path: Path | None = None


def add_to(app: typer.Typer) -> None:
    app.command("renew")(renew)
    app.command("sweep")(sweep)


def renew(
    worker: WorkerId,
    force: Annotated[bool, typer.Option("--force", help="Also end a busy turn, after a synthesized handoff.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    why: Why = "",
    as_json: AsJson = False,
) -> int:
    """Renew one worker now. Naming it is consent; exit code 1 where the renewal ends blocked."""
    if dry_run:
        return _plan([worker], by_hand=True, as_json=as_json)
    return renew_now(worker, force=force, why=why or "asked by hand", as_json=as_json)


def renew_now(worker_id: str, *, force: bool, why: str, as_json: bool) -> int:
    """Run the renewal flow here and print its outcome; exit code 1 where it ends blocked or refused."""
    settings = load_settings()
    with host_here(quiet=True) as host:
        host.worker(worker_id)
    began = datetime.now().astimezone()
    with server_for(settings) as url:
        from flows.renewal import renew_worker  # noqa: PLC0415 - Prefect, once its server is known

        state = renew_worker(worker_id, force=force, why=why, asked_by="operator", return_state=True)
        run = state.state_details.flow_run_id
        tell(f"run: {url}/runs/flow-run/{run}")
    outcome = OUTCOMES.get(state.name or "")
    if outcome is None:
        tell(f"afresh: {worker_id}: {state.message}")
        return MISUSED if state.name == "Refused" else FAILED
    with host_here(quiet=True) as host:
        handled = described(host, worker_id, "renew", outcome, state.message or "", began)
    _print([handled], single=True, as_json=as_json)
    return FAILED if outcome == "blocked" else DONE


def request_now(worker_id: str, *, as_json: bool) -> int:
    """Run the flow that only asks for a handoff and stores it."""
    settings = load_settings()
    with host_here(quiet=True) as host:
        host.worker(worker_id)
    began = datetime.now().astimezone()
    with server_for(settings):
        from flows.asking import request_handoff_only  # noqa: PLC0415 - Prefect, once its server is known

        state = request_handoff_only(worker_id, return_state=True)
    outcome = OUTCOMES.get(state.name or "")
    if outcome is None:
        tell(f"afresh: {worker_id}: {state.message}")
        return MISUSED if state.name == "Refused" else FAILED
    with host_here(quiet=True) as host:
        handled = described(host, worker_id, "handoff", outcome, state.message or "", began)
    _print([handled], single=True, as_json=as_json)
    return FAILED if outcome == "blocked" else DONE


def sweep(
    workers: WorkerIds = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    as_json: AsJson = False,
) -> int:
    """Look at all workers once and do what their contexts call for. Exit code 1 where a renewal ends blocked."""
    if dry_run:
        return _plan(workers, by_hand=False, as_json=as_json)
    settings = load_settings()
    with host_here(quiet=True) as host:
        for worker_id in workers or ():
            host.worker(worker_id)
    began = datetime.now().astimezone()
    with server_for(settings) as url:
        from flows.sweep import sweep_workers  # noqa: PLC0415 - Prefect, once its server is known

        state = sweep_workers(workers or None, renewals="here", return_state=True)
        tell(f"run: {url}/runs/flow-run/{state.state_details.flow_run_id}")
    if not state.is_completed():
        tell(f"afresh: {state.message}")
        return FAILED
    entries: list[dict[str, Any]] = state.data  # type: ignore[assignment]
    with host_here(quiet=True) as host:
        handled = [
            described(host, entry["worker_id"], entry["action"], entry["outcome"], entry["reason"], began)
            for entry in entries
        ]
    _print(handled, single=False, as_json=as_json)
    return FAILED if any(entry.outcome == "blocked" for entry in handled) else DONE


def described(host: Host, worker_id: str, action: str, outcome: Result, reason: str, since: datetime) -> Handled:
    """The entry of one worker, with the renewal that this call moved, if it moved one."""
    record = host.ledger.record(worker_id)
    newest = next(iter(host.ledger.renewals_of(worker_id, limit=1)), None)
    renewal = newest if newest is not None and newest.updated_at >= since else None
    return Handled(
        worker_id=worker_id,
        action=action,
        outcome=outcome,
        reason=reason,
        renewal_id=renewal.renewal_id if renewal else None,
        generation=record.generation,
        seconds=round((renewal.updated_at - renewal.opened_at).total_seconds(), 3) if renewal else None,
        phases=_seconds(renewal) if renewal else {},
        handoff_path=renewal.saved.archive if renewal and renewal.saved else None,
    )


def _seconds(renewal: Renewal) -> dict[str, float]:
    return {name: round((at - renewal.opened_at).total_seconds(), 3) for name, at in renewal.phase_times.items()}


def _plan(worker_ids: list[str] | None, *, by_hand: bool, as_json: bool) -> int:
    with host_here() as host:
        chosen = [host.worker(worker_id) for worker_id in worker_ids] if worker_ids else host.workers()
        plans = []
        for worker in chosen:
            if not worker.managed:
                continue
            finding = examine(host, worker, by_hand=by_hand)
            plans.append(
                Handled(
                    worker_id=worker.worker_id,
                    action=finding.decision.action.value,
                    outcome="none",
                    reason=finding.decision.reason,
                    generation=finding.record.generation,
                )
            )
    if as_json:
        print_json(plans[0] if by_hand and plans else plans)
    for plan in () if as_json else plans:
        say(f"{plan.worker_id}: {plan.action}: {plan.reason}")
    return DONE


def _print(handled: list[Handled], *, single: bool, as_json: bool) -> None:
    if as_json:
        print_json(handled[0] if single else handled)
        return
    if not handled:
        say("nothing to do")
    for entry in handled:
        took = f" in {entry.seconds:.1f} s" if entry.seconds is not None and entry.outcome == "renewed" else ""
        say(f"{entry.worker_id}: {entry.outcome}{took}: {entry.reason}")
        if entry.handoff_path:
            say(f"  handoff: {entry.handoff_path}")
