"""Profiles of the Hermes Agent for tests: copies of samples, and databases made with its own schema."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from lifecycle.agents.hermes.reading import ContextReader
from lifecycle.reading import ContextReading

SAMPLES = Path(__file__).parents[2] / "data" / "hermes"
EPOCH = 1_796_000_000.0
"""When the made sessions begin."""
NOW = datetime.fromtimestamp(EPOCH + 1_000, UTC)
MAIN = "20261129_101010_aaaaaa"


def copied(sample: str, folder: Path, *, log: bool = False) -> Path:
    """A profile with a copy of the sample as its state.db."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(SAMPLES / sample, folder / "state.db")
    shutil.copy(SAMPLES / "config.yaml", folder / "config.yaml")
    if log:
        (folder / "logs").mkdir()
        shutil.copy(SAMPLES / "live_15turns.agent.log", folder / "logs" / "agent.log")
    return folder


def read(profile: Path, *, since: datetime | None = None, overhead: int | None = None) -> ContextReading:
    return ContextReader().read(profile, "swarm1", since=since, now=NOW, overhead=overhead)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(EPOCH + seconds, UTC)


class Profile:
    """A profile whose state.db has Hermes's own tables; every write is committed at once."""

    def __init__(self, folder: Path, *, without: Iterable[str] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / "state.db"
        self._without = set(without)
        tables = ("sessions", "messages", "compression_locks", "async_delegations")
        dropped = [column.partition(".")[2] for column in self._without]
        with closing(sqlite3.connect(f"file:{SAMPLES / 'live_15turns.db'}?mode=ro", uri=True)) as sample:
            made = "SELECT sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL AND type = ?"
            found = [
                sql
                for kind in ("table", "index")
                for name in tables
                for (sql,) in sample.execute(made, (name, kind))
                if kind == "table" or not any(column in sql for column in dropped)
            ]
        for statement in found:
            self.run(statement)
        for column in self._without:
            table, _, name = column.partition(".")
            self.run(f"ALTER TABLE {table} DROP COLUMN {name}")

    def run(self, sql: str, *parameters: object) -> int:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return connection.execute(sql, parameters).lastrowid or 0

    def session(self, session_id: str = MAIN, at: float = 0, **columns: object) -> str:
        """Add a session that begins *at* seconds after the epoch."""
        row = {"id": session_id, "source": "cli", "started_at": EPOCH + at, "model": "stub-model", **columns}
        self._insert("sessions", row)
        return session_id

    def delegate(self, session_id: str, at: float, parent: str = MAIN, **columns: object) -> str:
        config = json.dumps({"_delegate_from": parent})
        return self.session(session_id, at, source="subagent", parent_session_id=parent, model_config=config, **columns)

    def say(self, role: str, content: object, at: float, session_id: str = MAIN, **columns: object) -> int:
        """Add a message; an assistant's closes its turn unless told otherwise."""
        finish = {"finish_reason": "stop"} if role == "assistant" else {}
        row = {"session_id": session_id, "role": role, "content": content, "timestamp": EPOCH + at, **finish, **columns}
        return self._insert("messages", row)

    def compact(self, at: float, kept: list[tuple[str, str]], session_id: str = MAIN) -> None:
        """What archive_and_compact does: archive all live rows, insert the kept ones a microsecond apart."""
        self.run("UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1", session_id)
        for number, (role, content) in enumerate(kept):
            self.say(role, content, at + number * 1e-6, session_id)

    def log(self, *lines: str, name: str = "agent.log") -> Path:
        (self.folder / "logs").mkdir(exist_ok=True)
        path = self.folder / "logs" / name
        with path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        return path

    def _insert(self, table: str, row: dict[str, object]) -> int:
        row = {name: value for name, value in row.items() if f"{table}.{name}" not in self._without}
        marks = ", ".join("?" for _ in row)
        return self.run(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", *row.values())  # noqa: S608


SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below."
START = "hermes_cli.plugins: Plugin discovery complete: 53 found, 46 enabled"


def line(at: float, text: str, *, level: str = "INFO", tag: str | None = None, zone: float = 0) -> str:
    """A line of agent.log, in local time plus *zone* seconds."""
    local = datetime.fromtimestamp(EPOCH + at + zone)  # noqa: DTZ006
    return f"{local:%Y-%m-%d %H:%M:%S},{local.microsecond // 1000:03d} {level} {f'[{tag}] ' if tag else ''}{text}"


def call(
    number: int, prompt: int, at: float, *, session: str = MAIN, cached: str = "", zone: float = 0, out: int = 7
) -> str:
    text = (
        f"agent.conversation_loop: API call #{number}: model=stub-model provider=custom in={prompt} out={out} "
        f"total={prompt + out} latency=0.2s{cached}"
    )
    return line(at, text, tag=session, zone=zone)


def compaction_done(at: float, session: str = MAIN) -> str:
    return line(
        at,
        f"agent.conversation_compression: context compression done: session={session} messages=22->12 "
        "rough_tokens=~14,081 awaiting_real_usage=true",
    )
