"""Memory events in the reference system's format: what a worker's own memory tells of its renewals.

`SUMMARY.md` is left alone: a line for every request pushed the objective out of the part that the reference
system shows to a fresh session (W-17).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from lifecycle import durable
from lifecycle.errors import MemoryNotWritten
from lifecycle.foreign_text import cleaned
from lifecycle.mission import is_mission_id
from lifecycle.paths import WorkerPaths
from lifecycle.redaction import redact

Kind = Literal["handoff-requested", "handoff-written", "resume", "blocked"]


def append_event(
    paths: WorkerPaths,
    *,
    kind: Kind,
    summary: str,
    mission_id: str | None,
    assignment_id: str | None,
    event: Mapping[str, JsonValue],
    at: datetime,
) -> None:
    """Append the event to the day's episode, and with a mission to its `events.jsonl`. Secrets are redacted.

    Raises:
        MemoryNotWritten: a file cannot be written, or the mission id cannot name a folder. The message names it.
    """
    at = at.astimezone(UTC)
    summary = " ".join(redact(cleaned(summary)).split())
    day = paths.memory / "episodes" / f"{at:%Y-%m-%d}.md"
    entry = [f"\n## {at:%H:%M} UTC — {kind}\n"]
    entry += [f"- Mission: {mission_id}\n"] if mission_id else []
    entry += [f"- Assignment: {assignment_id}\n"] if assignment_id else []
    entry += [f"- Summary: {summary}\n"]
    append_text(paths, day, "".join(entry), title=f"# Episodes — {paths.worker_id} — {at:%Y-%m-%d}\n\n")
    if not mission_id:
        return
    if not is_mission_id(mission_id):
        msg = f"mission id {mission_id!r} of {paths.worker_id} cannot name a folder"
        raise MemoryNotWritten(msg, worker_id=paths.worker_id)
    line = {
        "at": f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z",
        "type": kind,
        "workerId": paths.worker_id,
        "missionId": mission_id,
        "assignmentId": assignment_id,
        "summary": summary,
        "event": {key: redact(value) if isinstance(value, str) else value for key, value in event.items()},
    }
    events = paths.memory / "missions" / mission_id / "events.jsonl"
    append_text(paths, events, json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def append_text(paths: WorkerPaths, path: Path, text: str, *, title: str = "") -> None:
    """Append in one write, on a line of its own: what a full disk left of the last entry stays apart (D1).

    Raises:
        MemoryNotWritten
    """
    try:
        durable.make_private(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            lead = "\n" if torn else title if size == 0 else ""
            durable.write_all(descriptor, (lead + text).encode("utf-8", "replace"))
        finally:
            os.close(descriptor)
    except OSError as error:
        msg = f"{path}: the event cannot be written: {error.strerror}"
        raise MemoryNotWritten(msg, worker_id=paths.worker_id) from error
