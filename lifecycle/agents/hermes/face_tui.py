"""The terminal interface, `hermes chat --tui`: title, status line and cursor together tell the state.

```
 ─ ready │ stub model │ 15.6k/200k │ [█░░░░░░░░░] 8% │ 12s │ ✓ 0s │ voice off │ 1 session      ─ FOLDER
 swarm1 ❯ Try "refactor the auth module"
```
Each of the three lies alone: the title is calm while starting, in /compress and in every menu; the status in menus
and in a refused process; the cursor while starting, busy and in /compress.
"""

from __future__ import annotations

import re

from lifecycle.agents.hermes.seen import PROMPTS, Seen, cells, question_in
from lifecycle.screen import PaneState, Screen

CALM, BUSY, ASKS = "✓", "⏳", "⚠"
"""How the pane's title begins."""

STARTS = ("summoning", "forging", "starting")
WAITS_FOR_HUMAN = ("approval needed", "waiting for input", "sudo password needed", "secret input needed")
BUSY_HINT = "Ctrl+C to interrupt…"

_STATUS = re.compile(r" ─ (?P<fields>.+? │ .*)")
_PLACEHOLDER = re.compile(r'Ask me anything…|Try ".+"(?: for commands)?')
"""One of seven, picked at each start and shown until the first message."""

STALE = "running…"
"""Now and then the status still says this long after a turn: the face missed its own last redraw."""

_SINCE_TURN = re.compile(r"✓ (?:\d+[hm] ?)*(?P<seconds>\d+)s|✓ \d+[hm]")
"""How long the last turn is over. During a turn the field is not there."""

SETTLED_SECONDS = 2

_BACKGROUND = re.compile(r"│ (?:⛓ ?\d|\d+ bg\b)")
"""A delegate, a background turn. Background processes are not shown."""


def read(profile_name: str, screen: Screen) -> Seen:
    """Read one screen of a living TUI agent that is not in copy mode."""
    lines = screen.text.split("\n")
    at = max((index for index, line in enumerate(lines) if _STATUS.match(line)), default=None)
    above = lines if at is None else lines[:at]
    seen = _state(profile_name, screen, lines, at)
    if seen.state is PaneState.DIALOG:
        return Seen(state=PaneState.DIALOG, dialog=question_in(_question(lines)))
    background = at is not None and bool(_BACKGROUND.search(lines[at]))
    return seen.model_copy(update={"background": background, "transcript": _without_edge(above)})


def _state(profile_name: str, screen: Screen, lines: list[str], at: int | None) -> Seen:
    if not screen.alternate_on:
        return Seen(state=PaneState.STARTING)
    if screen.title.startswith(ASKS):
        return Seen(state=PaneState.DIALOG)
    typed = _typed(profile_name, lines, 0 if at is None else at + 1)
    if at is None:
        return Seen(state=_without_status(screen, lines, typed), typed=typed or "")
    status, *rest = [field.strip() for field in lines[at][3:].split("│")]
    if status.startswith(STARTS):
        return Seen(state=PaneState.STARTING)
    if "ompacting" in status or "ompress" in status:
        return Seen(state=PaneState.COMPACTING)
    if status.startswith(WAITS_FOR_HUMAN):
        return Seen(state=PaneState.DIALOG)
    if status == "ready" and rest[0] == "":
        return Seen(state=PaneState.REFUSED)
    if typed is None:
        return Seen(state=PaneState.DIALOG if screen.cursor_x == 0 else PaneState.UNKNOWN)
    free = _is_free(profile_name, screen, typed)
    if screen.title.startswith(BUSY):
        return Seen(state=PaneState.BUSY, typed="" if free else typed)
    if screen.title.startswith(CALM) and (status == "ready" or (status == STALE and _is_over(rest, typed))):
        if screen.cursor_x == 0:  # a menu that leaves the composer on the screen
            return Seen(state=PaneState.DIALOG)
        return Seen(state=PaneState.READY) if free else Seen(state=PaneState.TYPED, typed=typed)
    return Seen(state=PaneState.UNKNOWN)


def _is_over(fields: list[str], typed: str) -> bool:
    """Whether the turn has ended although the status says that it runs; with a calm title, two signs more."""
    since = next((match for field in fields if (match := _SINCE_TURN.fullmatch(field))), None)
    if since is None or typed == BUSY_HINT:
        return False
    long_ago = since["seconds"] is None or "m" in since[0] or "h" in since[0]
    return long_ago or int(since["seconds"]) >= SETTLED_SECONDS


def _is_free(profile_name: str, screen: Screen, typed: str) -> bool:
    """Whether the composer holds nothing but a hint of the face's own: the cursor stands right behind the prompt."""
    prompt_ends = {cells(f" {profile_name} ❯ "), cells(" ❯ ")}
    if screen.cursor_x not in prompt_ends or screen.cursor_y != screen.height - 1:
        return False
    return typed in {"", BUSY_HINT} or bool(_PLACEHOLDER.fullmatch(typed))


def _without_status(screen: Screen, lines: list[str], typed: str | None) -> PaneState:
    """The status line is covered: by the completion menu above a composer with text, or by a menu."""
    boxed = any("╚══" in line for line in lines)
    if boxed and typed and screen.cursor_x > 0:
        return PaneState.TYPED
    if boxed or (screen.title.startswith((CALM, BUSY)) and screen.cursor_x == 0):
        return PaneState.DIALOG
    return PaneState.UNKNOWN if screen.title.startswith((CALM, BUSY)) else PaneState.STARTING


def _typed(profile_name: str, lines: list[str], start: int) -> str | None:
    """The composer's text; None where no composer is drawn. It stands on the screen's last rows."""
    prompt = re.compile(rf" (?:{re.escape(profile_name)} )?[{re.escape(PROMPTS)}](?: (?P<text>.*))?")
    found = [(index, match) for index, line in enumerate(lines) if index >= start and (match := prompt.fullmatch(line))]
    if not found:
        return None
    index, match = found[0] if start else found[-1]
    return "\n".join([match["text"] or "", *(line.strip() for line in lines[index + 1 :])]).strip()


def _question(lines: list[str]) -> list[str]:
    """The lines of the open box, or of a question without one."""
    boxed = [line for line in lines if line.strip().startswith("║")]
    if boxed:
        return [line.partition("║")[2].partition("║")[0] for line in boxed]
    start = max((index for index, line in enumerate(lines) if line.startswith(" ask ")), default=None)
    if start is None:
        return [line for line in lines if line][-8:]
    return [line for line in lines[start:] if not _STATUS.match(line)]


def _without_edge(lines: list[str]) -> tuple[str, ...]:
    """The transcript without its scroll bar."""
    return tuple(line.rstrip("┃║ ") for line in lines)
