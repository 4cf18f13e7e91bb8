"""`afresh status` as people start it: a whole process, for one worker and for a thousand."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lifecycle.survey import survey
from tests.bench.crew import crew_of
from tests.bench.measure import Figure, children_worked, seconds
from tests.bench.readings import INTERPRETER

AFRESH = Path(sys.executable).with_name("afresh")


def status(_folder: Path, workers: int = 1_000, *, runs: int = 7) -> Iterator[Figure]:
    """Of workers that a sweep has looked at before, all idle in their panes."""
    with crew_of(workers) as crew:
        with crew.host() as host:
            for _ in range(2):
                survey(host, host.workers())

        def run(*command: str | Path) -> None:
            subprocess.run(command, check=True, capture_output=True, env={**os.environ, **crew.ground.environment})

        def figure(name: str, target: float, *arguments: str) -> Figure:
            used: list[float] = []
            took = seconds(lambda: used.append(children_worked(lambda: run(AFRESH, "status", *arguments))), runs=runs)
            return Figure(
                name=f"afresh status of {name}", value=took, unit="s", target=target, better="less",
                against="the whole process",
                detail={"python3 -c pass, s": seconds(lambda: run(INTERPRETER, "-c", "pass"), runs=runs),
                        "of processor, s": statistics.median(used)},
            )  # fmt: skip

        yield figure("one worker", 0.6, "swarm1")
        yield figure(f"{workers:,} workers", 2)
