"""The classic face, `hermes chat --cli`: an input line between two rules at the end of the transcript.

```
 ⚕ stub-model │ 13.6K/200K │ [█░░░░░░░░░] 7% │ 19s │ ⏲ 0s │ ✓ 0s
──────────────────────────── (exactly as wide as the pane)
swarm1 ❯ text
────────────────────────────
```
Below 64 columns there is no lower rule and no symbol behind a state's icon. For a moment after a resize there are
no rules at all. The symbols are those of Hermes 0.19, cli.py `_get_tui_prompt_fragments`.
"""

from __future__ import annotations

import re

from lifecycle.agents.hermes.seen import PROMPTS, Seen, cells, cut_at, question_in
from lifecycle.screen import PaneState, Screen

NARROW = 64
TALLEST_INPUT = 8
"""Rows of the input line at most."""

BUSY = "⚕"
DIALOGS = frozenset("⚠?✎🔐🔑")
"""Approval or confirmation, clarify, an open question, sudo password, secret."""

BUSY_HINT = "msg=interrupt · "
TURN_CLOCK = "⏱"
"""In the status line while a turn runs; `⏲` when it has ended."""

_PROMPT = re.compile(rf"(?:(?P<lead>\S+) )?(?P<symbol>[{re.escape(PROMPTS)}])(?: (?P<text>.*))?")
_BACKGROUND = re.compile(r"│ [▶⛓] \d")
"""A background turn, a delegate. `⚙` is a background process: a server may run so for days, and hinders nobody."""

_CHOICE = re.compile(r"│ +❯ ")


def read(profile_name: str, screen: Screen) -> Seen:
    """Read one screen of a living cli agent that is not in copy mode."""
    lines = screen.text.split("\n")
    frame = _frame(lines, screen.width)
    if frame is None:
        return Seen(state=PaneState.UNKNOWN if screen.alternate_on else PaneState.STARTING)
    top, bottom = frame
    above, rows = lines[:top], lines[top + 1 : bottom]
    prompt = _PROMPT.fullmatch(rows[0])
    lead = (prompt["lead"] or "" if prompt else rows[0].split(" ")[0]).rstrip("\ufe0f")
    status = _status(above)
    background = bool(_BACKGROUND.search(status))
    if prompt is None and len(rows) == TALLEST_INPUT:  # long text: the row with the prompt is scrolled out of sight
        state = PaneState.BUSY if TURN_CLOCK in status else PaneState.TYPED
        return Seen(state=state, typed="\n".join(rows).strip(), background=background, transcript=tuple(above))
    if lead in DIALOGS:
        return Seen(state=PaneState.DIALOG, dialog=question_in(_box(above)) or rows[0])
    if lead and "\u2800" <= lead[0] <= "\u28ff":  # a spinner: a slash command runs, and nothing can be typed
        compresses = "ompress" in rows[0]
        return Seen(state=PaneState.COMPACTING if compresses else PaneState.UNKNOWN, transcript=tuple(above))
    if lead == BUSY:
        typed = _typed(rows, prompt, screen, lines, bottom)
        return Seen(
            state=PaneState.BUSY,
            typed="" if typed.startswith(BUSY_HINT) else typed,
            background=background,
            transcript=tuple(above),
        )
    if prompt is None or lead not in {"", profile_name}:
        return Seen(state=PaneState.UNKNOWN, transcript=tuple(above))
    if menu := _menu(above):
        return Seen(state=PaneState.DIALOG, dialog=question_in(menu))
    typed = _typed(rows, prompt, screen, lines, bottom)
    return Seen(
        state=PaneState.TYPED if typed or _has_blanks(rows, screen, lines, bottom) else PaneState.READY,
        typed=typed,
        background=background,
        transcript=tuple(above),
    )


def _frame(lines: list[str], width: int) -> tuple[int, int] | None:
    """Indexes of the rules above and below the input line; the end of the screen where there is no lower one."""
    rules = [index for index, line in enumerate(lines) if line == "─" * width]
    if width < NARROW:
        end = max((index + 1 for index, line in enumerate(lines) if line), default=0)
        return (rules[-1], end) if rules and 0 < end - rules[-1] - 1 <= TALLEST_INPUT else None
    if len(rules) < 2 or not 0 < rules[-1] - rules[-2] - 1 <= TALLEST_INPUT:
        return None
    return rules[-2], rules[-1]


def _status(above: list[str]) -> str:
    """The status line, which `/statusbar` can hide."""
    last = next((line for line in reversed(above) if line), "")
    return last if " │ " in last and not last.startswith("│") else ""


def _box(above: list[str]) -> list[str]:
    """The last framed box of the transcript."""
    starts = [index for index, line in enumerate(above) if line.startswith("╭")]
    if not starts:
        return []
    box = above[starts[-1] + 1 :]
    return box[: next((index for index, line in enumerate(box) if line.startswith("╰")), 0)]


def _menu(above: list[str]) -> list[str]:
    """The lines of an open menu, such as /model's: it hides the status line, and the prompt looks idle."""
    last = next((line for line in reversed(above) if line), "")
    box = _box(above) if last.startswith("╰") else []
    return box if any(map(_CHOICE.match, box)) else []


def _typed(rows: list[str], prompt: re.Match[str] | None, screen: Screen, lines: list[str], bottom: int) -> str:
    """What stands in the input line, without the grey suggestion that Hermes draws behind the cursor."""
    texts = [prompt["text"] or "" if prompt else rows[0].partition(" ")[2], *rows[1:]]
    margin = cells(rows[0]) - cells(texts[0])
    last = len(rows) - 1
    if _cursor_row(screen, lines) == bottom - 1 and (column := screen.cursor_x - (margin if last == 0 else 0)) > 0:
        texts[last] = cut_at(texts[last], column)
    return "\n".join(texts).strip()


def _has_blanks(rows: list[str], screen: Screen, lines: list[str], bottom: int) -> bool:
    """Whether an input line without a word in it holds spaces or empty lines."""
    if len(rows) > 1:
        return True
    prompt_width = cells(rows[0]) + 1
    return _cursor_row(screen, lines) == bottom - 1 and screen.cursor_x > prompt_width


def _cursor_row(screen: Screen, lines: list[str]) -> int:
    """The cursor's index in *lines*, counted from below: wrapped lines, joined in the text, stand further up."""
    return screen.cursor_y - (screen.height - len(lines))
