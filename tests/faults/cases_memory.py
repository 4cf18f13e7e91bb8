"""What is remembered and told: loops, several renewals, profiles that nobody manages, locks that someone left."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing

from lifecycle.ledger import Ledger
from lifecycle.waiting import SystemClock
from tests.faults.case import Case, renew_and_recover
from tests.faults.play import FULL, Expectation, Play


def _remembered(play: Play, **facts: object) -> None:
    with Ledger(play.home / "ledger.db") as ledger:
        ledger.remember("swarm1", **facts)


def _crash_loop(play: Play) -> None:
    now = SystemClock().now()
    _remembered(play, deaths=(now, now, now))


def _renewal_loop(play: Play) -> None:
    now = SystemClock().now()
    _remembered(play, renewals=(now,) * 4)


def _swept(play: Play) -> None:
    play.sweep()
    play.recover()


def _twice(play: Play) -> None:
    """Two renewals one after the other keep both handoffs (W-11)."""
    play.expect.renewals = 2
    play.renew()
    play.recover()
    first = {path: path.read_bytes() for path in (play.home / "archive" / "swarm1").glob("*.md")}
    play.stage.wait_ready()
    play.stage.fill(FULL)
    play.renew()
    archived = list((play.home / "archive" / "swarm1").glob("*.md"))
    play.demand(len(archived) == 2, f"{len(archived)} handoffs are archived")
    play.demand(all(path.read_bytes() == content for path, content in first.items()), "the first handoff has changed")


def _unmanaged(play: Play) -> None:
    """A personal profile in the same root, full and idle, is nobody's worker (W-31)."""
    alice = play.stage.another("alice")
    alice.start()
    alice.wait_ready()
    alice.fill(FULL)
    rows, pid = alice.rows(), alice.pane_pid
    renew_and_recover(play)
    play.sweep()
    play.demand((alice.rows(), alice.pane_pid) == (rows, pid) and alice.is_ready(), "an unmanaged profile was touched")


def _told(play: Play) -> None:
    """A block is told once, by notice and in runtime.json, and no new work is given (W-30, W-32)."""
    play.renew()
    play.sweep()
    play.sweep()
    notices = (play.root / "notices.jsonl").read_text()
    play.demand(notices.count("blocked: checkpoint_incomplete") == 1, "the block was not told once")
    runtime = json.loads((play.profile / "runtime.json").read_text())
    play.demand(runtime["acceptingWork"] is False and runtime["needsHuman"] is True, "the swarm was not told")


def _locked(play: Play, seconds: float) -> None:
    now = time.time()
    with closing(sqlite3.connect(play.profile / "state.db", isolation_level=None, timeout=5)) as database:
        session = play.stage.rows()[-1].session_id
        database.execute(
            "INSERT OR REPLACE INTO compression_locks VALUES (?, ?, ?, ?)", (session, "gone:1", now, now + seconds)
        )


def _stale_lock(play: Play) -> None:
    """A compaction lock that has run out keeps nobody (Q3)."""
    _locked(play, -60)
    renew_and_recover(play)


def _live_lock(play: Play) -> None:
    """While a compaction is under way nothing is typed; when its lock runs out, the worker is renewed."""
    _locked(play, 6)
    rows = play.stage.rows()
    play.sweep()
    play.demand(play.stage.rows() == rows, "asked while a compaction was under way")
    _locked(play, -1)
    play.recover()


def _empty_latest(play: Play) -> None:
    latest = play.stage.paths.shared_latest
    latest.parent.mkdir(parents=True, exist_ok=True)
    latest.touch()
    play.stage.paths.latest.parent.mkdir(parents=True, exist_ok=True)
    play.stage.paths.latest.touch()


CASES = [
    Case(
        id="loop-of-deaths",
        fault="the agent died three times in a quarter of an hour",
        phase="detect",
        source="L",
        before=_crash_loop,
        play=_swept,
        ends=("blocked:crash_loop",),
    ),
    Case(
        id="loop-of-renewals",
        fault="four renewals within the hour",
        phase="detect",
        source="L",
        before=_renewal_loop,
        play=_swept,
        ends=("blocked:renewal_loop",),
        third=True,
    ),
    Case(
        id="renewed-twice",
        fault="full again, and renewed again",
        phase="persist",
        source="W-11",
        config={"policy": {"cooldown": 0}},
        play=_twice,
        expect=lambda: Expectation(renewals=2),
    ),
    Case(id="unmanaged", fault="a full profile that nobody manages", phase="detect", source="W-31", play=_unmanaged),
    Case(
        id="block-is-told",
        fault="a handoff that is refused, and two sweeps",
        phase="parse",
        source="W-32",
        manners={"handoff": "partial"},
        ends=("blocked:checkpoint_incomplete",),
        play=_told,
    ),
    Case(id="lock-stale", fault="a compaction lock of a dead process", phase="detect", source="Q3", play=_stale_lock),
    Case(id="lock-live", fault="a compaction is under way", phase="detect", source="F8", play=_live_lock),
    Case(id="latest-empty", fault="an empty `latest` lies there", phase="persist", source="D3", before=_empty_latest),
]
