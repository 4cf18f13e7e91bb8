"""What a pane shows, and what an agent's face means by it."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime, timedelta
from enum import StrEnum

from lifecycle.value import Value

_MOVING = re.compile(r"[\d.…\s\u2800-\u28ff⠀|/\\◐-◿─-▟]+")
"""Digits, spinners and bars: they move while nothing happens."""


class Face(StrEnum):
    """The two faces of the Hermes Agent; another kind of agent names its own."""

    CLI = "cli"
    TUI = "tui"


class Screen(Value):
    """One pane, captured in one go.

    *text* is the visible screen with wrapped lines joined and trailing spaces kept off; *cursor_x* and
    *cursor_y* count from 0. *last_typed_at* is the newest activity of a client attached to the session.
    """

    session_id: str
    window_id: str
    pane_id: str
    pane_pid: int
    dead: bool = False
    exit_status: int | None = None
    in_mode: bool = False
    title: str = ""
    cursor_x: int = 0
    cursor_y: int = 0
    width: int = 80
    height: int = 24
    alternate_on: bool = False
    text: str = ""
    last_typed_at: datetime | None = None

    def tail(self, lines: int = 15) -> str:
        """The last non-empty lines, for evidence."""
        return "\n".join([line for line in self.text.splitlines() if line.strip()][-lines:])


class PaneState(StrEnum):
    """What a pane is doing. Only READY takes text; only QUEUEING faces take it while BUSY."""

    READY = "ready"
    TYPED = "typed"
    BUSY = "busy"
    COMPACTING = "compacting"
    DIALOG = "dialog"
    STARTING = "starting"
    SETUP = "setup"
    REFUSED = "refused"
    COPY_MODE = "copy_mode"
    EXITED = "exited"
    NOT_AN_AGENT = "not_an_agent"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class PaneLook(Value):
    """One look at a worker's pane.

    *typed* is the text in the input line, whole or as the face's own placeholder for a long paste.
    *background* says that a delegate, background turn or background process runs behind an idle input line.
    *notice* is a line of the agent's that matters to us (an API failure, a rate limit, a login banner).
    *unseen* is why tmux could not show the pane; its state is unknown then.
    """

    state: PaneState
    screen: Screen | None = None
    face: Face | None = None
    agent_pid: int | None = None
    typed: str = ""
    dialog: str = ""
    background: bool = False
    notice: str = ""
    unseen: str = ""

    def stillness(self, newest_row: int) -> str:
        """Stands for what the agent has shown so far. Clocks, spinners and its status line count for nothing."""
        text = self.screen.text if self.screen else ""
        words = "\n".join(line for line in text.splitlines() if " │ " not in line)
        return hashlib.sha256(f"{newest_row} {_MOVING.sub('', words)}".encode()).hexdigest()[:16]

    def was_typed_in_since(self, now: datetime, span: timedelta) -> bool:
        """Whether an attached client was active within *span* before *now*."""
        typed = self.screen.last_typed_at if self.screen else None
        return typed is not None and now - typed < span

    def evidence(self) -> str:
        return self.screen.tail() if self.screen else "(no pane)"
