"""The host on which workers live: everything a step needs to see and to act, opened once and passed on."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from datetime import datetime, timedelta

from pydantic import JsonValue

from lifecycle.agents import Agent
from lifecycle.agents.kinds import agent_of_kind
from lifecycle.breaker import Breaker
from lifecycle.calm import Calm
from lifecycle.errors import ConfigurationError, OtherHost
from lifecycle.ledger import Ledger, StoredHandoff
from lifecycle.mission import Mission, current_mission
from lifecycle.paths import WorkerPaths, paths_of
from lifecycle.processes import Process, boot_id, written_by
from lifecycle.reading import ContextReading
from lifecycle.roster import find_worker, load_workers
from lifecycle.screen import PaneLook, PaneState
from lifecycle.settings import Settings
from lifecycle.shield import bringing_back_first
from lifecycle.terminal import Terminal
from lifecycle.transcript import TurnState
from lifecycle.waiting import Clock, SystemClock
from lifecycle.worker import Worker

log = logging.getLogger(__name__)

Progress = Callable[[str, str], None]
"""Told what a step waits for: worker id, words. For people only; nothing is decided by it."""

Announce = Callable[[Mapping[str, str]], None]
"""Given each notification that goes out, as the sinks get it."""


class _LoggedProgress:
    """Logs what is new of each worker: a wait tells the same words five times a second."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def __call__(self, worker_id: str, words: str) -> None:
        if self._last.get(worker_id) != words:
            self._last[worker_id] = words
            log.info("%s: %s", worker_id, words)


class Host:
    """Settings, ledger, clock and the adapters of this host. One per thread: the ledger's connection is not shared."""

    def __init__(self, settings: Settings, *, clock: Clock | None = None, progress: Progress | None = None) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.ledger = Ledger(settings.ledger_path)
        self.progress = progress or _LoggedProgress()
        self.link = ""
        """Where a person can see what is being done here; empty where nowhere."""
        self.announce: Announce = lambda _: None
        self.calm = Calm()
        """How long workers have been seen at rest."""
        self.still = Calm()
        """How long their input lines have been seen free, with nothing written in between."""
        self._down = ExitStack()
        self._terminals: dict[str | None, Terminal] = {}

    @classmethod
    @contextmanager
    def opened(
        cls, settings: Settings, *, clock: Clock | None = None, progress: Progress | None = None
    ) -> Iterator[Host]:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        host = cls(settings, clock=clock, progress=progress)
        try:
            yield host
        finally:
            host.ledger.close()

    def must_be(self, name: str) -> None:
        """Refuse what is meant for another host; without a name it is meant for the one it runs on.

        Raises:
            OtherHost
        """
        if name not in ("", self.settings.host_name):
            msg = (
                f"this run is for host {name}, and this is {self.settings.host_name}: nothing was touched; "
                f"the Prefect worker here must take runs from the pool {self.settings.host_name} alone"
            )
            raise OtherHost(msg)

    @contextmanager
    def bringing_back(self) -> Iterator[None]:
        """Around stop and start: from `worker_goes_down` on, the first INT or TERM waits for the end of the block."""
        try:
            yield
        finally:
            self._down.close()

    def worker_goes_down(self) -> None:
        """From here until the end of `bringing_back` the worker is down, or about to be."""
        self._down.enter_context(bringing_back_first())

    def hurried(self, within: timedelta) -> Host:
        """The same host, on which no delivery waits longer than *within* for one thing."""
        hurried, deadlines = copy(self), self.settings.deadlines
        quick = deadlines.model_copy(update={"delivery": min(deadlines.delivery, within)})
        hurried.settings = self.settings.model_copy(update={"deadlines": quick})
        return hurried

    def now(self) -> datetime:
        return self.clock.now()

    def workers(self) -> tuple[Worker, ...]:
        return load_workers(self.settings)

    def worker(self, worker_id: str) -> Worker:
        """Find one worker.

        Raises:
            InvalidWorkerId, UnknownWorker
        """
        return find_worker(self.settings, worker_id)

    def governed(self, worker: Worker, reading: ContextReading | None) -> Worker:
        """*worker* under the policy of the model that *reading* found: the one by which its renewal was decided.

        Raises:
            ConfigurationError: the layers of its policy contradict each other.
        """
        model = reading.model if reading is not None else None
        return worker.model_copy(update={"policy": self.settings.policy_of(worker.worker_id, model)})

    def agent(self, worker: Worker) -> Agent:
        """The adapter of the worker's kind of agent.

        Raises:
            ConfigurationError: there is none of this name.
        """
        try:
            return agent_of_kind(worker.agent)
        except ConfigurationError as error:
            msg = f"{self.settings.path}: workers.{worker.worker_id}.agent: {error.detail}"
            raise ConfigurationError(msg, worker_id=worker.worker_id) from error

    def terminal(self, worker: Worker) -> Terminal:
        return self.terminal_on(worker.socket if worker.socket is not None else self.settings.socket)

    def terminal_on(self, socket: str | None) -> Terminal:
        if socket not in self._terminals:
            self._terminals[socket] = Terminal(socket)
        return self._terminals[socket]

    def paths(self, worker: Worker) -> WorkerPaths:
        return paths_of(worker, memory_root=self.settings.memory_root, home=self.settings.home)

    def look_with_process(self, worker: Worker, *, prefer: str | None = None) -> tuple[PaneLook, Process | None]:
        """One look at the worker's pane, and the agent's own process in it where there is one.

        Without an agent the pane *prefer* is looked at, if it is there.

        Raises:
            TerminalError: tmux is not there or refused; an absent session is a look, not an error.
        """
        agent = self.agent(worker)
        found = self.terminal(worker).screen_of(
            worker.session, is_agent=lambda process: agent.is_agent(process, worker), prefer=prefer
        )
        if found is None:
            return PaneLook(state=PaneState.ABSENT), None
        screen, process = found
        look = agent.look(worker, screen, process)
        drawn = written_by(process.pid) if look.state is PaneState.READY and process is not None else None
        if drawn is not None and process is not None:
            self.still.seen(worker.worker_id, (process.identity, drawn), self.clock.monotonic())
        else:
            self.still.broken(worker.worker_id)
        return look, process

    def look(self, worker: Worker, *, prefer: str | None = None) -> PaneLook:
        return self.look_with_process(worker, prefer=prefer)[0]

    def process(self, worker: Worker) -> Process | None:
        return self.look_with_process(worker)[1]

    def account(self, worker: Worker) -> str:
        """The account that the worker's limits and login belong to; its own where nobody knows."""
        return self.agent(worker).account(worker) or f"worker:{worker.worker_id}"

    def breaker(self, worker: Worker, opened: Sequence[Breaker] | None = None) -> Breaker | None:
        """The open breaker of the worker's account; among *opened*, where the open ones have been read already."""
        opened = self.ledger.breakers(self.now()) if opened is None else opened
        if not opened:
            return None
        account = self.account(worker)
        return next((breaker for breaker in opened if breaker.account == account), None)

    def boot_id(self) -> str:
        return boot_id()

    def mission(self, worker: Worker) -> Mission:
        """The worker's mission, by its runtime.json and the swarm's mission ledger beside the memory."""
        return current_mission(
            self.paths(worker), ledger=self.settings.memory_root / ".runtime" / "swarm-missions.json"
        )

    def read(
        self,
        worker: Worker,
        process: Process | None,
        *,
        overhead: int | None = None,
        known: ContextReading | None = None,
    ) -> ContextReading:
        """Measure the worker's context. *known* is its last good reading, which saves reading what is unchanged."""
        since = process.started_at if process else None
        agent = self.agent(worker)
        return self.with_asked(agent.read_context(worker, since=since, now=self.now(), overhead=overhead, known=known))

    def with_asked(self, reading: ContextReading) -> ContextReading:
        """With the compactions that Afresh asked for."""
        asked = self.ledger.record(reading.worker_id).compression if reading.compactions else None
        if asked is None:
            return reading
        return reading.model_copy(update={"asked_compactions": asked.happened_by(reading)})

    def turn(self, worker: Worker, process: Process | None, *, known: TurnState | None = None) -> TurnState:
        """Where the worker's session stands. *known* is what was found last, which saves reading what is unchanged."""
        return self.agent(worker).turn(worker, since=process.started_at if process else None, known=known)

    def event(self, kind: str, worker: Worker, renewal_id: str | None = None, **detail: JsonValue) -> None:
        self.ledger.add_event(kind, worker.worker_id, at=self.now(), renewal_id=renewal_id, **detail)

    def stored_text(self, handoff: StoredHandoff) -> tuple[str, bool]:
        """The text of a stored handoff, and whether it is still what was stored; empty where the file is gone."""
        try:
            raw = handoff.archive.read_bytes()
        except OSError:
            return "", False
        return raw.decode(errors="replace"), hashlib.sha256(raw).hexdigest() == handoff.sha256
