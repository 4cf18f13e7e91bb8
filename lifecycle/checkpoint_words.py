"""Words that stand where an answer should: what the template says, and next actions that name none."""

from __future__ import annotations

import re

from lifecycle.worker import LONGEST_ID, WORKER_ID

PLACEHOLDERS = frozenset(
    {
        "exact paths or none",
        "exact commands or none",
        "concrete result proof",
        "current state and what landed",
        "blocker or none",
        "exact recommended next action",
        "exact next step after renewal",
        "exact next step",
        "exact next action",
    }
)
"""What the reference system's prompts write after the labels. Afresh's own prompts put theirs in angle brackets."""

_MARKED = re.compile(r"<(?P<angle>[^<>\n]{0,200})>|\{\{[^{}\n]{0,200}\}\}|\$\{[^{}\n]{0,200}\}|\[?[.…_]{2,}\]?|…")
_NO_ACTION = frozenset(
    re.findall(
        r"\w+",
        """
        continue continuing proceed resume carry keep go going next same see wait waiting await awaiting stop
        none nothing nil null n a na nope no not tbd todo unknown
        please just will i we you it the an my our this that these as is be to of on in from with at for and then here
        there above below before previously planned usual left off where stopped was were work working works task tasks
        job mission assignment assigned implementation project renewal renewed session new exact action actions step
        steps further more else do done ahead needed required necessary remaining pending known currently now yet
        time any handoff checkpoint current after applicable
        """,
    )
)
"""A next action made of these words alone names no action."""
_ID = re.compile(r"[\s*_`\"'<(\[]{0,10}+(?P<id>[A-Za-z0-9][A-Za-z0-9._:-]{0,99})")
_LONGEST_VAGUE = 200


def is_placeholder(value: str) -> bool:
    """Whether *value* is what a template puts in the place of an answer."""
    if len(value) > _LONGEST_VAGUE:
        return False
    words = value.strip(" \t\n\"'`*_")
    if marked := _MARKED.fullmatch(words):
        return "://" not in (marked["angle"] or "")
    return " ".join(re.findall(r"[a-z]+", words.lower())) in PLACEHOLDERS


def is_vague(value: str) -> bool:
    """Whether *value* names no action: empty, none, n/a, continue with the task."""
    return len(value) <= _LONGEST_VAGUE and all(word in _NO_ACTION for word in re.findall(r"\w+", value.lower()))


def id_in(value: str) -> str:
    """The id that *value* begins with; empty if there is none, or words that stand for none."""
    found = _ID.match(value)
    if not found or is_placeholder(value) or is_vague(value):
        return ""
    return found["id"].rstrip(".:-")


def worker_in(value: str) -> str:
    """The worker that *value* names, alone or before a separator (`swarm2 — Builder`); a sentence names none."""
    named = id_in(value)
    after = value.partition(named)[2].lstrip(" \t*_`\"'>)]") if named else ""
    is_one = len(named) <= LONGEST_ID and WORKER_ID.fullmatch(named) and not after[:1].isalnum()
    return named if is_one else ""
