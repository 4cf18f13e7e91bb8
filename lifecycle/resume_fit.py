"""Whether a new session took up what its handoff left off: its checkpoint is held against the handoff. Pure."""

from __future__ import annotations

import re

from lifecycle.checkpoint import Checkpoint, State
from lifecycle.identifiers import identifiers_in
from lifecycle.proofs import ResumeFit
from lifecycle.resumption import LAST_WORDS, Resumption

SAME_STEP = 0.34
"""So much of the shorter of the two next actions stands in the other one: a model tells a step in its own words."""

FEWEST = 2
"""So many words at least: a single one may be any file's name."""

_WORD = re.compile(r"[a-z0-9_]{3,}")
_CHINESE = re.compile(r"[\u3400-\u9fff]+")
_EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the and for with from that this then than into next exact action step work will now first file files all any"
        " not are was were has have its our your you task continue handoff read",
    )
)
_BECAUSE = re.compile(r"\b(?:because|since|instead|turned out|found that)\b|因为|由于|改为|发现", re.IGNORECASE)
_CHANGED = re.compile(
    r"\b(?:already|changed|differs?|contradicts?|blocked|missing|no longer|verif(?:y|ied) first"
    r"|before (?:that|repeating))\b|已经|不再|先(?:核实|验证|确认)",
    re.IGNORECASE,
)
"""What explains another step: anywhere, and where the next action or the blocker says so."""

_WAITS = re.compile(
    r"\b(?:wait(?:s|ing)?|await(?:s|ing)?|orders?|instructions?|answer|approval|re-?ground|nothing|none)\b"
    r"|等待|指示|确认|回答|无",
    re.IGNORECASE,
)


def fit_of(answer: Checkpoint, handoff: Checkpoint, *, resumption: Resumption = Resumption.GO_ON) -> ResumeFit:
    """Proved where the answer names the same step and no other files, or says why not."""
    if resumption is not Resumption.GO_ON:
        return _waiting(answer, handoff, resumption)
    same_step = overlap(handoff.next_action, f"{answer.next_action}\n{answer.result}") >= SAME_STEP
    other_files = _other_files(answer, handoff)
    if same_step and not other_files:
        return ResumeFit(verdict="proved", why="the same step, and no other files")
    missed = "another step" if not same_step else "other files"
    reason = _reason(answer)
    if reason:
        return ResumeFit(verdict="proved", why=f"{missed}, with a stated reason: {reason}")
    return ResumeFit(verdict="weak", why=f"{missed} than the handoff, and no reason is stated")


def overlap(one: str, other: str) -> float:
    """The share of the words of *one* that stand in *other*, or the other way round, whichever is more."""
    first, second = _words(one), _words(other)
    if not first or not second:
        return 0.0
    common, shorter = len(first & second), min(len(first), len(second))
    return common / shorter if common >= min(FEWEST, shorter) else 0.0


def _waiting(answer: Checkpoint, handoff: Checkpoint, resumption: Resumption) -> ResumeFit:
    """One that was told to wait says so, or at least does nothing of its own."""
    rests = answer.state in {State.NEEDS_INPUT, State.BLOCKED, State.DONE}
    told = overlap(f"{LAST_WORDS[resumption]} {handoff.next_action}", answer.next_action) >= SAME_STEP
    if rests or told or _WAITS.search(answer.next_action) or _reason(answer):
        return ResumeFit(verdict="proved", why="it waits, as it was told")
    return ResumeFit(verdict="weak", why=f"it was to wait ({resumption}), and names a step of its own")


def _words(text: str) -> set[str]:
    found = {word for word in _WORD.findall(text.lower()) if word not in _EMPTY_WORDS}
    for run in _CHINESE.findall(text):
        found |= {run[at : at + 2] for at in range(len(run) - 1)}
    return found


def _other_files(answer: Checkpoint, handoff: Checkpoint) -> bool:
    """Whether both name files, and not one of them is the same."""
    ours, theirs = _files(handoff.files_changed), _files(answer.files_changed)
    return bool(ours and theirs) and not ours & theirs


def _files(text: str) -> set[str]:
    return {one.text.rstrip("/").rpartition("/")[2] for one in identifiers_in(text) if one.kind == "path"}


def _reason(answer: Checkpoint) -> str:
    for field in (answer.next_action, answer.blocker, answer.note, answer.result):
        found = _BECAUSE.search(field) or (_CHANGED.search(field) if field is not answer.result else None)
        if found:
            return " ".join(field[max(0, found.start() - 60) : found.end() + 100].split())
    stated = answer.blocker.strip().strip(".").lower()
    return "" if stated in {"", "none", "no", "n/a", "nothing", "无"} else " ".join(answer.blocker.split())[:160]
