"""How the scripted agent behaves: read from `script.json` in its profile, again at every decision.

The file lies in the profile because a respawned agent inherits nothing else but HERMES_HOME.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Handoff = Literal[
    "good",
    "bad_then_good",  # small talk first; the correction or reminder is answered well
    "old_id",  # a complete checkpoint of another renewal
    "template",  # the lines of the request, unfilled
    "partial",  # without BLOCKER and NEXT_ACTION
    "bold",
    "no_file",  # a checkpoint, and no draft
    "thin",  # a draft of one sentence
    "silent",  # the turn never ends
    "mute",  # the turn ends without an assistant row, as after an API failure; *trouble* says why
    "dialog",  # an approval box opens; whoever answers it gets a good handoff
    "works_on",  # a good handoff, and then another turn of work
    "die",
]
Resume = Literal[
    "good",
    "bad_then_good",
    "wrong_id",
    "no_id",
    "done",
    "astray",  # a complete checkpoint that names another step and other files, and no reason
    "silent",
    "mute",
    "die",
]
Child = Literal[
    "none",
    "tool",  # ends with the agent
    "background",  # own session, recorded in processes.json as the agent's own
    "stray",  # own session, recorded nowhere
]


@dataclass(frozen=True, kw_only=True)
class Manners:
    """The knobs. Spans are seconds.

    *failed_starts*: so many starts, counted in `starts` in the profile, end at once with status 1.
    *lost_enters*: so many Enters do nothing. *lost_pastes*: so many pastes vanish. *deaf*: what is typed stays
    unread. *exit_seconds*: from a TERM or HUP to the end.
    *held*: a start or a turn that begins goes on until this is false: no test that does something meanwhile races with
    its end.
    *fails*: every turn is mute. *trouble* is what the provider said, drawn below a mute turn. *tokens_per_turn* is
    what a turn adds to a context that begins with *baseline*. *sessions* agents may live on one profile.
    """

    start_delay: float = 0.0
    never_ready: bool = False
    failed_starts: int = 0
    handoff: Handoff = "good"
    handoff_seconds: float = 0.1
    resume: Resume = "good"
    resume_seconds: float = 0.1
    turn_seconds: float = 0.1
    held: bool = False
    baseline: int = 15_000
    tokens_per_turn: int = 400
    context_length: int = 200_000
    ignore_signals: bool = False
    exit_seconds: float = 0.1
    child: Child = "none"
    lost_enters: int = 0
    lost_pastes: int = 0
    deaf: bool = False
    next_action: str = ""
    fails: bool = False
    trouble: str = ""
    sessions: int = 1


def read_manners(path: Path) -> Manners:
    """The script as it stands; the defaults where there is none."""
    return Manners(**json.loads(path.read_text())) if path.exists() else Manners()


def write_manners(path: Path, manners: Manners) -> None:
    """Replace the script in one step, so that a running agent never reads half of it."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(asdict(manners)))
    fresh.replace(path)
