from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from lifecycle.agents.hermes.conversation import conversation
from lifecycle.agents.hermes.database import BUSY_SECONDS
from lifecycle.agents.hermes.past import past_sessions
from lifecycle.agents.hermes.reading import ContextReader
from lifecycle.agents.hermes.trail import trail
from lifecycle.agents.hermes.transcript import newest_row
from lifecycle.agents.hermes.turn import turn
from lifecycle.errors import ContextUnreadable
from lifecycle.policy import Policy
from lifecycle.reading import ContextState
from lifecycle.trail import LargeRule
from tests.lifecycle.hermes.hermes_profile import NOW, Profile, copied, read

LOCKER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""

OWNER = """
import sqlite3, sys
path, rows = sys.argv[1], 0
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA wal_autocheckpoint = 0")
for order in sys.stdin:
    if order == "quit\\n":
        break
    connection.execute("INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'x', 1)", ["s"])
    rows += 1
    # A header check like this one cancels the owner's own locks: the case that lost databases.
    with open(path, "rb") as file:
        file.read(100)
    print(rows, flush=True)
print(connection.execute("SELECT count(*) FROM messages WHERE session_id = 's'").fetchone()[0], flush=True)
connection.close()
"""


@contextmanager
def process(code: str, path: Path) -> Iterator[Callable[[str], str]]:
    """Another program that owns the database; calling it sends a line and returns the answer."""
    running = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert running.stdin is not None
    assert running.stdout is not None
    stdin, stdout = running.stdin, running.stdout

    def tell(order: str) -> str:
        if order:
            stdin.write(f"{order}\n")
            stdin.flush()
        return stdout.readline().strip()

    try:
        yield tell
    finally:
        stdin.close()
        stdout.close()
        try:
            running.wait(60)
        finally:
            running.kill()


def test_w5_q2_a_locked_database_is_unknown_and_known_again_later(tmp_path: Path) -> None:
    profile = copied("live_15turns.db", tmp_path)
    with closing(sqlite3.connect(profile / "state.db")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    with process(LOCKER, profile / "state.db") as tell:
        assert tell("") == "locked"
        begun = time.monotonic()
        reading = read(profile)
        assert time.monotonic() - begun < BUSY_SECONDS + 20  # W-8
        assert reading.state(Policy()) is ContextState.UNKNOWN
        assert "is locked by another program" in str(reading.error)
    assert read(profile).error is None


def test_q1_a_thousand_polls_leave_the_wal_of_a_writing_agent_alone(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    profile.session("s")
    wal = tmp_path / "state.db-wal"
    reader = ContextReader(len)
    with process(OWNER, profile.path) as tell:
        assert tell("write") == "1"
        inode = wal.stat().st_ino
        for poll in range(1_000):
            if poll % 100 == 0:
                tell("write")
            before = hashlib.sha256(wal.read_bytes()).hexdigest()
            reading = reader.read(tmp_path, "swarm1", since=None, now=NOW)
            state = turn(tmp_path, "swarm1", since=None, now=NOW)
            assert (reading.error, reading.newest_row) == (None, 2 + poll // 100)
            assert state.newest_row == newest_row(tmp_path, "swarm1") == reading.newest_row
            assert hashlib.sha256(wal.read_bytes()).hexdigest() == before
            assert wal.stat().st_ino == inode
        assert tell("quit") == "11"
    with closing(sqlite3.connect(profile.path)) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (11,)


def test_the_wal_beside_an_emptied_database_is_not_unlinked(tmp_path: Path) -> None:
    """SQLite takes it for a leftover and deletes it, also when it was told to open read-only."""
    profile = Profile(tmp_path)
    profile.session("s")
    wal = tmp_path / "state.db-wal"
    with process(OWNER, profile.path) as tell:
        assert tell("write") == "1"
        whole, inode, content = profile.path.read_bytes(), wal.stat().st_ino, wal.read_bytes()
        profile.path.write_bytes(b"")
        assert "is empty (zero bytes)" in (read(tmp_path).error or "")
        assert (wal.stat().st_ino, wal.read_bytes()) == (inode, content)
        profile.path.write_bytes(whole)
        assert read(tmp_path).error is None
        assert tell("quit") == "1"


def test_a_reading_changes_no_byte_of_the_profile(tmp_path: Path) -> None:
    for sample in ("live_15turns.db", "compress_in_place.db", "truncated.db", "zero.db"):
        profile = copied(sample, tmp_path / sample, log=sample == "live_15turns.db")
        before = {file: file.read_bytes() for file in profile.rglob("*") if file.is_file()}
        read(profile)
        assert {file: file.read_bytes() for file in before} == before
        new = {file.name for file in profile.rglob("*") if file.is_file()} - {file.name for file in before}
        assert new <= {"state.db-shm", "state.db-wal"}


def test_no_connection_outlives_a_reading(tmp_path: Path) -> None:
    profile = copied("live_15turns.db", tmp_path)
    reader = ContextReader(len)
    for _ in range(20):
        reader.read(profile, "swarm1", since=None, now=NOW)
        assert not [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink() and _is_ours(link, profile)]


def _is_ours(link: Path, profile: Path) -> bool:
    try:
        return str(link.readlink()).startswith(str(profile))
    except OSError:
        return False


@pytest.mark.parametrize("at", [1.7e12, 1.7e18, float("inf"), "soon", b"\xff"])
def test_rows_with_a_time_that_is_none_are_unreadable_and_break_no_sweep(tmp_path: Path, at: object) -> None:
    """A row that another program wrote, in milliseconds or worse: the worker is unknown, the others are looked at."""
    profile = Profile(tmp_path)
    profile.session()
    profile.say("user", "count the plums", 1)
    row = profile.say("assistant", "seven", 2)
    profile.run("UPDATE messages SET timestamp = ? WHERE id = ?", at, row)
    assert read(tmp_path).state(Policy()) is ContextState.UNKNOWN
    looks: tuple[Callable[[], object], ...] = (
        lambda: turn(tmp_path, "swarm1", since=None, now=NOW),
        lambda: conversation(tmp_path, "swarm1", since=None),
        lambda: trail(tmp_path, "swarm1", session_id=None, since=None, large=LargeRule(over=9, most=9)),
        lambda: past_sessions(tmp_path, "swarm1"),
    )
    for look in looks:
        with pytest.raises(ContextUnreadable, match=r"state\.db holds what the agent does not write"):
            look()


def test_half_a_surrogate_pair_in_a_message_of_several_parts_can_be_kept(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    profile.session()
    profile.say("user", '\0json:[{"type": "text", "text": "count \\ud83d plums"}]', 1)
    assert conversation(tmp_path, "swarm1", since=None).model_dump_json()
