"""What a new worker receives: the message and the pack that it names, computed with the code that renews workers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lifecycle import prompts
from lifecycle.agents.hermes.conversation import conversation
from lifecycle.agents.hermes.trail import trail
from lifecycle.budgets import PackSettings
from lifecycle.collect_settings import CollectSettings
from lifecycle.collected import Collected
from lifecycle.collecting import from_trail
from lifecycle.conversation import Conversation
from lifecycle.crossing import Crossing, Sources, cross
from lifecycle.gathering import gather
from lifecycle.identifiers import identifiers_in
from lifecycle.mission import Mission
from lifecycle.offload import keep_results
from lifecycle.orders import Orders
from lifecycle.proofs import Quality
from lifecycle.resumption import LAST_WORDS, STATES, Resumption
from lifecycle.rules import Rule
from lifecycle.snapshot import describe, snapshot_ref
from lifecycle.synthesis import NEXT_ACTION, NOT_STATED
from lifecycle.tokens import TokenCounter
from lifecycle.trail import LargeRule
from lifecycle.work_tree import Caps, Repository
from lifecycle.worker import Worker
from tests.fidelity.telling import Telling
from tests.fidelity.writers import Written

WORKER, RENEWAL, MISSION = "swarm1", "r20261201-1", "m-1"
AT = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
HOME = Path("/srv/afresh")
ARCHIVE = HOME / "archive" / WORKER / f"20261201T093000Z-{RENEWAL}.md"
PACK = HOME / "packs" / f"{RENEWAL}.md"

_CLAIM = re.compile(r"^(RESULT|BLOCKER|NEXT_ACTION): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Known:
    """What Afresh reads of one session before anybody is asked: rows, trail, git, orders."""

    telling: Telling
    conversation: Conversation
    collected: Collected
    orders: Orders


@dataclass(frozen=True)
class Received:
    """*text* is the message and the pack, *tokens* the pack's; *invented* are claims that stand in no source."""

    text: str
    tokens: int
    quality: Quality
    complaints: tuple[str, ...]
    invented: tuple[str, ...]


def know(telling: Telling, profile: Path, cwd: Path, artifacts: Path) -> Known:
    """Read a saved session as a renewal does."""
    rules = CollectSettings()
    found = conversation(profile, WORKER, since=None)
    large = LargeRule(over=rules.offload_over, most=rules.offload_most, protected=rules.offload_protect)
    done = trail(profile, WORKER, session_id=None, since=None, large=large)
    repository = Repository.around(cwd, within=rules.deadline * 12)
    assert repository is not None
    caps = Caps(largest_file=rules.largest_file, most_bytes=rules.largest_snapshot)
    tree, _ = describe(repository, snapshot_ref(WORKER, 1), caps, message="afresh", keep=3)
    collected = from_trail(done, at=AT).model_copy(
        update={"cwd": cwd, "git": tree, "results": keep_results(artifacts, done.large)}
    )
    mission = Mission(
        mission_id=MISSION,
        task=telling.mission,
        is_open=True,
        rules=tuple(Rule(text=text, source="the mission") for text in telling.mission_rules),
    )
    worker = Worker(worker_id=WORKER, profile=profile, session=f"swarm-{WORKER}")
    return Known(telling, found, collected, gather(worker, mission, found, cwd=cwd))


def receive(known: Known, written: Written, count: TokenCounter, *, collecting: bool) -> Received:
    """What crosses; without *collecting* by the worker's own words alone."""
    sources = Sources(
        worker_id=WORKER,
        mission_id=MISSION,
        renewal_id=RENEWAL,
        at=AT,
        reply=written.reply,
        draft=written.draft,
        archive=ARCHIVE,
    )
    if collecting:
        sources = sources.model_copy(
            update={"conversation": known.conversation, "orders": known.orders, "collected": known.collected}
        )
    made = cross(sources, collected_tokens=CollectSettings().tokens, count=count)
    text = f"{_message(made)}\n{made.pack.text}"
    return Received(
        text=text,
        tokens=max(made.pack.tokens, count(made.pack.text)),
        quality=made.quality,
        complaints=made.complaints,
        invented=_invented(text, known, written),
    )


def budget() -> int:
    return PackSettings().tokens


def _message(made: Crossing) -> str:
    """As the full-screen face gets it: without a word of the worker's, so that only the pack tells."""
    how = (
        Resumption.ANSWER
        if made.asks_human
        else Resumption.REGROUND
        if made.quality is Quality.SYNTHESIZED
        else Resumption.GO_ON
    )
    return prompts.resume(
        worker_id=WORKER,
        renewal_id=RENEWAL,
        mission_id=MISSION,
        assignment_id=None,
        archive=ARCHIVE,
        sha256="0" * 64,
        summary="",
        next_action="",
        own_words=True,
        pack=(PACK, "0" * 64),
        instead=LAST_WORDS.get(how),
        state=STATES[how],
    )


def _invented(text: str, known: Known, written: Written) -> tuple[str, ...]:
    """Results, blockers and next actions that nobody stated, and identifiers that stand in no source."""
    stated = {NOT_STATED, NEXT_ACTION, *LAST_WORDS.values()}
    own = " ".join((written.reply or "").split())
    found = [
        f"{label}: {value}"
        for label, value in _CLAIM.findall(text.partition("# Resume — ")[2])
        if value.strip() not in stated and " ".join(value.removesuffix("…").split()) not in own
    ]
    telling, collected = known.telling, known.collected
    sources = "\n".join(
        (
            telling.session.words.replace("\\n", "\n").replace('\\"', '"'),
            written.draft or "",
            written.reply or "",
            telling.mission,
            telling.soul,
            *telling.mission_rules,
            known.orders.model_dump_json(),
            collected.model_dump_json(include={"git", "cwd", "sessions", "results"}),
            _message_ids(),
        )
    )
    found += [
        f"{one.kind} {one.text}"
        for one in dict.fromkeys(identifiers_in(text))
        if one.text.rstrip("…") not in sources and not one.stands_in(sources)
    ]
    return tuple(found)


def _message_ids() -> str:
    return f"{ARCHIVE} {PACK} {'0' * 64}"
