"""Step 4: the handoff is written, read back, and known to the ledger."""

from __future__ import annotations

import logging

from lifecycle import archive
from lifecycle.collected_text import render
from lifecycle.collecting import collect, forget_old_results
from lifecycle.draft import sections_of
from lifecycle.handoff import Handoff, compose
from lifecycle.host import Host
from lifecycle.ledger import StoredHandoff
from lifecycle.offload import show_command
from lifecycle.orders import rendered
from lifecycle.redaction import redact
from lifecycle.renewal import ParsedHandoff, Phase, Renewal, SavedHandoff
from lifecycle.steps.ordering import gather_orders
from lifecycle.steps.standing import advance, amend, standing
from lifecycle.swarm import remember_in_swarm, tell_swarm
from lifecycle.tokens import EncodingUnavailable, byte_bound, counter
from lifecycle.worker import Worker

log = logging.getLogger(__name__)


def persist_handoff(host: Host, worker: Worker, parsed: ParsedHandoff) -> SavedHandoff:
    """Compose the handoff and save it in all its places; the archive is read back by hash.

    Raises:
        HandoffNotSaved: a write failed. The worker is untouched.
    """
    renewal = standing(host, parsed.renewal_id)
    if renewal.phase.reached(Phase.SAVED) and renewal.saved is not None:
        return renewal.saved
    renewal = _gathered(host, worker, renewal, parsed)
    paths = host.paths(worker)
    text = compose(_handoff(host, worker, renewal, parsed))
    place = paths.archived(renewal.opened_at, renewal.renewal_id)
    copies = [paths.shared_latest, paths.latest]
    if renewal.mission_id:
        copies.append(paths.mission_copy(renewal.mission_id))
    digest = archive.save(text, place, copies, worker_id=worker.worker_id)
    saved = SavedHandoff(
        renewal_id=renewal.renewal_id,
        archive=place,
        sha256=digest,
        quality=parsed.quality,
        next_action=redact(parsed.checkpoint.next_action),
        summary=redact(parsed.checkpoint.result),
        state=parsed.checkpoint.state.value,
        answered_row=parsed.reply_row,
        session_id=parsed.session_id or None,
        asks_human=parsed.asks_human,
        worked=parsed.worked,
    )
    now = host.now()
    with host.ledger.transaction():
        host.ledger.add_handoff(
            StoredHandoff(
                renewal_id=renewal.renewal_id,
                worker_id=worker.worker_id,
                generation=renewal.generation,
                archive=place,
                sha256=digest,
                quality=parsed.quality,
                mission_id=renewal.mission_id,
                created_at=now,
            )
        )
        host.ledger.remember(
            worker.worker_id, last_handoff_at=now, handoff_stored_in=saved.session_id, orders=renewal.orders
        )
        advance(host, worker, renewal, Phase.SAVED, saved=saved)
    tell_swarm(host, worker, lastHandoffAt=int(now.timestamp() * 1000))
    remember_in_swarm(
        host,
        worker,
        renewal,
        "handoff-written",
        f"Handoff written: {saved.next_action}",
        sharedHandoffPath=str(paths.shared_latest),
    )
    _tidy(host)
    return saved


def _gathered(host: Host, worker: Worker, renewal: Renewal, parsed: ParsedHandoff) -> Renewal:
    """With what the machine and the worker's own orders add to the handoff, each found once."""
    found: dict[str, object] = {}
    if renewal.collected is None:
        host.progress(worker.worker_id, "collects what the machine knows")
        found["collected"] = collect(host, worker, renewal, session_id=parsed.session_id or None)
    if renewal.orders is None:
        found["orders"], found["claimed"] = gather_orders(host, worker, renewal, parsed)
    return amend(host, renewal, **found) if found else renewal


def _handoff(host: Host, worker: Worker, renewal: Renewal, parsed: ParsedHandoff) -> Handoff:
    reading = renewal.reading
    sections = sections_of(parsed.draft_text) if parsed.draft_text else {}
    return Handoff(
        worker_id=worker.worker_id,
        mission_id=renewal.mission_id,
        assignment_id=renewal.assignment_id,
        renewal_id=renewal.renewal_id,
        generation=renewal.generation,
        session_id=parsed.session_id or None,
        model=reading.model if reading else None,
        tokens=reading.tokens if reading else None,
        quality=parsed.quality,
        created_at=renewal.opened_at,
        sections=sections,
        checkpoint=parsed.checkpoint,
        orders=rendered(renewal.orders, renewal.claimed) if renewal.orders else "",
        identifiers=parsed.identifiers,
        supplement=_supplement(host, renewal),
        transcript=parsed.supplement,
        notes=parsed.notes,
        banner=parsed.banner,
    )


def _supplement(host: Host, renewal: Renewal) -> str:
    if renewal.collected is None:
        return ""
    home = host.settings.home
    try:
        count = counter()
    except EncodingUnavailable:
        count = byte_bound
    return render(renewal.collected, budget=host.settings.collect.tokens, count=count, show=show_command(home))


def _tidy(host: Host) -> None:
    try:
        forget_old_results(host)
    except OSError as error:
        log.warning("kept results: %s", error)
