"""The acts of the API: each is checked here, then done at once, or begun as a flow run where it takes long."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic.alias_generators import to_camel

from deployments.http.fleet import Snapshot
from deployments.http.orders import Flow, Ordered, order
from deployments.http.refusing import Refused
from deployments.http.shapes import acknowledged, sweep_of
from lifecycle import allowing
from lifecycle.answering import fitting
from lifecycle.choice import Choice
from lifecycle.errors import Misuse, RenewalInProgress
from lifecycle.host import Host
from lifecycle.lock import held, is_held
from lifecycle.redaction import redact
from lifecycle.resetting import reset
from lifecycle.settings import load_settings
from lifecycle.swarm import note_handoff_written
from lifecycle.value import Value
from lifecycle.worker import Worker, checked_worker_id

log = logging.getLogger(__name__)

Action = Literal[
    "auto-sweep",
    "request-handoff",
    "renew",
    "notify-handoff-written",
    "answer",
    "hold",
    "release",
    "enable",
    "disable",
    "reset",
]


ACT = ("worker_id", "worker_ids", "answer", "force")
"""The parameters of a run that make an act what it is; the others are for the record, or say when it was ordered."""


class Order(Value, alias_generator=to_camel):
    """The body of a POST. *actor* and *why* are for the record.

    An unknown key is refused: a misspelt `workerId` must not become an act on the whole fleet.
    """

    action: Action
    worker_id: str | None = None
    force: bool = False
    choice: Choice | None = None
    text: str | None = Field(None, max_length=200_000)
    actor: str = Field("", max_length=80)
    why: str = Field("", max_length=500)
    response_mode: Literal["scheduler_ack"] | None = None

    @property
    def who(self) -> str:
        return f"{self.actor} over HTTP" if self.actor else "HTTP"


class Result(Value):
    """What became of an order: *begun* says that a flow run does the rest. *body* is the answer's own part."""

    begun: bool = False
    body: dict[str, Any] = {}


def order_of(body: bytes) -> Order:
    """Read a body.

    Raises:
        Misuse: it is no JSON, or no order; the message names the key.
        InvalidWorkerId
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        where = f": {error.msg} at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
        msg = f"Invalid JSON body{where}"
        raise Misuse(msg) from error
    if not isinstance(found, dict):
        msg = "Invalid JSON body: not an object"
        raise Misuse(msg)
    try:
        asked = Order.model_validate(found)
    except ValidationError as error:
        raise Misuse(_complaint(error)) from error
    if asked.worker_id is not None:
        checked_worker_id(asked.worker_id)
    elif asked.action != "auto-sweep":
        msg = "workerId required"
        raise Misuse(msg)
    if (asked.choice is not None) != (asked.action == "answer"):
        msg = "answer takes a choice, and no other action does"
        raise Misuse(msg)
    if (asked.text is not None) != (asked.choice is Choice.USE_TEXT):
        msg = "use-text takes a text, and no other answer does"
        raise Misuse(msg)
    return asked


def perform(asked: Order, snapshot: Snapshot | None, *, key: str | None) -> Result:
    """Do it, or begin it. Runs in a thread that may wait. Only a sweep is told with a *snapshot*.

    Raises:
        UnknownWorker, Misuse, RenewalInProgress, Refused: nothing was done, and nothing will be.
        ServerError: it takes a Prefect server, and none answers.
    """
    with Host.opened(load_settings()) as host:
        if asked.action == "auto-sweep":
            return _sweep(host, asked, snapshot, key)
        worker = host.worker(asked.worker_id or "")
        match asked.action:
            case "renew":
                return _renew(host, worker, asked, key)
            case "request-handoff":
                return _request(host, worker, key)
            case "answer":
                return _answer(host, worker, asked, key)
            case "notify-handoff-written":
                return _noted(host, worker, asked)
        return Result(body=_changed(host, worker, asked).model_dump(include={"change", "message"}))


def _changed(host: Host, worker: Worker, asked: Order) -> allowing.Changed:
    who, why = asked.who, asked.why
    match asked.action:
        case "hold":
            return allowing.hold(host, worker, who=who, why=why)
        case "release":
            return allowing.release(host, worker, who=who, why=why)
        case "reset":
            with _as_refusal():
                return reset(host, worker, who=who, why=why)
    return allowing.set_automatic(host, [worker], on=asked.action == "enable", who=who, why=why)[0]


def _sweep(host: Host, asked: Order, snapshot: Snapshot | None, key: str | None) -> Result:
    if asked.worker_id is not None:
        host.worker(asked.worker_id)
    chosen = [asked.worker_id] if asked.worker_id is not None else None
    begun = _begun(host, "sweep", {"worker_ids": chosen}, key)
    entries = sweep_of(snapshot, asked.worker_id) if snapshot is not None else []
    shown = acknowledged(entries) if asked.response_mode == "scheduler_ack" else {"sweep": entries}
    return Result(begun=True, body={**shown, **begun})


def _renew(host: Host, worker: Worker, asked: Order, key: str | None) -> Result:
    record = host.ledger.record(worker.worker_id)
    if record.open_renewal is not None and record.open_renewal.block is not None:
        msg = f"{worker.worker_id} is blocked ({record.open_renewal.block.reason}): answer its block"
        raise Refused(msg, worker_id=worker.worker_id)
    _refuse_held_and_busy(host, worker)
    parameters = {
        "worker_id": worker.worker_id,
        "force": asked.force,
        "why": asked.why or f"ordered by {asked.who}",
        "asked_at": host.now().isoformat(),
    }
    begun = _begun(host, "renew", parameters, key)
    return Result(begun=True, body={"restarted": False, "resumeSent": False, **_path(host, worker), **begun})


def _request(host: Host, worker: Worker, key: str | None) -> Result:
    _refuse_held_and_busy(host, worker)
    begun = _begun(host, "request-handoff", {"worker_id": worker.worker_id}, key)
    return Result(begun=True, body={**_path(host, worker), **begun})


def _answer(host: Host, worker: Worker, asked: Order, key: str | None) -> Result:
    choice = asked.choice
    assert choice is not None, "order_of sees to it"  # noqa: S101
    with _as_refusal():
        fitting(host, worker, choice, text=asked.text)
    _refuse_busy(host, worker)
    parameters = {
        "worker_id": worker.worker_id,
        "answer": choice.value,
        "why": asked.why,
        "text": redact(asked.text or ""),  # Prefect shows the parameters of a run
        "who": asked.who,
    }
    return Result(begun=True, body={"choice": choice.value, **_begun(host, "answer", parameters, key)})


def _noted(host: Host, worker: Worker, asked: Order) -> Result:
    """Someone says that the handoff is written: the memory notes it where a file bears it out (W-32)."""
    path = host.paths(worker).shared_latest
    if not path.is_file():
        msg = f"{worker.worker_id}: {path} does not exist; nothing was noted"
        raise Refused(msg, worker_id=worker.worker_id)
    with held(host.paths(worker).lock, worker_id=worker.worker_id):
        note_handoff_written(host, worker, who=asked.who)
    return Result(body=_path(host, worker))


@contextmanager
def _as_refusal() -> Iterator[None]:
    """The request was understood; it is the worker's state that does not allow it."""
    try:
        yield
    except Misuse as error:
        raise Refused(error.detail, worker_id=error.worker_id) from error


def _refuse_held_and_busy(host: Host, worker: Worker) -> None:
    record = host.ledger.record(worker.worker_id)
    if record.is_held:
        msg = f"{worker.worker_id} is held ({record.held_why}): release it first"
        raise Refused(msg, worker_id=worker.worker_id)
    _refuse_busy(host, worker)


def _refuse_busy(host: Host, worker: Worker) -> None:
    if is_held(host.paths(worker).lock):
        msg = f"{worker.worker_id}: another process is at work on it"
        raise RenewalInProgress(msg, worker_id=worker.worker_id)


def _begun(host: Host, flow: Flow, parameters: dict[str, Any], key: str | None) -> dict[str, Any]:
    ordered: Ordered = order(host.settings, flow, parameters, key=run_key(flow, parameters, key) if key else None)
    log.info("%s: run %s", flow, ordered.flow_run_id)
    return {"flowRunId": ordered.flow_run_id, "flowRunUrl": ordered.flow_run_url}


def run_key(flow: Flow, parameters: dict[str, Any], key: str) -> str:
    """Under the same *key* an act on another worker, or with another answer, is another act with a run of its own."""
    act = {name: value for name, value in parameters.items() if name in ACT}
    return f"http:{flow}:{json.dumps(act, sort_keys=True)}:{key}"


def _path(host: Host, worker: Worker) -> dict[str, Any]:
    return {"handoffPath": str(host.paths(worker).shared_latest)}


def _complaint(error: ValidationError) -> str:
    """One line that names the key; the reference system's words where it has any."""
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if key == "action":
        return "Unsupported action"
    if first["type"] == "extra_forbidden":
        return f"unknown key {key[:80]!r}; known are {', '.join(to_camel(name) for name in Order.model_fields)}"
    return f"{key}: {first['msg'].removeprefix('Value error, ')}"
