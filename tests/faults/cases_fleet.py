"""Several controllers at once, and a Prefect server that is not there."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from datetime import timedelta

from deployments.server import started
from lifecycle.settings import Settings
from lifecycle.waiting import SystemClock, wait_until
from tests.faults import observer
from tests.faults.case import Case
from tests.faults.flow_process import Order, running
from tests.faults.play import FULL, Play
from tests.ports import free_port

_PATIENT = {
    "delivery": 30,
    "handoff_answer": 60,
    "idle_before_stop": 30,
    "exit": 15,
    "term": 5,
    "ready": 60,
    "resume_answer": 60,
}
"""Fifteen processes share two cores."""


def _at_once(play: Play, orders: list[Order], within: float = 240) -> None:
    """Start all, let them come to the last moment before they act, and let go of them together."""
    gate = orders[0].gate
    assert gate is not None
    gate.parent.mkdir()
    with ExitStack() as stack:
        processes = [stack.enter_context(running(order)) for order in orders]
        wait_until(lambda: len(list(gate.parent.iterdir())) == len(orders), timedelta(seconds=100), SystemClock())
        gate.touch()
        for process in processes:
            process.join(within)
    play.demand(all(process.exitcode is not None for process in processes), "a process had to be killed")


def _two_renews(play: Play) -> None:
    gate = play.root / "gate" / "open"
    _at_once(play, [play.order("renew", by_hand=True, gate=gate) for _ in range(2)])
    play.recover()


def _fleet(play: Play) -> None:
    """Ten sweeps and five renewals by hand, at once, on five workers."""
    play.more = [play.stage.another(f"swarm{number}") for number in range(2, 6)]
    for stage in play.more:
        play.watch.add(stage)
        stage.start()
    for stage in play.more:
        stage.wait_ready()
        stage.fill(FULL)
    play.configure({"max_parallel_renewals": 5, "deadlines": _PATIENT})
    gate, workers = play.root / "gate" / "open", [play.stage, *play.more]
    sweeps = [play.order("sweep", gate=gate) for _ in range(10)]
    renews = [play.order("renew", worker_id=stage.worker_id, by_hand=True, gate=gate) for stage in workers]
    _at_once(play, [*sweeps, *renews])
    play.sweep()
    for stage in workers:
        done = observer.renewed(observer.renewals_of(play.home / "ledger.db", stage.worker_id))
        play.demand(len(done) == 1, f"{stage.worker_id}: {len(done)} renewals")
        play.demand(len(play.watch.living(stage)) == 1, f"{stage.worker_id}: not one agent")
        play.demand(not observer.our_texts_twice(stage.rows()), f"{stage.worker_id}: a text was delivered twice")


def _server_away(play: Play) -> None:
    """The Prefect server is killed in the middle of a renewal and comes back twenty seconds later."""
    home = play.root / "server"
    settings = Settings(home=home, hermes_root=home, memory_root=home)
    port = free_port("127.0.0.1")
    with started(settings, port=port, password=None) as server:
        play.api = server.api
        with running(play.order("renew")) as process:
            wait_until(
                lambda: play.renewal is not None and play.renewal.request is not None,
                timedelta(seconds=60),
                SystemClock(),
            )
            assert server.process is not None
            os.killpg(server.process.pid, signal.SIGKILL)
            process.join(20)
            with started(settings, port=port, password=None):
                process.join(90)
    play.api = None
    play.recover()


CASES = [
    *(
        Case(
            id=f"fleet-{number}",
            fault="10 sweeps and 5 renewals by hand at once on 5 workers",
            phase="detect",
            source="W-29",
            play=_fleet,
        )
        for number in (1, 2, 3)
    ),
    Case(
        id="two-renews", fault="two renewals by hand at once", phase="detect", source="X6", play=_two_renews, third=True
    ),
    Case(
        id="server-away",
        fault="the Prefect server is killed for 20 s",
        phase="parse",
        source="issue",
        manners={"handoff_seconds": 2},
        config={"deadlines": {"handoff_answer": 60}},
        play=_server_away,
    ),
]
