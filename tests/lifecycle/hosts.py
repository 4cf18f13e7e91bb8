"""The host of a stage's worker, for tests of what is done to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lifecycle.host import Host
from tests.agents.deadlines import DEADLINES
from tests.agents.stage import Stage


@contextmanager
def host_of(stage: Stage, **changes: Any) -> Iterator[Host]:
    """The worker is declared with its command; limits of 30,000 / 60,000 / 90,000 tokens; automatic renewal off."""
    worker = {"cwd": stage.cwd, "command": stage.command}
    settings = {
        "deadlines": DEADLINES,
        "policy": {"soft": 30_000, "handoff": 60_000, "hard": 90_000},
        "workers": {stage.worker_id: worker},
    }
    with Host.opened(stage.settings(**{**settings, **changes})) as host:
        yield host
