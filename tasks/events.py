"""What the ledger's journal tells as Prefect events, so that automations and people see every transition.

The journal is the source: whatever wrote a transition - a step, a sweep, a command at a terminal - the next step or
flow of this host that ends emits it, once.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from uuid import NAMESPACE_URL, UUID, uuid5

from prefect.events import emit_event
from prefect.exceptions import EventTooLarge

from lifecycle.errors import LedgerError
from lifecycle.host import Host
from lifecycle.ledger import Event
from lifecycle.notifying import HOST

log = logging.getLogger(__name__)

PREFIX = "afresh.worker."

BEGINS_WITH = timedelta(hours=1)
"""Where nothing was ever emitted, older events are history and stay so."""

_TOLD_ALREADY = frozenset({"blocked", "requested", "renewed", "parked", "cleared", "breaker"})
"""Notices of a transition that has an event of its own in the journal."""

_NAMES = {
    # `released` is the end of a hold; this is the word to a worker whose renewal was cancelled.
    "renewal.released": "told-to-carry-on",
    "block.cleared": "cleared",
}


def show_events(host: Host) -> None:
    """Emit what the journal holds and no process of this host has emitted. Never raises for what it finds."""
    try:
        events = host.ledger.unshown(since=host.now() - BEGINS_WITH)
        for event in events:
            _emit(host, event)
        if events:
            # Once for all: what a process that dies before this emits again has the same id, and is one event.
            host.ledger.mark_shown(events[-1].event_id)
    except LedgerError as error:
        log.warning("events not shown in Prefect: %s", error)


def name_of(event: Event) -> str | None:
    """The last part of the event's name in Prefect; None for a notice that repeats a transition."""
    if event.kind == "notice":
        kind = str(event.detail.get("key", "")).partition(":")[0]
        return None if kind in _TOLD_ALREADY else kind or None
    return _NAMES.get(event.kind, event.kind.removeprefix("renewal."))


def _emit(host: Host, event: Event) -> None:
    name, host_name = name_of(event), host.settings.host_name
    if name is None:
        return
    about = f"host.{host_name}" if event.worker_id == HOST else f"worker.{event.worker_id}"
    renewal = f"afresh.renewal.{event.renewal_id}"
    related = [{"prefect.resource.id": renewal, "prefect.resource.role": "renewal"}] if event.renewal_id else []
    try:
        emit_event(
            f"{PREFIX}{name}",
            occurred=event.at,
            resource={
                "prefect.resource.id": f"afresh.{about}",
                "prefect.resource.name": host_name if event.worker_id == HOST else event.worker_id,
                "afresh.host": host_name,
            },
            related=related,
            payload={**event.detail, "renewal_id": event.renewal_id, "host": host_name},
            id=_same_for_all(host, event),
        )
    except EventTooLarge as error:
        log.warning("event %s of %s not shown in Prefect: %s", event.kind, event.worker_id, error)


def _same_for_all(host: Host, event: Event) -> UUID:
    """Two processes that emit one event of the journal at the same time emit one event."""
    return uuid5(NAMESPACE_URL, f"{host.settings.host_name}:{host.ledger.path}:{event.event_id}:{event.at.isoformat()}")
