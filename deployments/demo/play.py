"""The demonstration: a real worker fills its context and is renewed by one sweep, before your eyes."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from pathlib import Path

from deployments.commands.status import table
from deployments.demo.scripted_model import ScriptedModel
from deployments.demo.stage import MISSION, WORKER, Stage, set_up
from deployments.output import page_width, tell
from deployments.server import server_for
from lifecycle.delivery import deliver
from lifecycle.errors import LifecycleError
from lifecycle.host import Host
from lifecycle.ledger import Ledger
from lifecycle.processes import ask_to_exit, end, tree_of
from lifecycle.reading import ContextState
from lifecycle.renewal import Renewal
from lifecycle.screen import PaneState
from lifecycle.settings import Settings, load_settings
from lifecycle.starting import start_worker
from lifecycle.status import WorkerStatus, statuses
from lifecycle.value import Value
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker

TURN_WITHIN = timedelta(seconds=60)
MOST_TURNS = 30

STEPS = {
    "renewal.opened": "pressure detected, renewal opened",
    "renewal.requested": "handoff requested, delivery proved",
    "renewal.parsed": "checkpoint and handoff accepted",
    "renewal.saved": "handoff saved and read back",
    "renewal.stopping": "old session is being stopped",
    "renewal.stopped": "old session gone, all its processes with it",
    "renewal.respawned": "clean session ready",
    "renewal.resumed": "resume prompt delivered",
    "renewal.proved": "new session answered",
    "renewal.renewed": "worker marked healthy",
}


class Performance(Value):
    """What the demonstration showed. *went_on* says that the new session made a tool call of its mission."""

    renewed: bool
    went_on: bool
    old_session: str | None
    new_session: str | None
    tokens_before: int | None
    tokens_after: int | None
    ledger_before: tuple[str, ...]
    ledger_after: tuple[str, ...]
    handoff_path: Path | None
    handoff: str
    phases: dict[str, float]
    run_url: str
    seconds: float
    folder: Path | None

    @property
    def succeeded(self) -> bool:
        return self.renewed and self.went_on and self.old_session != self.new_session


def perform(*, keep: bool) -> Performance:
    """Play it all. Everything that was started is ended again, unless *keep*.

    Raises:
        LifecycleError: what could not be shown, and why.
    """
    began = time.monotonic()
    with ScriptedModel() as model, set_up(model, keep=keep) as stage:
        settings = load_settings()
        with Host.opened(settings) as host:
            worker = host.worker(WORKER)
            try:
                return _perform(host, worker, stage, settings, began, keep=keep)
            finally:
                if not keep:
                    _strike(host, worker)


def _strike(host: Host, worker: Worker) -> None:
    """End the worker and its private tmux server. The agent is gone before its folder is removed."""
    pid = host.look(worker).agent_pid
    tree = tuple(process.identity for process in tree_of(pid)) if pid is not None else ()
    ask_to_exit(host.agent(worker).asked_first(tree))
    end(tree, term_after=timedelta(seconds=5), kill_after=timedelta(seconds=2), clock=host.clock)
    host.terminal(worker).end_server()


def _perform(host: Host, worker: Worker, stage: Stage, settings: Settings, began: float, *, keep: bool) -> Performance:
    tell(f"starting a real Hermes Agent as worker {WORKER!r} in tmux ({stage.folder})")
    tell(start_worker(host, worker, who="demo"))
    tell("giving it a mission with rules, and real turns until it is over its handoff limit")
    before = _fill(host, worker)
    _show("before", host, before)
    lines = _lines(stage)
    with server_for(settings) as url:
        sweep_id = _sweep(settings)
        renewal = next(iter(host.ledger.renewals_of(WORKER, limit=1)), None)
        run_id = renewal.flow_run_id if renewal else sweep_id
        after = _await_work(host, worker, stage, lines)
        performance = _performance(host, stage, before, after, renewal, lines, f"{url}/runs/flow-run/{run_id}", began)
    return performance if keep else performance.model_copy(update={"folder": None})


def _fill(host: Host, worker: Worker) -> WorkerStatus:
    _turn(host, worker, MISSION)
    for number in range(MOST_TURNS):
        row = statuses(host, (worker,))[0]
        if row.context_state in (ContextState.HANDOFF_REQUIRED, ContextState.RENEW_REQUIRED):
            return row
        _turn(
            host,
            worker,
            f"Go on with the next entry. Here is the weather report that belongs to it:\n{_weather(number)}",
        )
    msg = f"{MOST_TURNS} turns did not fill the context"
    raise LifecycleError(msg, worker_id=worker.worker_id)


def _weather(number: int) -> str:
    return "\n".join(
        f"station {station}: day {number}, {(station * 7 + number) % 30} degrees, wind {(station * 3) % 9}, no frost"
        for station in range(60)
    )


def _turn(host: Host, worker: Worker, text: str) -> None:
    agent = host.agent(worker)
    row = deliver(host, worker, text, kind="mission")
    try:
        wait_until(lambda: agent.find_reply(worker, row, text), TURN_WITHIN, host.clock)
        wait_until(lambda: host.look(worker).state is PaneState.READY, TURN_WITHIN, host.clock)
    except DeadlinePassed as error:
        msg = f"{worker.worker_id} did not answer a turn of its mission"
        raise LifecycleError(msg, worker_id=worker.worker_id, evidence=host.look(worker).evidence()) from error


def _sweep(settings: Settings) -> str:
    """Run one sweep while another thread tells each step as it is done."""
    from flows.sweep import sweep_workers  # noqa: PLC0415 - Prefect, once its server is known

    tell("\none sweep:")
    done = threading.Event()
    teller = threading.Thread(target=_tell_steps, args=(settings.ledger_path, done))
    teller.start()
    try:
        state = sweep_workers(renewals="here", return_state=True)
    finally:
        done.set()
        teller.join()
    return str(state.state_details.flow_run_id)


def _tell_steps(path: Path, done: threading.Event) -> None:
    with Ledger(path) as ledger:
        seen, opened, over = 0, None, False
        while not over:
            over = done.wait(0.2)
            for event in ledger.events(WORKER, after=seen):
                seen = event.event_id
                if event.kind == "renewal.opened":
                    opened = event.at
                if event.kind in STEPS and opened is not None:
                    tell(f"  {(event.at - opened).total_seconds():6.1f} s  {STEPS[event.kind]}")
                if event.kind == "renewal.blocked":
                    tell(f"  blocked: {event.detail.get('reason')}: {event.detail.get('detail')}")


def _await_work(host: Host, worker: Worker, stage: Stage, lines: tuple[str, ...]) -> WorkerStatus:
    """Wait for the mission's next entry, which only a tool call of the new session can write."""
    try:
        wait_until(lambda: len(_lines(stage)) > len(lines), TURN_WITHIN, host.clock)
        wait_until(lambda: host.look(worker).state is PaneState.READY, TURN_WITHIN, host.clock)
    except DeadlinePassed:
        tell(f"{worker.worker_id} did not go on with its mission")
    return statuses(host, (worker,))[0]


def _show(title: str, host: Host, row: WorkerStatus) -> None:
    tell(f"\n{title}:")
    for line in table([row], host.now(), page_width()):
        tell(f"  {line}")


def _lines(stage: Stage) -> tuple[str, ...]:
    return tuple(stage.ledger_file.read_text().splitlines()) if stage.ledger_file.exists() else ()


def _performance(
    host: Host,
    stage: Stage,
    before: WorkerStatus,
    after: WorkerStatus,
    renewal: Renewal | None,
    lines: tuple[str, ...],
    run_url: str,
    began: float,
) -> Performance:
    saved = renewal.saved if renewal else None
    text = saved.archive.read_text() if saved else ""
    proof = renewal.acknowledgement if renewal else None
    now_lines = _lines(stage)
    tell("\nthe stored handoff:")
    for line in text.splitlines():
        tell(f"  | {line}")
    tell("\nthe worker's first act in its new session:")
    for line in now_lines[len(lines) :]:
        tell(f"  wrote {line!r} to ledger.txt")
    _show("after", host, after)
    tell(f"\nthe run in the Prefect UI: {run_url}")
    opened = renewal.opened_at if renewal else None
    phases = {
        name: round((at - opened).total_seconds(), 2)
        for name, at in (renewal.phase_times if renewal else {}).items()
        if opened is not None
    }
    return Performance(
        renewed=renewal is not None and renewal.end is not None and renewal.end.value == "renewed",
        went_on=len(now_lines) > len(lines),
        old_session=before.session_id,
        new_session=proof.session_id if proof else None,
        tokens_before=before.tokens,
        tokens_after=after.tokens,
        ledger_before=lines,
        ledger_after=now_lines,
        handoff_path=saved.archive if saved else None,
        handoff=text,
        phases=phases,
        run_url=run_url,
        seconds=round(time.monotonic() - began, 1),
        folder=stage.folder,
    )
