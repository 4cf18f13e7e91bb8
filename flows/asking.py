"""The smaller flows: ask for a handoff and store it, ask for a checkpoint; the worker works on."""

from __future__ import annotations

from typing import Any, Literal

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from lifecycle.decision import Action
from lifecycle.ending import block, close
from lifecycle.errors import LifecycleError, Misuse, NotNow, ParksHere, RenewalInProgress
from lifecycle.host import Host
from lifecycle.lock import held
from lifecycle.parking import park
from lifecycle.renewal import End, Spared
from lifecycle.settings import load_settings
from lifecycle.steps.watching import ask_for_checkpoint
from lifecycle.worker import Worker
from tasks.handoff import detect_context_pressure, parse_checkpoint, persist_handoff, request_handoff


@flow(name="request-handoff", flow_run_name="request handoff of {worker_id}", persist_result=False)
def request_handoff_only(worker_id: str, asked_by: Literal["operator", "sweep"] = "operator") -> State[Any]:
    """Steps 1 to 4: the handoff is stored, nothing is stopped, and the worker is told to carry on."""
    with Host.opened(load_settings()) as host:
        try:
            worker = host.worker(worker_id)
            with held(host.paths(worker).lock, worker_id=worker_id):
                return _store(host, worker, by_hand=asked_by == "operator")
        except Misuse as error:
            return Failed(name="Refused", message=error.detail)
        except RenewalInProgress as error:
            return Completed(name="Spared", message=error.detail)


def _store(host: Host, worker: Worker, *, by_hand: bool) -> State[Any]:
    try:
        opened = detect_context_pressure(
            host, worker, forced=False, by_hand=by_hand, why="handoff only", flow_run_id="", wanted=Action.HANDOFF
        )
        if isinstance(opened, Spared):
            return Completed(name="Spared", message=opened.reason)
        saved = persist_handoff(host, worker, parse_checkpoint(host, worker, request_handoff(host, worker, opened)))
    except (Misuse, RenewalInProgress):
        raise
    except LifecycleError as error:
        renewal = host.ledger.record(worker.worker_id).open_renewal
        if renewal is None:
            raise
        if isinstance(error, ParksHere):
            # What is only stored is asked for anew by a later sweep; an open renewal would become a whole one.
            parked = park(host, worker, None, error)
            close(host, worker, renewal, End.SPARED, error.detail)
            return Completed(name="Parked", message=parked.why)
        if isinstance(error, NotNow):
            close(host, worker, renewal, End.SPARED, error.detail)
            return Completed(name="Spared", message=error.detail)
        placed = block(host, worker, renewal, error)
        return Failed(name="Blocked", message=f"{placed.block.reason}: {placed.block.detail}")
    close(host, worker, host.ledger.renewal(opened.renewal_id), End.SPARED, "handoff only")
    return Completed(name="Stored", message=str(saved.archive))


@flow(name="request-checkpoint", flow_run_name="request checkpoint of {worker_id}", persist_result=False)
def request_checkpoint(worker_id: str, asked_by: Literal["operator", "sweep"] = "operator") -> State[Any]:
    """Ask for a concise checkpoint, once per session; nobody waits for it."""
    with Host.opened(load_settings()) as host:
        try:
            worker = host.worker(worker_id)
            with held(host.paths(worker).lock, worker_id=worker_id):
                asked = ask_for_checkpoint(host, worker, by_hand=asked_by == "operator")
        except Misuse as error:
            return Failed(name="Refused", message=error.detail)
        except LifecycleError as error:
            return Completed(name="Spared", message=error.detail)
    return Completed(name="Requested" if asked.sent else "Spared", message=asked.reason)
