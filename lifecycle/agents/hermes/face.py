"""Which of Hermes's two faces a pane shows, and what it means. Each face has a module of its own."""

from __future__ import annotations

import re

from lifecycle.agents.hermes import face_cli, face_tui
from lifecycle.processes import Process
from lifecycle.screen import Face, PaneLook, PaneState, Screen

SETUP_QUESTION = "Run setup now? [Y/n]"
"""Asked where config.yaml is missing or broken; a bare Enter starts the wizard."""

SESSION_LIMIT = "Hermes is at the active session limit"
"""`max_concurrent_sessions` is reached: the cli exits, the TUI stays and looks ready."""

_TROUBLE = re.compile(
    r"(?:❌|API call failed after|🔐.*\b401\b|Rate limited after|Billing or credits exhausted|Non-retryable).*"
)
"""Lines of agent/conversation_loop.py that end a turn without an answer."""

_LAST_LINES = 30


def look(profile_name: str, screen: Screen, agent: Process | None) -> PaneLook:
    """What the pane of a Hermes worker means. Only a state that is proved is named; the rest is UNKNOWN.

    *agent* is the agent's process in the pane, None where there is none: then whatever the pane shows, a shell
    most likely, takes no text of ours.
    """
    shown = face_of(screen, agent)
    known = PaneLook(state=PaneState.UNKNOWN, screen=screen, face=shown, agent_pid=agent.pid if agent else None)
    if screen.dead:
        refused = SESSION_LIMIT in screen.text
        return known.model_copy(update={"state": PaneState.REFUSED if refused else PaneState.EXITED})
    if agent is None:
        return known.model_copy(update={"state": PaneState.NOT_AN_AGENT, "face": None})
    if screen.in_mode:
        return known.model_copy(update={"state": PaneState.COPY_MODE})
    if not screen.alternate_on and screen.tail(1).startswith(SETUP_QUESTION):
        return known.model_copy(update={"state": PaneState.SETUP, "dialog": SETUP_QUESTION})
    read = face_tui.read if shown is Face.TUI else face_cli.read
    seen = read(profile_name, screen)
    if seen.state is PaneState.REFUSED and SESSION_LIMIT not in screen.text:
        seen = seen.model_copy(update={"state": PaneState.STARTING})
    return known.model_copy(
        update={
            "state": seen.state,
            "typed": seen.typed,
            "dialog": seen.dialog,
            "background": seen.background,
            "notice": _notice(seen.transcript),
        }
    )


def face_of(screen: Screen, agent: Process | None) -> Face:
    """The face that the agent was started with; where its command leaves that open, the screen tells.

    Only the TUI draws on the alternate screen, and not yet in its first two seconds.
    """
    words = agent.command if agent else ()
    if "--cli" in words:
        return Face.CLI
    if "--tui" in words or (agent and agent.environment.get("HERMES_TUI") == "1"):
        return Face.TUI
    return Face.TUI if screen.alternate_on else Face.CLI


def _notice(transcript: tuple[str, ...]) -> str:
    """The line that says why the last turn ended without an answer; empty once a later one was answered."""
    for line in reversed(transcript[-_LAST_LINES:]):
        if trouble := _TROUBLE.search(line):
            return trouble[0].strip()
        if line.startswith(("╭─ ⚕ Hermes", "● ", " ❯ ")) or _is_answer(line):
            return ""
    return ""


def _is_answer(line: str) -> bool:
    return line.startswith(" ┊  ")
