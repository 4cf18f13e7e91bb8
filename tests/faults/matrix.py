"""`make faults`: every case, one after the other or several at once, and what they came to.

python -m tests.faults [--jobs N] [--only PART[,PART…]] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lifecycle.errors import LifecycleError
from tests.faults.case import Case
from tests.faults.cases import CASES
from tests.faults.perform import Result, broken, perform, prefect_server
from tests.faults.play import seconds_since
from tests.faults.verdict import WRONG

_REPOSITORY = Path(__file__).parents[2]
_CANNOT_PLAY = (LifecycleError, AssertionError, OSError, ValueError, subprocess.SubprocessError, pytest.fail.Exception)


def main() -> int:
    """Play the cases that were asked for; the status is 0 only if every one ended as it should."""
    parser = argparse.ArgumentParser(description="The matrix of scripted faults.")
    jobs = min(8, 2 * (os.cpu_count() or 1))  # a case waits most of its time
    parser.add_argument("--jobs", type=int, default=jobs, help="cases at once")
    parser.add_argument("--only", default="", help="parts of case ids, with commas between them")
    parser.add_argument("--out", type=Path, default=_REPOSITORY / "build" / "faults.json")
    given = parser.parse_args()
    parts = [part for part in given.only.split(",") if part]
    chosen = [case for case in CASES if not parts or any(part in case.id for part in parts)]
    left_out = [(case.id, why) for case in chosen if (why := case.cannot())]
    chosen = [case for case in chosen if case.id not in dict(left_out)]
    for name, why in left_out:
        print(f"left out: {name}: {why}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="afresh-faults-") as home, prefect_server(Path(home)):
        results = _play_all(chosen, given.jobs, given.out.with_suffix(""))
    report = summary(results)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    _print_report(report, results, seconds_since(began), given.out)
    return 0 if all(result.is_right for result in results) else 1


def _play_all(cases: list[Case], jobs: int, logs: Path) -> list[Result]:
    hermes = Path(os.environ.get("AFRESH_TEST_HERMES") or _REPOSITORY / ".agent" / "bin" / "hermes")

    def play(case: Case) -> Result:
        began = time.monotonic()
        try:
            result = perform(case, hermes, logs)
        except _CANNOT_PLAY as error:
            result = broken(case, f"{type(error).__name__}: {error}", seconds_since(began))
        _print_line(result)
        return result

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        return list(pool.map(play, cases))


def summary(results: list[Result]) -> dict[str, object]:
    """The document of `faults.json`."""
    ends = Counter(result.end for result in results)
    wrongs = Counter(name for result in results for name in result.wrongs)
    shown = {"id", "fault", "phase", "end", "reason", "seconds", "source"}
    return {
        "runs": len(results),
        **{end: ends[end] for end in ("resumed", "blocked", "parked")},
        **{wrong: wrongs[wrong] for wrong in WRONG},
        "cases": [result.model_dump(include=shown) for result in results],
    }


def _print_line(result: Result) -> None:
    mark = "ok   " if result.is_right else "WRONG"
    words = " ".join(f"{name}: {what}" for name, what in result.wrongs.items())
    line = f"{mark} {result.id:<30} {result.end:<8} {result.reason:<26.80} {result.seconds:5.1f} s  {result.source}"
    print(f"{line}  {words}", flush=True)


def _print_report(report: dict[str, object], results: list[Result], seconds: float, out: Path) -> None:
    print()
    print("  ".join(f"{name} {value}" for name, value in report.items() if name != "cases"))
    wrong = [result.id for result in results if not result.is_right]
    print(
        f"{len(wrong)} ended otherwise than they should: {', '.join(wrong)}"
        if wrong
        else "every case ended as it should"
    )
    print(f"{seconds:.0f} s; {out}")
