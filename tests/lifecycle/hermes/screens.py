"""Screens of the real Hermes Agent 0.19, recorded with tmux 3.3a in a pane of 200×50; folders renamed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from lifecycle.agents.hermes.face import look
from lifecycle.processes import Process, ProcessId
from lifecycle.screen import Face, PaneLook, Screen

FOLDER = Path(__file__).parents[2] / "data" / "screens"
PROFILE = "swarm1"


def agent(face: Face) -> Process:
    return Process(
        pid=4711,
        parent=1,
        started_at=datetime(2026, 11, 30, tzinfo=UTC),
        identity=ProcessId(pid=4711, started=1.0),
        command=("python3", "/opt/bin/hermes", "chat", f"--{face}"),
    )


def recorded(name: str) -> tuple[Screen, Face]:
    found = json.loads((FOLDER / f"{name}.json").read_text())
    return Screen.model_validate(found["screen"]), Face(found["face"])


def looked_at(name: str, **changes: object) -> PaneLook:
    """The look at a recorded screen, with *changes* to it."""
    screen, face = recorded(name)
    return look(PROFILE, screen.model_copy(update=changes), agent(face))
