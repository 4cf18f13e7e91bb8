"""The resume pack of a renewal: made from what was saved, written where the new session can read it."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from lifecycle import durable
from lifecycle.archive_search import Hit as ArchiveHit
from lifecycle.archive_search import best_hits
from lifecycle.gathering import is_finished
from lifecycle.handoff import read_handoff
from lifecycle.host import Host
from lifecycle.orders import Orders
from lifecycle.pack import Hit, Pack, PackMaterial, build
from lifecycle.prompts import one_line
from lifecycle.renewal import Renewal, SavedHandoff
from lifecycle.resumption import Resumption, resumption_of
from lifecycle.worker import Worker

log = logging.getLogger(__name__)


def resumption(host: Host, worker: Worker, saved: SavedHandoff) -> Resumption:
    """How the new session takes up the work, by the mission as it stands now."""
    return resumption_of(saved, finished=is_finished(host.mission(worker)))


def pack_of(host: Host, worker: Worker, renewal: Renewal, saved: SavedHandoff, *, hits: tuple[Hit, ...] = ()) -> Pack:
    """The pack, in memory alone. *hits* are passages of earlier handoffs.

    Raises:
        OSError: the saved handoff cannot be read.
    """
    text = saved.archive.read_bytes().decode(errors="replace")
    how = resumption(host, worker, saved)
    orders = renewal.orders or Orders()
    return build(
        PackMaterial(
            worker_id=worker.worker_id,
            generation=renewal.generation + 1,
            renewal_id=renewal.renewal_id,
            archive=saved.archive,
            sha256=saved.sha256,
            quality=saved.quality.value,
            made_at=renewal.opened_at,
            handoff=read_handoff(text).body,
            next_action=saved.next_action,
            resumption=how,
            unknown=unknown_effects(renewal),
            orders=orders.model_copy(update={"finished": how is Resumption.FINISHED}),
            claimed=renewal.claimed,
            hits=hits,
        ),
        host.settings.pack,
    )


def write_pack(host: Host, worker: Worker, renewal: Renewal, saved: SavedHandoff) -> tuple[Path, str] | None:
    """Where the pack stands and its sha256; None where it could not be made: the worker comes up without."""
    path = host.paths(worker).pack(renewal.renewal_id)
    try:
        pack = pack_of(host, worker, renewal, saved, hits=earlier(host, worker, saved))
        content = pack.text.encode("utf-8", "replace")
        durable.make_private(path.parent)
        durable.replace(path, content)
    except OSError as error:
        log.warning("%s: no resume pack: %s", worker.worker_id, error)
        host.event("pack.failed", worker, renewal.renewal_id, failure=str(error))
        return None
    host.event(
        "pack.written",
        worker,
        renewal.renewal_id,
        tokens=pack.tokens,
        sections={section.name: section.tokens for section in pack.sections},
        dropped=list(pack.dropped),
    )
    return path, hashlib.sha256(content).hexdigest()


def unknown_effects(renewal: Renewal) -> tuple[str, ...]:
    """The calls whose result was never written when the machine collected."""
    collected = renewal.collected
    return tuple(f"{call.tool}: {call.told}" for call in collected.interrupted) if collected is not None else ()


def earlier(host: Host, worker: Worker, saved: SavedHandoff) -> tuple[Hit, ...]:
    """Passages of the worker's own past that fit its next action."""
    found = best_hits(host, worker, saved.next_action, excluding=(saved.renewal_id,))
    return tuple(Hit(source=_named(hit), made_at=hit.at, snippet=hit.snippet) for hit in found)


def _named(hit: ArchiveHit) -> str:
    generation = f"generation {hit.generation}, " if hit.generation is not None else ""
    return f"{generation}{one_line(hit.heading, 80) or hit.source}"
