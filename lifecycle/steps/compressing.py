"""At watch, where the policy says so: the worker is told to compact its own context, and what came of it is judged."""

from __future__ import annotations

from lifecycle.commanding import type_command
from lifecycle.compression import Compression, asked, judged
from lifecycle.errors import ContextUnreadable, LifecycleError
from lifecycle.host import Host
from lifecycle.prompts import is_ours, typed_id
from lifecycle.screen import Face
from lifecycle.survey import Finding
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker


def compress(host: Host, finding: Finding) -> Compression:
    """Tell the worker of *finding* to compact its context. The caller holds its lock, and the decision said so.

    It waits for `deadlines.delivery` until the agent has begun, and as long again until it is done; one that takes
    longer is judged by a later look. One that does not begin is a strike.

    Raises:
        NotDelivered, Interfered, AgentGone, TextNotSendable, ParksHere: the command was not entered.
    """
    worker, before = finding.worker, finding.record.compression
    name, agent = worker.worker_id, host.agent(worker)
    # Written first: told twice would be worse than not at all.
    memory = asked(before, finding.reading, host.now())
    host.ledger.remember(name, compression=memory)
    command = agent.compact_command(*_focus(host, worker), finding.pane.face or Face.CLI)
    try:
        type_command(host, worker, command)
    except LifecycleError:
        host.ledger.remember(name, compression=before)
        raise
    host.event("compaction.requested", worker, tokens=finding.reading.tokens)
    return _awaited(host, worker, memory)


def _awaited(host: Host, worker: Worker, memory: Compression) -> Compression:
    """What the database shows of it within the deadline; as asked where it is still under way then."""
    within = host.settings.deadlines.delivery

    def settled() -> Compression | None:
        judgement = _judged(host, worker, memory, begun=False)
        return judgement if judgement.is_judged else None

    try:
        judgement = wait_until(settled, within, host.clock)
    except DeadlinePassed:
        judgement = _judged(host, worker, memory, begun=True)
    if judgement.is_judged:
        host.ledger.remember(worker.worker_id, compression=judgement)
        freed = memory.tokens - (judgement.after or 0)
        host.event("compaction.judged", worker, freed=freed, left=judgement.after, strikes=judgement.strikes)
    return judgement


def _judged(host: Host, worker: Worker, memory: Compression, *, begun: bool) -> Compression:
    """*begun* says that one of which the database shows nothing, not even its lock, is none."""
    process = host.process(worker)
    try:
        turn = host.turn(worker, process)
    except ContextUnreadable:
        return memory
    reading = host.read(worker, process, overhead=host.ledger.record(worker.worker_id).overhead)
    given = {"within": host.now() - memory.asked_at} if begun else {}
    return judged(memory, reading, turn, host.now(), **given) or memory


def _focus(host: Host, worker: Worker) -> tuple[str, str]:
    """What must survive, in Afresh's own words and ids, and the objective as others put it."""
    mission = host.mission(worker)
    named = [f"mission {typed_id(mission.mission_id)}"] if mission.mission_id else []
    named += [f"assignment {typed_id(mission.assignment_id)}"] if mission.assignment_id else []
    kept = "standing rules, decisions, open steps, exact paths, commands and identifiers"
    own_words = ", ".join([*named, kept])
    return own_words, mission.title or mission.task or _first_order(host, worker)


def _first_order(host: Host, worker: Worker) -> str:
    """What a worker without a mission was first told in this session."""
    try:
        requests = host.agent(worker).digest(worker, since=None).requests
    except ContextUnreadable:
        return ""
    return next((text for text in requests if not is_ours(text)), "")
