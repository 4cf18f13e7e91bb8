"""One case on its stage: a full worker, its bystanders, the fault, the recovery, and the verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from lifecycle.ledger import Ledger
from lifecycle.record import WorkerRecord
from lifecycle.renewal import Renewal
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until
from tests.agents.ground import has_ended
from tests.agents.stage import Stage
from tests.faults import observer
from tests.faults.flow_process import Order, finished
from tests.faults.observer import Watch
from tests.faults.strike import Strike
from tests.privileges import stopped_by_modes

_REPOSITORY = Path(__file__).parents[2]

DEADLINES = {
    "delivery": 15,
    "handoff_answer": 60,
    "idle_before_stop": 15,
    "exit": 5,
    "term": 3,
    "ready": 60,
    "resume_answer": 60,
}
"""Seconds. The scripted agent answers in a tenth of one, on a busy machine in many: a case that waits for a deadline
to pass makes that one short."""

SWEEPS = 4
"""How many sweeps a worker may need. Two are an hour's sixth in life; more would be no recovery."""

FULL = 70_000
HUMAN_WORD = "a person was here"


@dataclass
class Expectation:
    """What the case itself does, so that the product is not charged with it."""

    agent_dies: bool = False
    bystander_dies: bool = False
    window_closes: bool = False
    renewals: int = 1
    approved_by_human: bool = False


@dataclass
class Play:
    """The worker swarm1 over its limit, swarm10 beside it, and a second window in swarm1's session."""

    stage: Stage
    bystander: Stage
    deadlines: Mapping[str, float]
    watch: Watch
    expect: Expectation = field(default_factory=Expectation)
    settings: dict[str, Any] = field(default_factory=dict)
    more: list[Stage] = field(default_factory=list)
    api: str | None = None
    strike: Strike | None = None
    exit_code: int | None = None
    problems: list[str] = field(default_factory=list)
    bound: bool = False
    boot: str | None = None
    lasting: ExitStack = field(default_factory=ExitStack)
    """What is undone only after the verdict."""

    @property
    def root(self) -> Path:
        return self.stage.root

    @property
    def home(self) -> Path:
        return self.stage.ground.home

    @property
    def profile(self) -> Path:
        return self.stage.profile

    @property
    def log(self) -> Path:
        return self.root / "flows.log"

    # the set

    def set_up(self, config: dict[str, Any] | None = None, mission: str = "", **worker: Any) -> None:
        """Write the configuration, open the second window, fill the worker, remember what may not change."""
        self.configure(config, **worker)
        tmux, target = self.stage.ground.tmux, f"={self.stage.session}:"
        self.sink = self.root / "second-window"
        shown = tmux(
            *("new-window", "-d", "-P", "-F", "#{pane_id} #{pane_pid}", "-t", target, "-n", "notes"),
            f"exec cat > {self.sink}",
        )
        self.window_pane, pid = shown.split()
        self.window_pid = int(pid)
        self.bystander.answer_to(self.bystander.say("hello, neighbour"))
        if mission:
            self.stage.answer_to(self.stage.say(mission), 30)
            self.stage.wait_ready()
        self.stage.fill(FULL)
        self.bystander.wait_ready()
        self.old_sessions = {row.session_id for row in self.stage.rows()}
        self.neighbour_rows = self.bystander.rows()
        self.neighbour_pid = self.bystander.pane_pid
        self.first_pid = self.stage.pane_pid

    def configure(self, config: dict[str, Any] | None = None, *, nowhere: bool = False, **worker: Any) -> None:
        """Limits of 30,000 / 60,000 / 90,000 tokens, patient deadlines, automatic renewal on, no cooldown to wait for.

        *nowhere*: it says of no worker in which folder it works, and how it is started.
        """
        self.settings.update(config or {})
        settings = dict(self.settings)
        policy = {"soft": 30_000, "handoff": 60_000, "hard": 90_000, **settings.pop("policy", {})}
        deadlines = {**self.deadlines, **settings.pop("deadlines", {})}
        tables = [
            "\n".join(f"{key} = {json.dumps(value)}" for key, value in settings.items()),
            f"socket = {json.dumps(self.stage.ground.socket)}",
            _table("notify", {"command": ["tee", "-a", str(self.root / "notices.jsonl")]}),
            _table("deadlines", deadlines),
            _table("policy", policy),
        ]
        for stage in (self.stage, self.bystander, *self.more):
            launch = {} if nowhere else {"cwd": str(stage.cwd), "command": list(stage.command)}
            entry = {"automatic": True, **launch}
            tables.append(_table(f"workers.{stage.worker_id}", {**entry, **(worker if stage is self.stage else {})}))
        path = self.home / "afresh.toml"
        path.write_text("\n".join(tables))
        path.chmod(0o600)

    # what happens

    def order(self, what: str, **given: Any) -> Order:
        environment = self.stage.ground.environment
        given = {"bound": self.bound, "boot": self.boot, **given}
        return Order(what=what, environment=environment, log=self.log, api=self.api, **given)  # type: ignore[arg-type]

    def renew(self, strike: Strike | None = None, **given: Any) -> int | None:
        """One `renew` in a process of its own, with the fault in it."""
        strike = strike or self.strike
        if strike is not None and strike.act == "run":
            strike = Strike("run", strike.where, strike.step, strike.text.format_map(self.names()))
        self.exit_code = finished(self.order("renew", strike=strike, **given))
        return self.exit_code

    def sweep(self) -> int | None:
        return finished(self.order("sweep"))

    def sweep_healthy(self) -> None:
        """A sweep that only sees the worker alive."""
        self.configure({"policy": {"soft": 90_000, "handoff": 100_000, "hard": 120_000}})
        self.sweep()
        self.configure({"policy": {}})

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`afresh` as an operator calls it, with the server of the case."""
        kept = {name: value for name, value in os.environ.items() if name.startswith("PREFECT_")}
        command = [sys.executable, "-m", "deployments.cli", *words]
        return subprocess.run(
            stopped_by_modes(command) if self.bound else command,
            env={**kept, **self.stage.ground.environment},
            cwd=_REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
        )

    def recover(self, sweeps: int = SWEEPS) -> None:
        """Sweep as the schedule would, until the worker is resumed, blocked or parked."""
        for _ in range(sweeps):
            self.settle()
            if self.has_ended():
                return
            self.sweep()
        self.settle()

    def settle(self, within: float = 10) -> None:
        """Wait until the agent has drawn what it does: a sweep that comes in the middle finds it busy, and waits."""
        try:
            wait_until(self._is_quiet, timedelta(seconds=within), SystemClock(), timedelta(seconds=0.1))
        except DeadlinePassed:
            return

    def _is_quiet(self) -> bool:
        return self.stage.ground.tmux("has-session", "-t", f"={self.stage.session}", check=False) == "" and (
            not self.has_session() or self.stage.is_ready()
        )

    def has_session(self) -> bool:
        names = self.stage.ground.tmux("list-sessions", "-F", "#{session_name}", check=False).splitlines()
        return self.stage.session in names

    def has_ended(self) -> bool:
        newest = self.renewal
        stands = newest is not None and (newest.block is not None or self.is_parked())
        return stands or bool(observer.renewed(self.renewals))

    def is_parked(self) -> bool:
        """Whether the worker waits for its provider; a lost login has no time at which it ends."""
        return bool(self.record.parked_why)

    def names(self) -> dict[str, str]:
        """What a program that is run as a fault may name."""
        return {
            "tmux": f"tmux -S {self.stage.ground.socket}",
            "socket": self.stage.ground.socket,
            "session": self.stage.session,
            "pane": self.stage.format("#{pane_id}"),
            "profile": str(self.profile),
            "home": str(self.home),
            "root": str(self.root),
            "pid": str(self.first_pid),
            "command": " ".join(self.stage.command),
        }

    def run(self, command: str) -> str:
        """A program with the names of this case in it."""
        text = command.format_map(self.names())
        done = subprocess.run(["/bin/sh", "-c", text], check=True, timeout=60, capture_output=True, text=True)
        return done.stdout

    # what is known

    @property
    def renewals(self) -> list[Renewal]:
        return observer.renewals_of(self.home / "ledger.db", self.stage.worker_id)

    @property
    def renewal(self) -> Renewal | None:
        return next(iter(self.renewals), None)

    @property
    def record(self) -> WorkerRecord:
        with Ledger(self.home / "ledger.db") as ledger:
            return ledger.record(self.stage.worker_id)

    def texts(self) -> list[str]:
        return [row.content for row in self.stage.rows() if row.role == "user"]

    def demand(self, holds: bool, what: str) -> None:
        """Note a promise that was broken on the way, for the verdict."""
        if not holds:
            self.problems.append(what)

    def screen_of(self, pane: str) -> str:
        return self.stage.ground.tmux("capture-pane", "-p", "-t", pane, check=False).strip()


def _table(name: str, values: Mapping[str, Any]) -> str:
    return "\n".join([f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in values.items())])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + "}"
    return json.dumps(value)


@contextmanager
def staged(
    stage: Stage, *, deadlines: Mapping[str, float] | None = None, within: float = 60, **knobs: Any
) -> Iterator[Play]:
    """A worker with its neighbour, both up, and a watch over them; everything that was started is ended."""
    bystander = stage.another("swarm10")
    try:
        stage.start(**knobs)
        bystander.start()
        stage.wait_ready(within)
        bystander.wait_ready()
        with Watch([stage, bystander], stage.ground.home / "archive" / stage.worker_id) as watch:
            play = Play(stage=stage, bystander=bystander, deadlines=deadlines or DEADLINES, watch=watch)
            with play.lasting:
                yield play
    finally:
        stage.ground.clear()


def is_running(pid: int) -> bool:
    return not has_ended(pid)


def seconds_since(began: float) -> float:
    return round(time.monotonic() - began, 1)
