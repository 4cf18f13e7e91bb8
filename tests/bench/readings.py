"""Reading contexts: one worker, a thousand of them, and how the time grows."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from lifecycle.agents.hermes.reading import ContextReader
from lifecycle.agents.hermes.unchanged import FILES
from lifecycle.reading import Asked, ContextReading, Source
from lifecycle.tokens import counter
from tests.bench.fleet import NOW, live_texts, make_fleet, make_session
from tests.bench.measure import Figure, seconds, timed

INTERPRETER = getattr(sys, "_base_executable", sys.executable)
"""Without a virtual environment's start-up, which the reference does not pay."""

REFERENCE = """
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
row = db.execute("select input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens "
                 "from sessions order by started_at desc limit 1").fetchone()
total = db.execute("select sum(token_count) from messages").fetchone()[0] or 0
print(json.dumps({"tokens": max(sum(value or 0 for value in row), total)}))
"""
"""The reference's way, as its description has it: one process a worker that adds the counters and `token_count`."""

PLAIN = "SELECT max(id) FROM messages WHERE session_id = (SELECT id FROM sessions ORDER BY started_at DESC LIMIT 1)"


def reference(profile: Path) -> float:
    def run() -> None:
        subprocess.run([INTERPRETER, "-c", REFERENCE, str(profile / "state.db")], check=True, capture_output=True)

    return timed(run)


def read(reader: ContextReader, profile: Path, known: ContextReading | None = None) -> ContextReading:
    reading = reader.read(profile, profile.name, since=None, now=NOW, known=known)
    assert reading.error is None, reading.error
    return reading


def one_worker(root: Path) -> Iterator[Figure]:
    fleet = make_fleet(root, 60)
    logged = [profile for profile in fleet if (profile / "logs").exists()]
    counted = [profile for profile in fleet if not (profile / "logs").exists()]
    old = statistics.median(reference(profile) for profile in fleet[:15])
    cold = statistics.median(timed(lambda p=profile: read(ContextReader(), p)) for profile in logged)  # type: ignore[misc]
    reader = ContextReader()
    settled(fleet)
    for profile in fleet:
        read(reader, profile)
    warm = statistics.median(timed(lambda p=profile: read(reader, p)) for profile in fleet for _ in range(5))  # type: ignore[misc]
    detail = {"reference, ms": old * 1e3, "warm, ms": warm * 1e3, "cold with log, ms": cold * 1e3}
    yield Figure(
        name="one worker, warm", value=old / warm, unit="times faster", target=80, better="more",
        against="a Python process that opens and sums", detail=detail,
    )  # fmt: skip
    yield Figure(
        name="one worker, cold, figure from the log", value=old / cold, unit="times faster", target=15, better="more",
        against="the same",
    )  # fmt: skip
    yield _plain_loop(fleet, reader)
    yield _counting(counted)


def _plain_loop(fleet: list[Path], reader: ContextReader) -> Figure:
    def plain() -> None:
        for profile in fleet:
            with closing(sqlite3.connect(f"file:{profile}/state.db?mode=ro", uri=True)) as db:
                db.execute(PLAIN).fetchone()

    def ours() -> None:
        for profile in fleet:
            read(reader, profile)

    by_hand, warm = seconds(plain), seconds(ours)
    return Figure(
        name="warm reading", value=warm / by_hand, unit="of the time", target=1, better="less",
        against="a loop that opens mode=ro and asks one question",
        detail={"loop, ms a worker": by_hand / len(fleet) * 1e3, "warm, ms a worker": warm / len(fleet) * 1e3},
    )  # fmt: skip


def _counting(counted: list[Path]) -> Figure:
    count = counter()
    shares = []
    for profile in counted:
        texts = live_texts(profile)
        tiktokens = seconds(lambda texts=texts: [count(text) for text in texts])  # type: ignore[misc]
        shares.append(seconds(lambda profile=profile: read(ContextReader(), profile)) / tiktokens)  # type: ignore[misc]
    return Figure(
        name="one worker, cold, counted", value=statistics.median(shares), unit="of tiktoken's own time", target=1.5,
        better="less",
    )  # fmt: skip


def scan(root: Path, workers: int = 1_000) -> Iterator[Figure]:
    """A new reader over all of them, then the same reader again; and what another process does with their readings."""
    fleet = make_fleet(root, workers)
    settled(fleet)
    old = statistics.median(reference(profile) for profile in fleet[:15]) * workers
    reader = ContextReader()
    readings: list[ContextReading] = []
    used = time.process_time()
    cold = timed(lambda: readings.extend(read_all(reader, fleet)))
    used = time.process_time() - used
    before = _children_used()
    for profile in fleet[:15]:
        reference(profile)
    theirs = (_children_used() - before) / 15 * workers
    warm = seconds(lambda: read_all(reader, fleet))
    known = {reading.worker_id: reading for reading in readings}
    told = seconds(lambda: [read(ContextReader(), profile, known[profile.name]) for profile in fleet])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    detail = {"reference, s": old, "cold, s": cold, "reference, s of processor": theirs, "cold, s of processor": used,
              "warm, s": warm, "with the ledger's readings, s": told,
              "counted": sum(reading.source is Source.COUNTED for reading in readings)}  # fmt: skip
    yield Figure(name=f"{workers} workers, cold", value=old / cold, unit="times faster", target=10, better="more",
                 against="the reference's way for all", detail=detail)  # fmt: skip
    yield Figure(name=f"{workers} workers, warm", value=old / warm, unit="times faster", target=80, better="more")
    yield Figure(name=f"{workers} workers, memory", value=peak, unit="MB", target=250, better="less")


def _children_used() -> float:
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def read_all(reader: ContextReader, fleet: list[Path]) -> list[ContextReading]:
    asked = [Asked(profile=profile, worker_id=profile.name) for profile in fleet]
    readings = list(reader.read_each(asked, NOW))
    assert not [reading.error for reading in readings if reading.error]
    return readings


def growth(root: Path) -> Iterator[Figure]:
    """A worker's share of the time in a small fleet and in a large one; one more row behind few and behind many."""
    sizes = (10, 100, 1_000, 5_000)
    times = {}
    for size in sizes:
        fleet = small_fleet(root / "small", size)
        reader = ContextReader()
        read_all(reader, fleet)  # the first reader of a database makes its side files
        settled(fleet)
        read_all(reader, fleet)
        times[size] = seconds(lambda fleet=fleet, reader=reader: read_all(reader, fleet)) / size  # type: ignore[misc]
    yield Figure(
        name="warm reading, 10 to 5,000 workers", value=times[5_000] / times[10], unit="times a worker's share",
        target=2, better="less", detail={f"{size} workers, µs each": share * 1e6 for size, share in times.items()},
    )  # fmt: skip
    rows = {}
    for count in (100, 1_000, 10_000):
        profile = root / f"rows-{count}"
        shutil.rmtree(profile, ignore_errors=True)
        make_session(profile, tokens=count * 20, rows=count, log=False, seed=1)
        reader = ContextReader()
        read(reader, profile)
        rows[count] = _after_one_more_row(reader, profile)
    yield Figure(
        name="a new row, 100 to 10,000 rows seen", value=rows[10_000] - rows[100], unit="ms more", target=10,
        better="less", detail={f"{count} rows, ms": took for count, took in rows.items()},
    )  # fmt: skip


def _after_one_more_row(reader: ContextReader, profile: Path) -> float:
    """Milliseconds until a reader that counted all rows has counted one more."""
    took = []
    with closing(sqlite3.connect(profile / "state.db")) as owner:
        for number in range(7):
            with owner:
                owner.execute(
                    "INSERT INTO messages (session_id, role, content, timestamp) "
                    "SELECT session_id, 'user', 'one more row', max(timestamp) + ? FROM messages",
                    (number + 1,),
                )
            took.append(timed(lambda: read(reader, profile)) * 1e3)
    return statistics.median(took)


def small_fleet(root: Path, workers: int) -> list[Path]:
    model = root / "model"
    if not model.exists():
        make_session(model, tokens=4_000, rows=20, log=True, seed=3)
    profiles = []
    for number in range(workers):
        profile = root / "profiles" / f"swarm{number + 1}"
        if not profile.exists():
            shutil.copytree(model, profile)
        profiles.append(profile)
    settled(profiles)
    return profiles


def settled(fleet: list[Path]) -> None:
    """As if the agents had written nothing for an hour."""
    at = time.time_ns() - int(timedelta(hours=1).total_seconds() * 1e9)
    for profile in fleet:
        for name in FILES:
            if (profile / name).exists():
                os.utime(profile / name, ns=(at, at))
