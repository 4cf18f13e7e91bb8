"""The orders that cross a renewal, gathered while the old session still stands."""

from __future__ import annotations

import logging
from pathlib import Path

from lifecycle.conversation import Conversation
from lifecycle.draft import sections_of
from lifecycle.errors import LifecycleError
from lifecycle.gathering import gather
from lifecycle.host import Host
from lifecycle.idle import process_at_rest
from lifecycle.orders import Orders, claimed_by
from lifecycle.renewal import ParsedHandoff, Quality, Renewal
from lifecycle.rules import Rule, rules_in
from lifecycle.worker import Worker

log = logging.getLogger(__name__)


def gather_orders(
    host: Host, worker: Worker, renewal: Renewal, parsed: ParsedHandoff | None
) -> tuple[Orders, tuple[Rule, ...]]:
    """What the worker was told, and the rules that only its own document knows. A transcript that cannot be read, or
    a pane that cannot be seen, gives none and is logged: the renewal goes on without it.
    """
    found = Conversation()
    try:
        process = process_at_rest(host, worker)
        found = host.agent(worker).conversation(worker, since=process.started_at if process else None)
    except LifecycleError as error:
        log.warning("%s: what it was told cannot be read: %s", worker.worker_id, error)
    before = host.ledger.record(worker.worker_id).orders
    orders = gather(worker, host.mission(worker), found, cwd=working_folder(worker, renewal), before=before)
    if parsed is None or parsed.quality is Quality.SYNTHESIZED or parsed.draft_text is None:
        return orders, ()
    written = "\n\n".join(sections_of(parsed.draft_text).values())
    return orders, claimed_by(rules_in(written, "the handoff"), orders)


def working_folder(worker: Worker, renewal: Renewal) -> Path | None:
    """Where the worker works, as far as anyone recorded it."""
    return renewal.launch.cwd if renewal.launch is not None else worker.cwd
