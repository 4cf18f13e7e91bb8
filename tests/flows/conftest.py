"""One Prefect server for all flow tests, and a worker that the flows find through the environment."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.objects import State
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker
from prefect.testing.utilities import prefect_test_harness

from flows.renewal import renew_worker
from lifecycle.host import Host
from lifecycle.renewal import Block, Renewal
from lifecycle.settings import load_settings
from tests.agents.deadlines import DEADLINES
from tests.agents.stage import Stage

DRAINED_WITHIN = 30
"""Seconds."""


@pytest.fixture(scope="session", autouse=True)
def prefect_server() -> Iterator[None]:
    with prefect_test_harness(server_startup_timeout=120):
        yield
        _drain_prefect()


def _drain_prefect() -> None:
    """What the harness does at its end without a limit: one of Prefect's services was once never done with its logs."""

    def drain() -> None:
        APILogWorker.instance().drain()
        EventsWorker.drain_all(timeout=DRAINED_WITHIN)

    draining = threading.Thread(target=drain, name="draining", daemon=True)
    draining.start()
    draining.join(DRAINED_WITHIN)


def acted(state: State[Any]) -> list[dict[str, Any]]:
    """The entries of a sweep in which something was done or failed."""
    entries: list[dict[str, Any]] = state.result()
    return [entry for entry in entries if entry["outcome"] != "none"]


class Scene:
    """A worker on its stage, with the configuration that flows read, and what the ledger says of it."""

    def __init__(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch, *, deadlines: Mapping[str, int] | None = None
    ) -> None:
        self.stage = stage
        self.deadlines = deadlines or DEADLINES
        self.worker_id = stage.worker_id
        for name, value in stage.ground.environment.items():
            monkeypatch.setenv(name, value)
        self.configure()

    def configure(self, *, deadlines: dict[str, int] | None = None, **worker: Any) -> None:
        """Write afresh.toml: limits of 30,000 / 60,000 / 90,000 tokens, the scene's deadlines, automatic renewal on."""
        policy = {"soft": 30_000, "handoff": 60_000, "hard": 90_000, **worker.pop("policy", {})}
        entry = {
            "automatic": True,
            "cwd": str(self.stage.cwd),
            "command": list(self.stage.command),
            **worker,
        }
        lines = [
            f"socket = {json.dumps(self.stage.ground.socket)}",
            f"[notify]\ncommand = {json.dumps(['tee', '-a', str(self.notices_path)])}",
            _table("deadlines", {**self.deadlines, **(deadlines or {})}),
            _table("policy", policy),
            _table(f"workers.{self.worker_id}", entry),
        ]
        path = self.stage.ground.home / "afresh.toml"
        path.write_text("\n".join(lines))
        path.chmod(0o600)

    @property
    def notices_path(self) -> Path:
        return self.stage.root / "notices.jsonl"

    def notices(self) -> list[str]:
        """The subjects that were sent to the configured command."""
        if not self.notices_path.exists():
            return []
        decoder, text, found = json.JSONDecoder(), self.notices_path.read_text(), []
        while text:
            document, end = decoder.raw_decode(text)
            found.append(document["subject"])
            text = text[end:].lstrip()
        return found

    def renew(self, **parameters: Any) -> State[Any]:
        return renew_worker(self.worker_id, return_state=True, **parameters)

    @contextmanager
    def host(self) -> Iterator[Host]:
        with Host.opened(load_settings()) as host:
            yield host

    @property
    def renewal(self) -> Renewal:
        """The newest renewal of the worker."""
        with self.host() as host:
            return host.ledger.renewals_of(self.worker_id, limit=1)[0]

    @property
    def block(self) -> Block:
        found = self.renewal.block
        assert found is not None
        return found

    def events(self) -> list[str]:
        with self.host() as host:
            return [event.kind for event in host.ledger.events(self.worker_id)]

    def user_texts(self) -> list[str]:
        """The user rows of the agent's database, oldest first."""
        return [row.content for row in self.stage.rows() if row.role == "user"]


def _table(name: str, values: dict[str, Any]) -> str:
    return "\n".join([f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())])


@pytest.fixture
def scene(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A scripted agent that is over its handoff limit."""
    stage.fill(70_000)
    return Scene(stage, monkeypatch)


@pytest.fixture
def scene_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Stage], Scene]:
    return lambda stage: Scene(stage, monkeypatch)
