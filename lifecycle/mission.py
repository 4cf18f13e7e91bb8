"""What a worker works on: its runtime.json names the mission, the swarm's mission ledger knows more of it."""

from __future__ import annotations

import json
import logging
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from lifecycle.foreign_text import bounded
from lifecycle.paths import WorkerPaths
from lifecycle.rules import LONGEST, Rule
from lifecycle.runtime import Runtime
from lifecycle.runtime_file import read_runtime
from lifecycle.value import Value

log = logging.getLogger(__name__)

_MISSION_ID = re.compile(r"[a-z0-9][a-z0-9_.:-]{0,127}", re.IGNORECASE | re.ASCII)

TASK_HEAD, TASK_TAIL = 64_000, 32_000
"""Characters that are kept of the two ends of a longer text: a session of 200,000 tokens could hold no more."""

_CLOSED_MISSION = {"complete", "cancelled"}
_WAITING = {"blocked", "needs_input", "reviewing", "queued"}
_CLOSED_ASSIGNMENT = {"done", "cancelled"}


class Mission(Value):
    """The worker's mission, as far as anyone says. Everything is empty for a worker without one.

    *state* and *assignment_state* are the mission ledger's words, None where it is not known. *is_open* is true
    while there is work that nobody has closed; a HANDOFF checkpoint closes nothing (W-16). *is_waiting* says that
    the work waits for somebody else: an answer, a review, its turn. *notify_session_key* is where the reference
    system tells the orchestrator. *rules* are those that the mission ledger lists for mission or assignment.
    """

    mission_id: str | None = None
    assignment_id: str | None = None
    title: str = ""
    task: str = ""
    state: str | None = None
    assignment_state: str | None = None
    review_required: bool = False
    is_open: bool = False
    is_waiting: bool = False
    notify_session_key: str = "main"
    rules: tuple[Rule, ...] = ()

    @property
    def has_open_assignment(self) -> bool:
        """Whether the worker ought to be at work on something that was given to it."""
        return self.is_open and not self.is_waiting and bool(self.assignment_id or self.task)


def is_mission_id(text: str) -> bool:
    """The reference system's rule; what passes can name a file and a folder."""
    return _MISSION_ID.fullmatch(text) is not None


def current_mission(paths: WorkerPaths, runtime: Runtime | None = None, *, ledger: Path | None = None) -> Mission:
    """The mission of the worker; *ledger* is the swarm's `.runtime/swarm-missions.json` where it is known.

    Never raises for what it finds: what cannot be read says nothing, and is logged.
    """
    runtime = runtime or read_runtime(paths.runtime_json)
    mission_id, assignment_id = (
        _id(paths, text) for text in (runtime.current_mission_id, runtime.current_assignment_id)
    )
    task = runtime.current_task or ""
    known = _find(ledger, paths.worker_id, mission_id, assignment_id) if ledger and mission_id else None
    stored, assigned = known or (_Mission(), _Assignment())
    if stored.state is None and assigned.state is None:
        is_open = bool(mission_id or task) and (runtime.checkpoint_status != "done" or bool(task))
    else:
        is_open = _is_open(stored, assigned)
    return Mission(
        mission_id=mission_id,
        assignment_id=assignment_id or _kept(assigned.id) or None,
        title=_kept(stored.title),
        task=_kept(assigned.task or task),
        state=stored.state,
        assignment_state=assigned.state,
        review_required=assigned.review_required,
        is_open=is_open,
        is_waiting=(assigned.state or runtime.checkpoint_status) in _WAITING,
        notify_session_key=runtime.notify_session_key or "main",
        rules=(*_rules(stored, "the mission"), *_rules(assigned, "the assignment")),
    )


def _kept(text: str) -> str:
    """*text* without the half surrogate pairs that JSON can hold and the ledger cannot, and of a bearable length."""
    return bounded(text.encode("utf-8", "replace").decode(), TASK_HEAD, TASK_TAIL)


class _Stored(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class _Ruled(_Stored):
    """The reference system lists no rules; a swarm that does is taken at its word, whatever form they have."""

    rules: Any = None
    constraints: Any = None
    never_do: Any = None


class _Checkpoint(_Stored):
    state_label: str = ""


class _Assignment(_Ruled):
    id: str = ""
    worker_id: str = ""
    task: str = ""
    state: str | None = None
    review_required: bool = False
    checkpoint: _Checkpoint | None = None

    @property
    def handed_off(self) -> bool:
        """Its worker was renewed in the middle of it; the reference system files that as `checkpointed`."""
        return self.state == "checkpointed" and self.checkpoint is not None and self.checkpoint.state_label == "HANDOFF"


class _Mission(_Ruled):
    id: str = ""
    title: str = ""
    state: str | None = None
    assignments: list[Any] = []


def _rules(stored: _Ruled, source: str) -> tuple[Rule, ...]:
    found: list[Rule] = []
    for key, listed in (("", stored.rules), ("", stored.constraints), ("Never: ", stored.never_do)):
        texts = listed if isinstance(listed, list) else str(listed or "").split("\n")
        lines = (text.strip() for text in texts if isinstance(text, str))
        found += [Rule(text=f"{key}{line}"[:LONGEST], source=source) for line in lines if line]
    return tuple(found)


def _is_open(stored: _Mission, assigned: _Assignment) -> bool:
    if stored.state == "cancelled" or assigned.state in _CLOSED_ASSIGNMENT:
        return False
    return assigned.handed_off or (stored.state not in _CLOSED_MISSION and assigned.state != "checkpointed")


def _find(
    ledger: Path, worker_id: str, mission_id: str, assignment_id: str | None
) -> tuple[_Mission, _Assignment] | None:
    try:
        found = _missions(ledger.read_bytes()).get(mission_id)
        if found is None:
            return None
        stored = _Mission.model_validate(found)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        log.warning("%s: the mission ledger cannot be read: %s", ledger, error)
        return None
    assignments = [assigned for entry in stored.assignments if (assigned := _assignment(entry))]
    for assigned in assignments:
        if assignment_id and assigned.id == assignment_id and assigned.worker_id == worker_id:
            return stored, assigned
    ours = [] if assignment_id else [assigned for assigned in assignments if assigned.worker_id == worker_id]
    return stored, ours[-1] if ours else _Assignment()


@lru_cache(maxsize=1)
def _missions(content: bytes) -> dict[str, Any]:
    """By id; of one that is listed twice the first. All workers of a sweep ask the same file, so it is parsed once."""
    listed = [entry for entry in json.loads(content)["missions"] if isinstance(entry, dict)]
    return {entry["id"]: entry for entry in reversed(listed) if isinstance(entry.get("id"), str)}


def _assignment(entry: object) -> _Assignment | None:
    try:
        return _Assignment.model_validate(entry)
    except ValidationError:
        return None


def _id(paths: WorkerPaths, text: str | None) -> str | None:
    if not text:
        return None
    if is_mission_id(text):
        return text
    log.warning("%s: %r is no id and was left out", paths.runtime_json, text[:80])
    return None
