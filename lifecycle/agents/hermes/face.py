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
    r"\s*┊?\s*(?P<words>(?:❌|API call failed after \d|🔐.*\b401\b|Rate limited after \d|Billing or credits exhausted"
    r"|⏳ Nous Portal rate limit active|Non-retryable|HTTP [45]\d\d: ).*)"
)
"""Lines of agent/conversation_loop.py that end a turn without an answer; Hermes's own, at the start of a line."""

_ASKED = ("● ", " ❯ ")
_ANSWERED = "╭─ ⚕ Hermes"

_LAST_LINES = 30
_WRAPPED = 6
"""Rows of a notice that is too long for one."""


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
    """The words in which Hermes says why the last turn ended without an answer; empty where it does not.

    What a person or the worker wrote is passed over: both may well talk of a failed call or of a 401 (O1).
    """
    lines = _since_last_message(transcript[-_LAST_LINES:])
    at = max((index for index, line in enumerate(lines) if _TROUBLE.match(line)), default=None)
    if at is None:
        return ""
    match = _TROUBLE.match(lines[at])
    words = [match["words"].strip()] if match else []
    for line in lines[at + 1 : at + 1 + _WRAPPED]:
        if not line.startswith("    "):
            break
        words.append(line.strip())
    return " ".join(words)


def _since_last_message(lines: tuple[str, ...]) -> list[str]:
    """What stands behind the last message of the person, and behind the last answer in a box."""
    asked = max((index for index, line in enumerate(lines) if line.startswith(_ASKED)), default=-1)
    answered = max((index for index, line in enumerate(lines) if line.startswith(_ANSWERED)), default=-1)
    begin = max(asked, answered) + 1
    ends = "╰" if answered > asked else "─" * 10
    boxed = answered > asked or (asked >= 0 and lines[asked].startswith("● "))
    if boxed:
        closed = next((index for index in range(begin, len(lines)) if lines[index].startswith(ends)), len(lines))
        begin = closed + 1
    return list(lines[begin:])
