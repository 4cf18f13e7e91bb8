"""The host of a stage's worker, for tests of what is done to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lifecycle.host import Host
from tests.agents.stage import Stage

DEADLINES = {
    "delivery": 30,
    "handoff_answer": 60,
    "idle_before_stop": 30,
    "exit": 5,
    "term": 5,
    "ready": 60,
    "resume_answer": 60,
}
"""Seconds. The scripted agent answers in a tenth of one, on a busy machine in many: a test that waits for a deadline
to pass makes that one short, and no other."""


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
