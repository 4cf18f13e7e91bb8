"""What the scripted agent does in a turn, as a list of steps. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tests.agents.manners import Manners

FOREVER = 1e9
STALE_ID = "r-stale000"
_ORDERS = re.compile(r"\[\[(tokens|slow|dialog|saved)\s*([\d.]*)\]\]")


@dataclass(frozen=True)
class Step:
    """One act, *after* seconds.

    `mute` ends a turn without an assistant row, `wake` queues a turn of the agent's own, `await` lasts until a handoff
    was saved in the profile since the turn began, `hold` until the script lets go.
    """

    after: float
    act: Literal["write", "read", "work", "say", "mute", "wake", "await", "hold", "dialog", "die"]
    text: str = ""
    path: str = ""


def orders_in(text: str) -> dict[str, float]:
    return {name: float(value or 1) for name, value in _ORDERS.findall(text)}


def labelled(text: str, label: str) -> str:
    """The value of the first line `LABEL: value` that is no placeholder."""
    found = re.search(rf"^{label}:[ \t]*([^<\s].*)$", text, re.MULTILINE)
    return found.group(1).strip() if found else ""


def plan(text: str, manners: Manners, *, again: bool) -> list[Step]:
    """The steps of a turn. *again* says that this renewal was prompted in the same way before."""
    return [*([Step(0, "hold")] if manners.held else []), *_steps(text, manners, again)]


def _steps(text: str, manners: Manners, again: bool) -> list[Step]:
    marker = text.split(maxsplit=1)[0].rstrip(":")
    if manners.fails:
        return [Step(manners.turn_seconds, "mute")]
    if marker == "CONTEXT_HANDOFF_REQUIRED":
        return _handoff(text, manners, again)
    if marker == "RESUME_AFTER_HANDOFF":
        return _resume(text, manners, again)
    if marker == "CHECKPOINT_REQUESTED":
        return [Step(manners.turn_seconds, "say", checkpoint("IN_PROGRESS", _next(manners), ""))]
    orders = orders_in(text)
    if "dialog" in orders:
        return [Step(manners.turn_seconds, "dialog"), Step(0, "say", "That was it.")]
    half = orders.get("slow", manners.turn_seconds) / 2
    first = [Step(0, "await")] if "saved" in orders else []
    return [*first, Step(half, "work"), Step(half, "say", "One more line stands in the ledger.")]


def _handoff(text: str, manners: Manners, again: bool) -> list[Step]:
    manner, span = manners.handoff, manners.handoff_seconds
    renewal_id, draft = labelled(text, "RENEWAL_ID"), labelled(text, "DRAFT")
    block = checkpoint("HANDOFF", _next(manners), renewal_id)
    good = [Step(span, "write", document(text, _next(manners)), draft), Step(0.05, "say", block)]
    if manner == "bad_then_good" and not again:
        return [Step(span, "say", "I will write that handoff in a moment.")]
    if manner in ("silent", "mute", "die"):
        return [Step(FOREVER if manner == "silent" else span, "die" if manner == "die" else "mute")]
    if manner == "dialog":
        return [Step(span, "dialog"), *good]
    if manner == "works_on":
        return [*good, Step(0, "wake", "[ASYNC DELEGATION BATCH COMPLETE] the result is in [[saved]]")]
    if manner == "no_file":
        return [Step(span, "say", block)]
    if manner == "thin":
        return [Step(span, "write", "# Handoff\n\n## Next exact action\nGo on.\n", draft), good[1]]
    answers = {
        "old_id": checkpoint("HANDOFF", _next(manners), STALE_ID),
        "template": "\n".join(line for line in text.splitlines() if re.match(r"[A-Z_]+: ?<|STATE:|RENEWAL_ID:", line)),
        "partial": "\n".join(line for line in block.splitlines() if not line.startswith(("BLOCKER", "NEXT_ACTION"))),
        "bold": re.sub(r"^(\w+:)", r"**\1**", block, flags=re.MULTILINE),
    }
    return [good[0], Step(0.05, "say", answers.get(manner, block))]


def _resume(text: str, manners: Manners, again: bool) -> list[Step]:
    manner, span = manners.resume, manners.resume_seconds
    if manner == "bad_then_good" and not again:
        return [Step(span, "say", "Hello again! What shall we do?")]
    if manner in ("silent", "mute", "die"):
        return [Step(FOREVER if manner == "silent" else span, "die" if manner == "die" else "mute")]
    renewal_id = {"wrong_id": STALE_ID, "no_id": ""}.get(manner, labelled(text, "RENEWAL_ID"))
    told = re.findall(r"^NEXT_ACTION: ([^<].*)$", text, re.MULTILINE)
    state = "DONE" if manner == "done" else "IN_PROGRESS"
    block = checkpoint(state, told[-1] if told else _next(manners), renewal_id)
    if manner == "astray":
        block = checkpoint(state, "paint the fence behind the shed", renewal_id).replace("ledger.txt", "fence.txt")
    return [Step(span, "read", path=labelled(text, "HANDOFF")), Step(0.05, "say", block)]


def checkpoint(state: str, next_action: str, renewal_id: str) -> str:
    lines = [
        f"STATE: {state}",
        "FILES_CHANGED: ledger.txt",
        "COMMANDS_RUN: wc -l ledger.txt (it grew by one)",
        "RESULT: every line so far is in the ledger and was counted",
        "BLOCKER: none",
        f"NEXT_ACTION: {next_action}",
    ]
    return "\n".join([*lines, *([f"RENEWAL_ID: {renewal_id}"] if renewal_id else [])])


def document(request: str, next_action: str) -> str:
    """A handoff that a stranger could go on from: well over the 120 tokens under which one counts as thin."""
    worker, mission = labelled(request, "WORKER"), labelled(request, "MISSION")
    sections = {
        "Current state": "The ledger in this folder holds one line for each packet that was counted. The last "
        "line is whole, the file ends in a newline, and nothing runs in the background.",
        "Objective": "Count every packet of the seed store and keep one line for each in ledger.txt, in the order "
        "in which they were counted, without gaps and without doubles.",
        "Completed": "All packets of the first two drawers; their lines were compared with the labels by eye and "
        "with `wc -l` by number. Drawer one has 48 packets, drawer two has 37.",
        "In progress": "Drawer three. Its label was read, and none of its packets has a line yet.",
        "Files touched": "- ledger.txt, appended only",
        "Commands run": "- wc -l ledger.txt\n- tail -n 3 ledger.txt",
        "Blockers": "None; no person and no permission is waited for.",
        "Next exact action": next_action,
        "Resume prompt": "Read this, look at the last line of ledger.txt, and go on with the next exact action. "
        "Do not count the first two drawers again.",
    }
    head = f"# Handoff — {worker} — {mission}\nGenerated: 2026-01-01T00:00:00Z\n"
    return head + "".join(f"\n## {title}\n{body}\n" for title, body in sections.items())


def _next(manners: Manners) -> str:
    return manners.next_action or "count the packets of drawer three and append a line for each to ledger.txt"
