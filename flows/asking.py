"""The smaller flows: ask for a handoff and store it, ask for a checkpoint; the worker works on."""

from __future__ import annotations

from typing import Any, Literal

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.hosting import host_of_run
from flows.renewal import ended, renew
from lifecycle.decision import Action
from lifecycle.errors import LifecycleError, Misuse, RenewalInProgress
from lifecycle.lock import held
from lifecycle.steps.watching import ask_for_checkpoint


@flow(name="request-handoff", flow_run_name="request handoff of {worker_id}", persist_result=False)
def request_handoff_only(
    worker_id: str, asked_by: Literal["operator", "sweep"] = "operator", host: str = ""
) -> State[Any]:
    """Steps 1 to 4: the handoff is stored, nothing is stopped, and the worker is told to carry on.

    *host* must be this one, where it is named.
    """
    with host_of_run() as this:
        try:
            this.must_be(host)
            worker = this.worker(worker_id)
            with held(this.paths(worker).lock, worker_id=worker_id):
                by_hand = asked_by == "operator"
                return ended(
                    this,
                    renew(this, worker, forced=False, by_hand=by_hand, why="handoff only", wanted=Action.HANDOFF),
                )
        except Misuse as error:
            return Failed(name="Refused", message=error.detail)
        except RenewalInProgress as error:
            return Completed(name="Spared", message=error.detail)


@flow(name="request-checkpoint", flow_run_name="request checkpoint of {worker_id}", persist_result=False)
def request_checkpoint(worker_id: str, asked_by: Literal["operator", "sweep"] = "operator") -> State[Any]:
    """Ask for a concise checkpoint, once per session; nobody waits for it."""
    with host_of_run() as host:
        try:
            worker = host.worker(worker_id)
            with held(host.paths(worker).lock, worker_id=worker_id):
                asked = ask_for_checkpoint(host, worker, by_hand=asked_by == "operator")
        except Misuse as error:
            return Failed(name="Refused", message=error.detail)
        except LifecycleError as error:
            return Completed(name="Spared", message=error.detail)
    return Completed(name="Requested" if asked.sent else "Spared", message=asked.reason)
