"""Twenty renewals at once in one process, beside one after another. The scripted agents take ten seconds each."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prefect.testing.utilities import prefect_test_harness

from flows.runs import Due, renew_all
from lifecycle.decision import Action
from lifecycle.host import Host
from lifecycle.settings import load_settings
from tests.agents.ground import Ground
from tests.agents.stage import Stage
from tests.bench.measure import Figure

AGENTS_TAKE = 10
QUICK = {"delivery": 60, "handoff_answer": 120, "idle_before_stop": 60, "exit": 20, "term": 10, "ready": 120,
         "resume_answer": 120}  # fmt: skip


def side_by_side(_: Path, *, workers: int = 20, alone: int = 5) -> Iterator[Figure]:
    """*alone* renewals are timed one after another, and their median stands for each of the *workers*."""
    ground = Ground()
    try:
        stages = [Stage(f"swarm{number + 1}", ground=ground) for number in range(workers + alone)]
        _configure(ground, stages, places=workers)
        for stage in stages:
            stage.start(handoff_seconds=AGENTS_TAKE / 2, resume_seconds=AGENTS_TAKE / 2)
        for stage in stages:
            stage.wait_ready(120)
            stage.fill(70_000)
        with prefect_test_harness(server_startup_timeout=120), pytest.MonkeyPatch.context() as patch:
            for name, value in ground.environment.items():
                patch.setenv(name, value)
            with Host.opened(load_settings()) as host:
                each = statistics.median(_took(host, [stage]) for stage in stages[workers:])
                together = _took(host, stages[:workers])
        yield Figure(
            name=f"{workers} renewals at once", value=each * workers / together, unit="times faster", target=4,
            better="more", against="one after another",
            detail={"one alone, s": each, "one after another, s": each * workers, "at once, s": together},
        )  # fmt: skip
    finally:
        ground.clear()


def _took(host: Host, stages: list[Stage]) -> float:
    due = [Due(worker_id=stage.worker_id, action=Action.RENEW, reason="measured", occasion="bench") for stage in stages]
    began = time.perf_counter()
    swept = renew_all(host, due, here=True)
    took = time.perf_counter() - began
    assert {one.outcome for one in swept} == {"renewed"}, [one.reason for one in swept]
    return took


def _configure(ground: Ground, stages: list[Stage], *, places: int) -> None:
    lines = [f"max_parallel_renewals = {places}", "automatic = true", "[policy]", "soft = 30000", "handoff = 60000",
             "hard = 90000", "[deadlines]", *(f"{name} = {value}" for name, value in QUICK.items())]  # fmt: skip
    for stage in stages:
        command = json.dumps(list(stage.command))
        lines += [f"[workers.{stage.worker_id}]", f"cwd = {json.dumps(str(stage.cwd))}", f"command = {command}"]
    path = ground.home / "afresh.toml"
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o600)
