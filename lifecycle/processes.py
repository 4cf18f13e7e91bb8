"""Adapter: process trees (psutil)."""

from __future__ import annotations

from datetime import datetime

from lifecycle.value import Value


class ProcessId(Value):
    """A process that can be recognised again: its pid with its start time (seconds since the epoch)."""

    pid: int
    started: float


class Process(Value):
    """One process, as far as it can be read."""

    pid: int
    parent: int
    started_at: datetime
    identity: ProcessId
    command: tuple[str, ...] = ()
    cwd: str | None = None
    environment: dict[str, str] = {}
