"""What watching over healthy workers costs at rest: processor time of a sweep a minute, in a process of its own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from prefect.settings import PREFECT_API_URL
from prefect.testing.utilities import prefect_test_harness

from lifecycle.survey import survey
from tests.bench.crew import crew_of
from tests.bench.measure import Figure

REPOSITORY = Path(__file__).parents[2]
MINUTE = 60.0

ONE_SWEEP = """
import json, resource, sys
def used():
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)
started = used()
from flows.sweep import sweep_workers
imported = used()
if sys.argv[1] == "sweep":
    sweep_workers()
else:
    from flows.artifacts import row_of
    from lifecycle.host import Host
    from lifecycle.settings import load_settings
    from lifecycle.status import described
    from lifecycle.survey import survey
    with Host.opened(load_settings()) as host:
        found = survey(host, host.workers())
        [row_of(described(host, one)) for one in found.findings]
print(json.dumps({"start": started, "import": imported - started, "work": used() - imported}))
"""
"""A sweep as a run of its own does it; or Afresh's part of it alone, without a flow around it."""


def rest(_folder: Path, workers: int = 100, *, runs: int = 5) -> Iterator[Figure]:
    with prefect_test_harness(server_startup_timeout=120), crew_of(workers) as crew:
        with crew.host() as host:
            for _ in range(2):
                survey(host, host.workers())

        def swept(what: str) -> dict[str, float]:
            given = {**os.environ, **crew.ground.environment, "PREFECT_API_URL": str(PREFECT_API_URL.value())}
            command = [sys.executable, "-c", ONE_SWEEP, what]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=given, cwd=REPOSITORY)
            found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
            return found

        swept("sweep")
        own = [swept("own") for _ in range(runs)]
        whole = [swept("sweep") for _ in range(runs)]
        share = {name: statistics.median(one[name] for one in whole) / MINUTE * 100 for name in ("start", "import")}
        ours = statistics.median(one["work"] for one in own) / MINUTE * 100
        flow = statistics.median(one["work"] for one in whole) / MINUTE * 100
        yield Figure(
            name=f"{workers} healthy workers, a sweep a minute: Afresh's own processor time", value=ours,
            unit="% of a core", target=3, better="less",
            detail={"the flow around it, %": flow - ours, "process start, %": share["start"],
                    "import of Prefect and flows, %": share["import"], "Prefect server at rest, %": _server_share()},
        )  # fmt: skip


def _server_share(span: float = 20) -> float:
    """Of this process's Prefect server, with its own services, while nothing runs."""
    servers = [child for child in psutil.Process().children(recursive=True) if "uvicorn" in " ".join(child.cmdline())]
    before = sum(_used(server) for server in servers)
    time.sleep(span)
    return (sum(_used(server) for server in servers) - before) / span * 100


def _used(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
