"""The gate in step 3: what a worker answered is weighed, and sent back once with what is missing."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lifecycle import durable, prompts
from lifecycle.delivery import deliver
from lifecycle.draft import read_draft
from lifecycle.errors import CheckpointRefused, NotDelivered
from lifecycle.host import Host
from lifecycle.identifiers import Identifier
from lifecycle.idle import process_at_rest
from lifecycle.judging import Judged, Material, judge
from lifecycle.redaction import redact
from lifecycle.renewal import HandoffRequest, ParsedHandoff, Quality, Renewal
from lifecycle.steps.standing import remembering
from lifecycle.synthesis import supplement
from lifecycle.transcript import Reply
from lifecycle.wording import own_words
from lifecycle.worker import Worker


def weighed(
    host: Host, worker: Worker, renewal: Renewal, reply: Reply, asked: HandoffRequest, *, is_last_try: bool
) -> ParsedHandoff:
    """The handoff, if the gate takes it, with what the rows tell beside it: nobody remembers everything.

    Raises:
        CheckpointRefused: it is refused, or, before the last try, says too little.
    """
    material = _material(host, worker, renewal, reply, asked)
    found = judge(material)
    complaints = found.gate.complaints
    if complaints and not is_last_try:
        raise CheckpointRefused(
            "; ".join(complaints),
            worker_id=worker.worker_id,
            reason="handoff_thin",
            evidence=_listed(found.gate.lost),
            own_words=True,
        )
    return ParsedHandoff(
        renewal_id=renewal.renewal_id,
        checkpoint=found.checkpoint,
        reply_row=reply.row_id,
        answer=reply.text,
        session_id=reply.session_id,
        draft_text=material.draft,
        quality=Quality.WRITTEN if material.draft is not None else Quality.CHECKPOINT,
        notes=complaints,
        asks_human=found.gate.asks_human,
        worked=_has_worked(host, worker, material),
        identifiers=found.wanted,
        supplement=supplement(material.conversation, host.settings.synthesis, before_row=asked.row.row_id),
    )


def correct(
    host: Host, worker: Worker, renewal: Renewal, asked: HandoffRequest, refusal: CheckpointRefused
) -> HandoffRequest:
    """Ask once more, saying what is missing; identifiers stand in a file that the request names.

    Raises:
        NotDelivered, Interfered, AgentGone
    """
    if renewal.delivery is not None and renewal.delivery.kind == "correction":
        text = renewal.delivery.text
    else:
        lost = _write_lost(host, worker, renewal, refusal) if refusal.reason == "handoff_thin" else None
        write = partial(
            prompts.correction, renewal_id=renewal.renewal_id, draft=asked.draft, refusal=refusal, missing_file=lost
        )
        text = write(own_words=own_words(host, worker, write(own_words=False)))
    try:
        row = deliver(
            host,
            worker,
            text,
            kind="correction",
            intent=renewal.delivery,
            remember=remembering(host, renewal.renewal_id),
        )
    except NotDelivered as error:
        error.detail = f"{refusal.detail}; and the corrective request was not delivered: {error.detail}"
        raise
    return HandoffRequest(renewal_id=renewal.renewal_id, text=text, draft=asked.draft, row=row)


def _material(host: Host, worker: Worker, renewal: Renewal, reply: Reply, asked: HandoffRequest) -> Material:
    process, paths = process_at_rest(host, worker), host.paths(worker)
    draft = asked.draft
    return Material(
        worker_id=worker.worker_id,
        mission_id=renewal.mission_id,
        renewal_id=renewal.renewal_id,
        reply=reply.text,
        draft=read_draft(draft, worker_id=worker.worker_id),
        draft_path=draft,
        written_at=_written_at(draft),
        asked_at=renewal.opened_at,
        asked_row=asked.row.row_id,
        previous=_previous(host, worker, renewal),
        conversation=host.agent(worker).conversation(worker, since=process.started_at if process else None),
        ours=(str(paths.handoffs), str(paths.home)),
    )


def _written_at(draft: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(draft.stat().st_mtime, UTC)
    except OSError:
        return None


def _has_worked(host: Host, worker: Worker, material: Material) -> bool:
    """Whether the ending session did anything but read handoffs and write its own."""
    paths = host.paths(worker)
    ours = (str(paths.handoffs), str(paths.archive), str(paths.pack(material.renewal_id).parent))
    calls = material.conversation.calls
    return any(not any(folder in call.arguments for folder in ours) for call in calls)


def _previous(host: Host, worker: Worker, renewal: Renewal) -> str | None:
    """The handoff before this one, if it belongs to the same mission."""
    for stored in host.ledger.handoffs_of(worker.worker_id):
        if stored.mission_id == renewal.mission_id and stored.quality is Quality.WRITTEN:
            return host.stored_text(stored)[0] or None
    return None


def _listed(lost: tuple[Identifier, ...]) -> str:
    return "\n".join(f"- {redact(one.told)}" for one in lost)


def _write_lost(host: Host, worker: Worker, renewal: Renewal, refusal: CheckpointRefused) -> Path | None:
    """The list of what is missing, where the worker can read it: it is made of the worker's words, and not typed."""
    if not refusal.evidence:
        return None
    path = host.paths(worker).missing(renewal.renewal_id)
    try:
        durable.replace(path, f"# Used last, and not in your handoff\n\n{refusal.evidence}\n".encode())
    except OSError:
        return None  # the request says how many; the machine adds them itself
    return path


__all__ = ["Judged", "correct", "weighed"]
