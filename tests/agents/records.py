"""What the scripted agent leaves on disk, in the shapes of Hermes Agent 0.19.0: state.db, agent.log, its lease."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import subprocess
import time
from datetime import datetime
from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, session_key TEXT, display_name TEXT, model TEXT,
    model_config TEXT, system_prompt TEXT, parent_session_id TEXT REFERENCES sessions(id), started_at REAL NOT NULL,
    ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0, tool_call_count INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, cache_read_tokens INTEGER DEFAULT 0,
    cache_write_tokens INTEGER DEFAULT 0, reasoning_tokens INTEGER DEFAULT 0, cwd TEXT, billing_provider TEXT,
    billing_base_url TEXT, title TEXT, api_call_count INTEGER DEFAULT 0, handoff_state TEXT,
    compression_fallback_streak INTEGER NOT NULL DEFAULT 0, profile_name TEXT,
    rewind_count INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
    content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, effect_disposition TEXT,
    timestamp REAL NOT NULL, token_count INTEGER, finish_reason TEXT, reasoning TEXT, reasoning_content TEXT,
    reasoning_details TEXT, codex_reasoning_items TEXT, codex_message_items TEXT, platform_message_id TEXT,
    observed INTEGER DEFAULT 0, active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0,
    api_content TEXT);
CREATE TABLE IF NOT EXISTS compression_locks (
    session_id TEXT PRIMARY KEY, holder TEXT NOT NULL, acquired_at REAL NOT NULL, expires_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS async_delegations (
    delegation_id TEXT PRIMARY KEY, origin_session TEXT NOT NULL, origin_ui_session_id TEXT NOT NULL DEFAULT '',
    parent_session_id TEXT, state TEXT NOT NULL, dispatched_at REAL NOT NULL, completed_at REAL,
    updated_at REAL NOT NULL, owner_pid INTEGER, owner_started_at INTEGER);
CREATE INDEX IF NOT EXISTS idx_messages_session_active ON messages(session_id, active, timestamp);
"""
_SYSTEM_PROMPT = "You are Hermes Agent, an assistant with tools.\n" * 40


class Records:
    """The agent's own writing hand. Its session has no row before the first message, as with the real one."""

    def __init__(self, profile: Path, *, cwd: Path, model: str = "scripted-model") -> None:
        self.profile, self.cwd, self.model = profile, cwd, model
        self.session_id = f"{datetime.now().astimezone():%Y%m%d_%H%M%S}_{secrets.token_hex(3)}"
        self.calls = 0
        (profile / "logs").mkdir(parents=True, exist_ok=True)
        # autocommit: every row is there for a reader as soon as it is written
        self._db = sqlite3.connect(profile / "state.db", isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_SCHEMA)
        if self._db.execute("SELECT count(*) FROM schema_version").fetchone() == (0,):
            self._db.execute("INSERT INTO schema_version VALUES (22)")

    def user(self, text: str) -> None:
        self._open_session()
        flat = " ".join(text.split())
        shown = flat if len(flat) <= 80 else flat[:80] + "..."
        self.log(
            f"agent.turn_context: conversation turn: session={self.session_id} model={self.model} "
            f"provider=custom platform=cli history=0 msg={shown!r}"
        )
        self._row("user", text)

    def tool(self, name: str, arguments: dict[str, str], result: dict[str, object]) -> None:
        """A call and its result: two rows."""
        call_id = f"call_{secrets.token_hex(6)}"
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = [{"id": call_id, "call_id": call_id, "type": "function", "function": function}]
        self._row("assistant", "", finish_reason="tool_calls", tool_calls=json.dumps(calls))
        self._row("tool", json.dumps(result), tool_name=name, tool_call_id=call_id)
        self._db.execute("UPDATE sessions SET tool_call_count = tool_call_count + 1 WHERE id = ?", (self.session_id,))

    def assistant(self, text: str) -> None:
        self._row("assistant", text, finish_reason="stop")
        self.log(
            f"agent.conversation_loop: Turn ended: reason=text_response(finish_reason=stop) model={self.model} "
            f"api_calls=1/90 budget=1/90 tool_turns=0 last_msg_role=assistant response_len={len(text)} "
            f"session={self.session_id}"
        )

    def api_call(self, tokens: int, spoken: int) -> None:
        """One call of the model: the log line with its exact prompt size, and the counters."""
        self.calls += 1
        self.log(
            f"agent.conversation_loop: API call #{self.calls}: model={self.model} provider=custom in={tokens} "
            f"out={spoken} total={tokens + spoken} latency=0.1s"
        )
        self._db.execute(
            "UPDATE sessions SET api_call_count = api_call_count + 1, input_tokens = input_tokens + ?, "
            "output_tokens = output_tokens + ? WHERE id = ?",
            (tokens, spoken, self.session_id),
        )

    def log(self, line: str, *, in_session: bool = True) -> None:
        now = datetime.now().astimezone()
        stamp = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}"
        mark = f"[{self.session_id}] " if in_session else ""
        with (self.profile / "logs" / "agent.log").open("a") as log:
            log.write(f"{stamp} INFO {mark}{line}\n")

    def take_lease(self, cap: int) -> bool:
        """Whether this process may serve the profile beside the others that live: *cap* is the most that may."""
        path = self._lease
        entries = json.loads(path.read_text())["entries"] if path.exists() else []
        living = [entry for entry in entries if _lives(entry["pid"])]
        if len(living) >= cap:
            return False
        entry = {"pid": os.getpid(), "session_id": self.session_id, "surface": "cli", "started_at": time.time()}
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"entries": [*living, entry]}))
        return True

    def record_background(self, child: subprocess.Popen[bytes], command: str) -> None:
        ticks = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
        entry = {
            "session_id": f"proc_{secrets.token_hex(6)}",
            "command": command,
            "pid": child.pid,
            "pid_scope": "host",
            "host_start_time": ticks,
            "cwd": str(self.cwd),
            "started_at": time.time(),
        }
        (self.profile / "processes.json").write_text(json.dumps([entry]))

    def close(self) -> None:
        """The clean end: the session is closed and the lease given back."""
        self._db.execute(
            "UPDATE sessions SET ended_at = ?, end_reason = 'cli_close' WHERE id = ? AND ended_at IS NULL",
            (time.time(), self.session_id),
        )
        self._db.close()
        self._lease.write_text('{"entries": []}')

    @property
    def _lease(self) -> Path:
        return self.profile / "runtime" / "active_sessions.json"

    def _open_session(self) -> None:
        self._db.execute(
            "INSERT OR IGNORE INTO sessions (id, source, model, model_config, system_prompt, started_at, cwd, "
            "billing_provider, title, profile_name) VALUES (?, 'cli', ?, ?, ?, ?, ?, 'custom', NULL, ?)",
            (
                self.session_id,
                self.model,
                json.dumps({"max_iterations": 90, "reasoning_config": None, "max_tokens": None}),
                _SYSTEM_PROMPT,
                time.time(),
                str(self.cwd),
                self.profile.name,
            ),
        )

    def _row(
        self,
        role: str,
        content: str,
        *,
        finish_reason: str | None = None,
        tool_calls: str | None = None,
        tool_name: str | None = None,
        tool_call_id: str | None = None,
    ) -> None:
        self._db.execute(
            "INSERT INTO messages (session_id, role, content, timestamp, finish_reason, tool_calls, tool_name, "
            "tool_call_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (self.session_id, role, content, time.time(), finish_reason, tool_calls, tool_name, tool_call_id),
        )
        self._db.execute("UPDATE sessions SET message_count = message_count + 1 WHERE id = ?", (self.session_id,))


def _lives(pid: int) -> bool:
    """Whether the process still runs; one that has only not been reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
