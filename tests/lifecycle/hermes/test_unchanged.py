"""The kept reading and the plain one are the same, whatever happens to the files in between."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from lifecycle.agents.hermes.agent import HermesAgent
from lifecycle.agents.hermes.database import open_state
from lifecycle.agents.hermes.message import SIGNALLED, read_messages
from lifecycle.agents.hermes.reading import ContextReader
from lifecycle.agents.hermes.turn import turn
from lifecycle.agents.hermes.unchanged import FILES, SETTLED
from lifecycle.policy import Policy
from lifecycle.reading import ContextReading, ContextState
from lifecycle.transcript import TurnState
from lifecycle.worker import Worker
from tests.lifecycle.hermes.hermes_profile import (
    EPOCH,
    MAIN,
    NOW,
    SAMPLES,
    SUMMARY,
    Profile,
    call,
    compaction_done,
    copied,
    moment,
    read,
)

READABLE = sorted(
    path.name for path in SAMPLES.glob("*.db") if path.name not in ("not_a_db.db", "truncated.db", "zero.db")
)


def settle(folder: Path, step: int = 0) -> None:
    """Let the files look as if they were last written a while ago, each time at a moment of its own."""
    at = time.time_ns() - 10 * SETTLED - (1000 - step) * 1_000_000
    for name in FILES:
        if (folder / name).exists():
            os.utime(folder / name, ns=(at, at))


@contextmanager
def no_look_allowed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", None)
        yield


def stands_plainly(folder: Path, session_id: str | None) -> tuple[int, bool]:
    """The newest live row of the session and whether its last question is answered, from all its rows in order."""
    with open_state(folder, "swarm1") as state:
        assert state is not None
        rows = [row for row in read_messages(state, "messages.session_id = ?", session_id) if row.live]
    asked = [row for row in rows if row.role == "user" and not row.is_summary and not row.text.startswith(SIGNALLED)]
    answered = any(row.is_closed_answer and row.row_id > asked[-1].row_id for row in rows) if asked else True
    return max((row.row_id for row in rows), default=0), answered


@pytest.mark.parametrize("sample", READABLE)
def test_of_every_sample_the_turn_is_what_all_rows_say(tmp_path: Path, sample: str) -> None:
    folder = copied(sample, tmp_path)
    stands = turn(folder, "swarm1", since=None, now=NOW)
    if stands.session_id is not None:
        assert (stands.newest_row, stands.answered) == stands_plainly(folder, stands.session_id)


def test_a_question_behind_a_summary_and_a_signal_is_found(tmp_path: Path) -> None:
    made = Profile(tmp_path)
    made.session()
    made.say("user", "the only question", 1)
    made.say("user", SUMMARY, 2)
    made.say("user", f"{SIGNALLED}TERM", 3)
    made.session("another", at=4, ended_at=EPOCH + 5)
    made.say("user", "of another session", 4, session_id="another")
    assert not turn(tmp_path, "swarm1", since=None, now=NOW).answered
    made.say("assistant", "its answer", 6)
    assert turn(tmp_path, "swarm1", since=None, now=NOW).answered


@pytest.mark.parametrize("sample", READABLE)
@pytest.mark.parametrize("log", [True, False])
def test_of_every_sample_the_kept_reading_is_the_plain_one_at_its_own_time(
    tmp_path: Path, sample: str, log: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = copied(sample, tmp_path, log=log)
    settle(profile)
    reader = ContextReader()
    first = reader.read(profile, "swarm1", since=None, now=NOW)
    with no_look_allowed(monkeypatch):
        second = reader.read(profile, "swarm1", since=None, now=NOW + timedelta(minutes=1))

    assert first == read(profile)
    assert first.mark
    assert second == first.model_copy(update={"at": NOW + timedelta(minutes=1)})


@pytest.mark.parametrize("sample", ["not_a_db.db", "truncated.db", "zero.db"])
def test_an_unreadable_one_is_looked_at_each_time(tmp_path: Path, sample: str) -> None:
    profile = copied(sample, tmp_path)
    settle(profile)
    reader = ContextReader()
    assert reader.read(profile, "swarm1", since=None, now=NOW).state(Policy()) is ContextState.UNKNOWN

    shutil.copy(SAMPLES / "live_15turns.db", profile / "state.db")
    settle(profile)
    assert reader.read(profile, "swarm1", since=None, now=NOW) == read(profile)


def test_what_was_written_a_moment_ago_is_not_kept(tmp_path: Path) -> None:
    """Two writes within one tick of the file system's clock leave the same stamp."""
    made = Profile(tmp_path)
    made.session()
    made.say("user", "one", 10)
    reader = ContextReader()
    reader.read(tmp_path, "swarm1", since=None, now=NOW)
    found = made.path.stat()
    made.say("user", "two words or even four", 11)
    os.utime(made.path, ns=(found.st_atime_ns, found.st_mtime_ns))

    assert reader.read(tmp_path, "swarm1", since=None, now=NOW) == read(tmp_path)


def test_another_start_of_the_agent_or_another_overhead_is_another_question(tmp_path: Path) -> None:
    made = Profile(tmp_path)
    made.session()
    made.say("user", "one", 10)
    settle(tmp_path)
    reader = ContextReader()
    assert reader.read(tmp_path, "swarm1", since=None, now=NOW).session_id == MAIN
    assert reader.read(tmp_path, "swarm1", since=moment(500), now=NOW).session_id is None
    few = reader.read(tmp_path, "swarm1", since=None, now=NOW, overhead=0)
    many = reader.read(tmp_path, "swarm1", since=None, now=NOW, overhead=5_000)
    assert (many.tokens or 0) - (few.tokens or 0) == 5_000


def test_a_turn_that_ends_by_time_alone_is_looked_at_each_time(tmp_path: Path) -> None:
    made = Profile(tmp_path)
    made.session()
    made.say("user", "one", 10)
    made.run(
        "INSERT INTO compression_locks (session_id, holder, acquired_at, expires_at) VALUES (?, 'x', ?, ?)",
        MAIN, time.time(), time.time() + 3,
    )  # fmt: skip
    settle(tmp_path)
    agent, worker = HermesAgent(), Worker(worker_id="swarm1", profile=tmp_path, session="s", policy=Policy())
    assert agent.turn(worker, since=None).compacting
    deadline = time.monotonic() + 60
    while agent.turn(worker, since=None).compacting:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("seed", range(8))
def test_through_any_history_the_kept_reading_is_the_plain_one(tmp_path: Path, seed: int) -> None:
    """Turns, logged calls, compactions in place and by rotation, undone turns, exits, resets, a -wal that is reset
    and used again, configurations: after each step the long-lived reader says what a new one says."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    history = _History(Profile(tmp_path), chance)
    agent, worker = HermesAgent(), Worker(worker_id="swarm1", profile=tmp_path, session="s", policy=Policy())
    fast, known = agent.read_context(worker, since=None, now=NOW), TurnState()
    kept = 0
    with closing(sqlite3.connect(history.made.path)) as owner:
        owner.execute("PRAGMA journal_mode = WAL")
        for step in range(60):
            chance.choice(history.steps)(owner)
            owner.commit()
            if chance.random() < 0.7:
                settle(tmp_path, step)
            if chance.random() < 0.3:  # another process, which knows the last reading from the ledger
                agent, fast = HermesAgent(), ContextReading.recall(fast.model_dump_json())
                known = TurnState.recall(known.model_dump_json())
            for _ in range(2):
                fast = agent.read_context(worker, since=None, now=NOW, known=fast)
                plain = read(tmp_path)
                assert fast.model_copy(update={"mark": plain.mark}) == plain, f"step {step}"
                stands = turn(tmp_path, "swarm1", since=None, now=NOW)
                known = agent.turn(worker, since=None, known=known)
                assert known.model_copy(update={"mark": ""}) == stands
                assert (stands.newest_row, stands.answered) == stands_plainly(tmp_path, stands.session_id)
            kept += fast.mark != ""
    assert kept > 20


def test_another_process_takes_up_a_known_reading_and_a_known_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Profile(tmp_path)
    made.session()
    made.say("user", "one question " * 50, 10)
    settle(tmp_path)
    known = ContextReading.recall(ContextReader().read(tmp_path, "swarm1", since=None, now=NOW).model_dump_json())
    with no_look_allowed(monkeypatch):
        assert ContextReader().read(tmp_path, "swarm1", since=None, now=NOW, known=known) == known
    worker = Worker(worker_id="swarm1", profile=tmp_path, session="s", policy=Policy())
    stands = TurnState.recall(HermesAgent().turn(worker, since=None).model_dump_json())
    with no_look_allowed(monkeypatch):
        assert HermesAgent().turn(worker, since=None, known=stands) == stands

    made.say("assistant", "one answer", 11)
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text.split())

    ContextReader(count).read(tmp_path, "swarm1", since=None, now=NOW, known=known)
    assert [text for text in counted if text] == ["one answer"]
    assert HermesAgent().turn(worker, since=None, known=stands).answered


def test_a_count_of_another_file_is_not_gone_on_from(tmp_path: Path) -> None:
    made = Profile(tmp_path / "a")
    made.session()
    made.say("user", "one question " * 50, 10)
    known = ContextReader().read(tmp_path / "a", "swarm1", since=None, now=NOW)
    other = Profile(tmp_path / "b")
    other.session()
    other.say("user", "another", 10)
    (tmp_path / "b" / "state.db").replace(tmp_path / "a" / "state.db")

    assert ContextReader().read(tmp_path / "a", "swarm1", since=None, now=NOW, known=known) == read(tmp_path / "a")


class _History:
    def __init__(self, made: Profile, chance: random.Random) -> None:
        self.made, self.chance = made, chance
        self.session = made.session()
        self.at = 10.0
        self.calls = 0
        self.steps = [
            self.turn, self.turn, self.turn, self.logged, self.compacted, self.rotated, self.undone,
            self.swapped, self.pruned, self.checkpointed, self.restarted_wal, self.configured, self.ended,
        ]  # fmt: skip

    def _say(self, owner: sqlite3.Connection, role: str, content: str) -> None:
        self.at += 1
        owner.execute(
            "INSERT INTO messages (session_id, role, content, timestamp, finish_reason, token_count) "
            "VALUES (?, ?, ?, ?, 'stop', ?)",
            (self.session, role, content, EPOCH + self.at, self.chance.choice([None, 7, 40_000])),
        )

    def turn(self, owner: sqlite3.Connection) -> None:
        self._say(owner, "user", "a question " * self.chance.randrange(1, 40))
        self._say(owner, "assistant", "an answer " * self.chance.randrange(1, 40))

    def logged(self, owner: sqlite3.Connection) -> None:
        self.calls += 1
        self.made.log(call(self.calls, self.chance.randrange(5_000, 90_000), self.at + 0.5, session=self.session))
        self._say(owner, "assistant", "an answer that was logged")

    def compacted(self, owner: sqlite3.Connection) -> None:
        owner.execute("UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ?", (self.session,))
        self._say(owner, "user", SUMMARY)
        if self.chance.random() < 0.5:
            self.made.log(compaction_done(self.at, self.session))

    def rotated(self, owner: sqlite3.Connection) -> None:
        self.at += 1
        ended = (EPOCH + self.at, self.session)
        owner.execute("UPDATE sessions SET ended_at = ?, end_reason = 'compression' WHERE id = ?", ended)
        parent, self.session = self.session, f"session-{self.at:.0f}"
        owner.execute(
            "INSERT INTO sessions (id, source, started_at, parent_session_id) VALUES (?, 'cli', ?, ?)",
            (self.session, EPOCH + self.at, parent),
        )
        self._say(owner, "user", SUMMARY)

    def undone(self, owner: sqlite3.Connection) -> None:
        newest = "SELECT max(id) FROM messages WHERE session_id = ? AND active = 1"
        owner.execute(f"UPDATE messages SET active = 0 WHERE id = ({newest})", (self.session,))  # noqa: S608

    def swapped(self, owner: sqlite3.Connection) -> None:
        """One row is undone and another is taken back: as many as before, and the newest is the same."""
        newest = "SELECT max(id) FROM messages WHERE session_id = :s"
        at = f"SELECT id FROM messages WHERE session_id = :s AND compacted = 0 AND active = :a AND id < ({newest})"  # noqa: S608
        out, back = (owner.execute(at, {"s": self.session, "a": live}).fetchall() for live in (1, 0))
        if out and back:
            owner.execute("UPDATE messages SET active = 0 WHERE id = ?", self.chance.choice(out))
            owner.execute("UPDATE messages SET active = 1 WHERE id = ?", self.chance.choice(back))

    def pruned(self, owner: sqlite3.Connection) -> None:
        oldest = "SELECT min(id) FROM messages WHERE session_id = ?"
        owner.execute(f"DELETE FROM messages WHERE id = ({oldest})", (self.session,))  # noqa: S608

    def checkpointed(self, owner: sqlite3.Connection) -> None:
        owner.commit()
        owner.execute(f"PRAGMA wal_checkpoint({self.chance.choice(['PASSIVE', 'RESTART', 'TRUNCATE'])})")

    def restarted_wal(self, owner: sqlite3.Connection) -> None:
        """The next write goes to the beginning of the same -wal, whose size stays as it was."""
        owner.commit()
        owner.execute("PRAGMA wal_checkpoint(RESTART)")
        self.turn(owner)

    def configured(self, _owner: sqlite3.Connection) -> None:
        size = self.chance.choice([100_000, 200_000, 400_000])
        (self.made.folder / "config.yaml").write_text(f"model: {{default: m, context_length: {size}}}\n")

    def ended(self, owner: sqlite3.Connection) -> None:
        self.at += 1
        owner.execute(
            "UPDATE sessions SET ended_at = ?, end_reason = 'new' WHERE id = ?", (EPOCH + self.at, self.session)
        )
        self.session = f"session-{self.at:.0f}"
        row = (self.session, EPOCH + self.at)
        owner.execute("INSERT INTO sessions (id, source, started_at) VALUES (?, 'cli', ?)", row)
