"""A process of its own that runs one renewal or one sweep, as an operator's or a schedule's would, with a fault in it.

It is forked from a server that has Prefect imported already: a start costs a tenth of a second instead of two.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

from lifecycle.waiting import SystemClock, wait_until
from tests.faults.strike import Strike
from tests.privileges import be_stopped_by_modes

_PRELOADED = ["tests.faults.flow_process", "flows.renewal", "flows.sweep", "tests.faults.weaving"]
_KEPT = ("PREFECT_", "DO_NOT_TRACK")
ENDED_WITHIN = timedelta(seconds=150)


@dataclass(frozen=True, kw_only=True)
class Order:
    """What the process runs. *gate*: it waits for this file at the last moment before it looks at a worker.

    *bound*: permissions stop it, also where it runs as root. *boot* is what the host's boot is called.
    """

    what: Literal["renew", "sweep"]
    environment: dict[str, str]
    log: Path
    worker_id: str = "swarm1"
    by_hand: bool = False
    force: bool = False
    strike: Strike | None = None
    gate: Path | None = None
    api: str | None = None
    bound: bool = False
    boot: str | None = None


def started(order: Order) -> BaseProcess:
    """Start it. An order for a server of its own gets a process that reads its settings anew."""
    if order.api is not None:
        before = os.environ.get("PREFECT_API_URL")
        os.environ["PREFECT_API_URL"] = order.api
        try:
            return _begun(multiprocessing.get_context("spawn").Process(target=run, args=(order,)))
        finally:
            if before is not None:
                os.environ["PREFECT_API_URL"] = before
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return _begun(context.Process(target=run, args=(order,)))


def _begun(process: Any) -> BaseProcess:
    process.start()
    return process  # type: ignore[no-any-return]


@contextmanager
def running(order: Order) -> Iterator[BaseProcess]:
    """The process, killed at the end of the block if it still runs."""
    process = started(order)
    try:
        yield process
    finally:
        if process.is_alive():
            process.kill()
        process.join()


def finished(order: Order, within: timedelta = ENDED_WITHIN) -> int | None:
    """Run the order to its end and return the exit status; None if it had to be killed."""
    with running(order) as process:
        process.join(within.total_seconds())
        return process.exitcode


def run(order: Order) -> None:
    """In the new process: take the environment of the ground, weave the fault in, run the flow."""
    with order.log.open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
    os.environ.clear()
    os.environ.update({**kept, **order.environment})
    from tests.faults.weaving import Loom  # noqa: PLC0415 - Prefect reads its settings when it is imported

    if order.bound:
        be_stopped_by_modes()
    if order.strike is not None:
        Loom(order.strike).weave()
    sys.exit(0 if _flow(order) else 1)


def _flow(order: Order) -> bool:
    from flows import renewal, sweep  # noqa: PLC0415
    from lifecycle import host  # noqa: PLC0415

    if order.boot is not None:
        setattr(host, "boot_id", lambda: order.boot)  # noqa: B010 - a patch, not an assignment
    if order.gate is not None:
        _wait_at(order.gate, renewal, "held")
        _wait_at(order.gate, sweep, "survey_workers")
    if order.what == "sweep":
        state = sweep.sweep_workers(renewals="here", return_state=True)
    else:
        state = renewal.renew_worker(
            order.worker_id, force=order.force, asked_by="operator" if order.by_hand else "sweep", return_state=True
        )
    print(f"{order.what}: {state.name}: {state.message}", flush=True)
    return bool(state.is_completed())


def _wait_at(gate: Path, module: Any, name: str) -> None:
    """Let this process wait at *name* until the gate is open; it says that it has come."""
    call = getattr(module, name)

    def run(*arguments: Any, **named: Any) -> Any:
        (gate.parent / f"come-{os.getpid()}").touch()
        wait_until(gate.exists, timedelta(seconds=120), SystemClock(), timedelta(seconds=0.01))
        return call(*arguments, **named)

    setattr(module, name, run)
