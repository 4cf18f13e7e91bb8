"""Gathering a worker's orders from where they stand: mission ledger, runtime.json, roster, files, people's words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from lifecycle.conversation import Conversation, Entry, arguments_of
from lifecycle.foreign_text import bounded
from lifecycle.mission import Mission
from lifecycle.orders import LONGEST_REQUEST, SAID, Orders
from lifecycle.prompts import is_ours
from lifecycle.redaction import redact
from lifecycle.rules import MOST, Rule, merged, rules_in
from lifecycle.worker import Worker

PROFILE_FILES = ("SOUL.md", "IDENTITY.md", "USER.md", "MEMORY.md", "AGENTS.md", "RULES.md")
PROJECT_FILES = ("AGENTS.md", "CLAUDE.md", "HERMES.md", ".hermes.md", "RULES.md")
"""Where agents keep their rules: in their profile, and in the folder that they work in."""

LARGEST_FILE = 64 * 1024
LONGEST_SAID = (6_000, 2_000)
"""Characters of the two ends of a request that are searched for rules: what lies between is pasted."""

RULES_OF_A_REQUEST = 20
SKILLS = 8

_LOGGED = re.compile(r"^\s*(?:\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)\b)")


def gather(
    worker: Worker,
    mission: Mission,
    conversation: Conversation,
    *,
    cwd: Path | None = None,
    before: Orders | None = None,
) -> Orders:
    """The orders of *worker*, each with its source; *before* are those of the generation before, of which only what was
    said, in the same mission, still counts. A file that cannot be read gives none. The ledger keeps them, so they are
    redacted.
    """
    carried = before.carried() if before is not None and before.mission_id == mission.mission_id else Orders()
    requests = [entry for entry in conversation.requests if not is_ours(entry.text)]
    folders = [(worker.profile, PROFILE_FILES), *([(cwd, PROJECT_FILES)] if cwd is not None else [])]
    files = [folder / name for folder, names in folders for name in names if _is_there(folder / name)]
    # Said before, and said now: a rule that is said again stands where it was said last.
    said = _both_ends(merged(_latest_first(requests), reversed(carried.rules))[::-1])
    ledger = _redacted((*mission.rules, *rules_in(mission.task, "the assignment")))
    return Orders(
        mission_id=mission.mission_id,
        assignment_id=mission.assignment_id,
        title=redact(mission.title or (worker.roster_mission or "")),
        state=mission.state,
        assignment_state=mission.assignment_state,
        finished=is_finished(mission),
        task=redact(mission.task),
        given="" if mission.task else carried.given or _first(requests),
        rules=merged(ledger, said, *(_rules_of(path) for path in files)),
        greenlight=worker.greenlight_required_for,
        read_again=tuple(dict.fromkeys((*map(str, files), *_skills(worker, conversation)))),
    )


def is_finished(mission: Mission) -> bool:
    """Whether somebody closed the worker's mission: what is done is not resumed (aidevops #27978)."""
    return mission.mission_id is not None and not mission.is_open


def _first(requests: list[Entry]) -> str:
    return bounded(redact(requests[0].text.strip()), LONGEST_REQUEST, 500) if requests else ""


def _redacted(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple(rule.model_copy(update={"text": redact(rule.text)}) for rule in rules)


def _latest_first(requests: list[Entry]) -> Iterable[Rule]:
    for entry in reversed(requests):
        text = bounded(entry.text, *LONGEST_SAID)
        plain = "\n".join(line for line in text.split("\n") if not _LOGGED.match(line))
        found = rules_in(plain, f"{SAID} {entry.at:%Y-%m-%d %H:%M} UTC")[:RULES_OF_A_REQUEST]
        yield from reversed(_redacted(found))


def _both_ends(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The first ones stand for the whole work, the last ones for the present."""
    half = MOST // 2
    return rules if len(rules) <= MOST else (*rules[:half], *rules[-half:])


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _rules_of(path: Path) -> tuple[Rule, ...]:
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE).decode(errors="replace")
    except OSError:
        return ()
    return _redacted(rules_in(text, path.name))


def _skills(worker: Worker, conversation: Conversation) -> list[str]:
    """The files of the skills that the session loaded, newest first."""
    named = []
    for call in reversed(conversation.calls):
        name = arguments_of(call).get("name") if call.name.startswith("skill") else None
        if isinstance(name, str) and re.fullmatch(r"[\w][\w./-]{0,100}", name) and ".." not in name:
            found = worker.profile / "skills" / name / "SKILL.md"
            named.append(str(found) if _is_there(found) else f"the skill {name}")
    return list(dict.fromkeys(named))[:SKILLS]
