"""Workers that write their handoff by rule: all of it, all but a quarter, next to nothing, too much, or nothing."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tests.fidelity.facts import KINDS, Fact
from tests.fidelity.telling import Telling

Manner = Literal["ideal", "lossy", "thin", "verbose", "absent", "killed"]
LOST = 0.25
"""The share of the facts of each class that the lossy writer drops."""

SEEDS = 5
"""So many lossy writers, each with another seed."""

PADDING = 9_000
"""Tokens, about, of the verbose writer's prose: more than a pack has."""


@dataclass(frozen=True)
class Written:
    """What a worker answers. *left_over* is the file of an earlier handoff, where the worker writes none."""

    reply: str | None = None
    draft: str | None = None
    left_over: str | None = None


def write(manner: Manner, telling: Telling, *, seed: int = 0) -> Written:
    known = [fact for fact in telling.facts if fact.kind != "must_abstain"]
    action = telling.next_action
    match manner:
        case "ideal":
            return Written(_reply(telling, known, action), _draft(telling, known, action))
        case "lossy":
            kept = _without(known, seed)
            return Written(_reply(telling, kept, action), _draft(telling, kept, action))
        case "verbose":
            return Written(_reply(telling, known, action), _draft(telling, known, action, padded=True))
        case "thin":
            thin = telling.words["thin"]
            draft = f"{_title()}## Current state\n{thin}\n\n## Next exact action\n{action}\n"
            return Written(_block("none", "none", thin, "none", action), draft)
        case _:
            return Written(left_over=_draft(telling, telling.early, telling.early_action))


def _without(known: list[Fact], seed: int) -> list[Fact]:
    chance = random.Random(seed)  # noqa: S311 - no secret
    dropped: list[Fact] = []
    for kind in KINDS:
        of_kind = [fact for fact in known if fact.kind == kind]
        dropped += chance.sample(of_kind, math.ceil(len(of_kind) * LOST)) if of_kind else []
    return [fact for fact in known if fact not in dropped]


def _title() -> str:
    return "# Handoff — swarm1 — m-1\n\n"


def _draft(telling: Telling, known: Iterable[Fact], action: str, *, padded: bool = False) -> str:
    known = list(known)
    words = telling.words
    files, commands = _split(known)
    rules = [fact for fact in known if fact.kind == "rule"]
    sections = {
        "Current state": _lines(known, "recall"),
        "Objective": [telling.mission],
        "Completed": [f"- {words['done'].format(count=len(files))}", *_lines(known, "decision")],
        "In progress": _lines(known, "continuation"),
        "Files touched": [f"- {fact.told}" for fact in files],
        "Commands run": [f"- {fact.told}" for fact in commands],
        "Blockers": ["none"],
        "Next exact action": [action],
        "Resume prompt": [words["rules_title"], *(f"- {fact.told}" for fact in rules)],
    }
    if padded:
        paragraph = " ".join([words["padding"]] * 12)
        each = PADDING // 4 // 250 + 1
        for title in ("Current state", "Completed", "In progress", "Resume prompt"):
            lines = sections[title]
            sections[title] = [
                line for number in range(each) for line in (*lines[number::each], f"{number} {paragraph}")
            ]
    return _title() + "\n".join(f"## {title}\n" + "\n".join(lines) + "\n" for title, lines in sections.items())


def _reply(telling: Telling, known: Iterable[Fact], action: str) -> str:
    files, commands = _split(known)
    return _block(
        ", ".join(fact.needles[0] for fact in files) or "none",
        "; ".join(fact.told for fact in commands[:5]) or "none",
        telling.words["done"].format(count=len(files)),
        "none",
        action,
    )


def _block(files: str, commands: str, result: str, blocker: str, action: str) -> str:
    values = (
        ("STATE", "HANDOFF"),
        ("FILES_CHANGED", files),
        ("COMMANDS_RUN", commands),
        ("RESULT", result),
        ("BLOCKER", blocker),
        ("NEXT_ACTION", action),
    )
    return "\n".join(f"{label}: {value}" for label, value in values)


def _split(known: Iterable[Fact]) -> tuple[list[Fact], list[Fact]]:
    artefacts = [fact for fact in known if fact.kind == "artefact"]
    files = [fact for fact in artefacts if fact.needles[0].startswith("/")]
    return files, [fact for fact in artefacts if fact not in files]


def _lines(known: Iterable[Fact], kind: str) -> list[str]:
    return [f"- {fact.told}" for fact in known if fact.kind == kind]
