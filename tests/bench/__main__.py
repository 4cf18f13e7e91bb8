"""`python -m tests.bench`: measure everything beside what it is held against; a table, and build/bench.json.

Each room is a process of its own, so that no other's memory or imports count in it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from tests.bench.measure import Figure, table

REPOSITORY = Path(__file__).parents[2]
FOUND = REPOSITORY / "build" / "bench.json"

LONGEST = 1200
"""Seconds after which a room is given up. Each takes less than 240 on two cores that do nothing else."""

CLEARED_IN = 60

ROOMS = {
    "readings": "readings:one_worker",
    "scan": "readings:scan",
    "growth": "readings:growth",
    "panes": "panes:look",
    "year": "year:year",
    "status": "commands:status",
    "sweep": "sweeping:sweep",
    "rest": "resting:rest",
    "hermes": "renewing:with_hermes",
    "parallel": "parallel:side_by_side",
}
"""What measures, as module and function. It is imported in the room's own process only."""


def main() -> int:
    given = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    given.add_argument("--only", nargs="+", choices=ROOMS, default=list(ROOMS), help="some of the rooms")
    given.add_argument("--fleet", type=Path, help="keep the profiles here; else they are made anew and removed")
    given.add_argument("--room", choices=ROOMS, help=argparse.SUPPRESS)
    chosen = given.parse_args()
    if chosen.room:
        module, _, name = ROOMS[chosen.room].partition(":")
        for figure in getattr(import_module(f"tests.bench.{module}"), name)(chosen.fleet):
            print(figure.model_dump_json(), flush=True)
        return 0
    with tempfile.TemporaryDirectory(prefix="afresh-bench-") as folder:
        return _run(chosen.only, (chosen.fleet or Path(folder)).absolute())


def _run(rooms: list[str], fleet: Path) -> int:
    fleet.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, object]] = []
    failed = []
    for room in rooms:
        began, before = time.monotonic(), os.getloadavg()[0]
        figures, said = _figures_of(room, fleet)
        took, after = time.monotonic() - began, os.getloadavg()[0]
        print(f"{room} ({took:.0f} s, load {before:.1f} before and {after:.1f} after)\n{table(figures)}\n", flush=True)
        beside = {"room": room, "seconds": round(took), "load_before": before, "load_after": after}
        found += [{**beside, "holds": one.holds, **one.model_dump(mode="json")} for one in figures]
        failed += [f"{room} {said}"] if said else []
        # Room by room, so that what was found stays whatever becomes of the next.
        FOUND.parent.mkdir(exist_ok=True)
        FOUND.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    missed = [str(one["name"]) for one in found if not one["holds"]]
    print(f"{len(found)} figures in {FOUND.relative_to(REPOSITORY)}; missed: {'; '.join(missed) or 'none'}")
    for words in failed:
        print(words, file=sys.stderr)
    return 1 if failed else 0


def _figures_of(room: str, fleet: Path) -> tuple[list[Figure], str]:
    """What the room found, and how it ended if not well; what it had found until then counts."""
    command = [sys.executable, "-m", "tests.bench", "--room", room, "--fleet", str(fleet)]
    environment = {**os.environ, "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, env=environment) as running:
        try:
            told, _ = running.communicate(timeout=LONGEST)
            said = "ended with an error" if running.returncode else ""
        except subprocess.TimeoutExpired:
            told, said = _interrupted(running), f"was not done after {LONGEST} s"
    return [Figure.model_validate_json(line) for line in told.splitlines() if line.startswith("{")], said


def _interrupted(running: subprocess.Popen[str]) -> str:
    """Interrupt the room, which then ends its own tmux, agents and servers."""
    running.send_signal(signal.SIGINT)
    try:
        return running.communicate(timeout=CLEARED_IN)[0]
    except subprocess.TimeoutExpired:
        running.kill()
        return running.communicate()[0]


if __name__ == "__main__":
    sys.exit(main())
