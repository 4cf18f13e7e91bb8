"""Taking back Afresh's newest act on a worker, as far as that can be done, and saying what cannot.

A request that is not answered yet can be cancelled, and `latest` can go back to the handoff before. What a model has
read, and a session that was ended, cannot be taken back by anyone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from lifecycle import archive
from lifecycle.answering import answer
from lifecycle.choice import Choice
from lifecycle.errors import Misuse
from lifecycle.history import pointed_at
from lifecycle.host import Host
from lifecycle.ledger import StoredHandoff
from lifecycle.lock import is_held
from lifecycle.renewal import End, Renewal
from lifecycle.value import Value
from lifecycle.worker import Worker


class Undo(Value):
    """What undoing would do, or did. *act* is None where nothing can be undone; *cannot* says what stays as it is.

    *renewal_id* is the renewal whose request is cancelled, or whose handoff `latest` goes back to.
    """

    worker_id: str
    act: Literal["cancel_request", "restore_latest"] | None = None
    renewal_id: str | None = None
    words: str
    cannot: tuple[str, ...] = ()
    done: bool = False


def plan_undo(host: Host, worker: Worker) -> Undo:
    """What `undo` would do now. Nothing is changed, and nothing is typed."""
    renewal = host.ledger.record(worker.worker_id).open_renewal
    return _cancelling(host, worker, renewal) if renewal is not None else _going_back(host, worker)


def undo(host: Host, worker: Worker, *, who: str, why: str = "") -> Undo:
    """Do what the plan says, recorded with who and why. The caller holds the worker's lock.

    Raises:
        Misuse: there is nothing that can be undone.
        HandoffNotSaved: `latest` could not be written.
    """
    renewal = host.ledger.record(worker.worker_id).open_renewal
    planned = _cancelling(host, worker, renewal, held=True) if renewal is not None else _going_back(host, worker)
    if planned.act is None or planned.renewal_id is None:
        msg = f"{worker.worker_id}: {planned.words}"
        raise Misuse(msg, worker_id=worker.worker_id)
    if planned.act == "cancel_request":
        answer(host, worker, Choice.DISMISS, who=who, why=why or f"undone by {who}")
        is_told = host.ledger.renewal(planned.renewal_id).released
        told = "was told to carry on" if is_told else "is told to carry on as soon as it is idle, if it was asked"
        words = f"renewal {planned.renewal_id} is closed; the worker {told}"
        host.event("undone", worker, planned.renewal_id, act=planned.act, who=who, why=why)
    else:
        before = pointed_at(host.paths(worker), host.ledger.handoffs_of(worker.worker_id))
        _restore(host, worker, planned.renewal_id)
        words = f"latest holds the handoff of {planned.renewal_id} again"
        host.event("undone", worker, planned.renewal_id, act=planned.act, instead_of=before, who=who, why=why)
    return planned.model_copy(update={"done": True, "words": words})


def _cancelling(host: Host, worker: Worker, renewal: Renewal, *, held: bool = False) -> Undo:
    name = worker.worker_id
    if renewal.has_stopped_worker or renewal.leaves_worker_down:
        words = f"renewal {renewal.renewal_id} stands at {renewal.phase}: what it stopped cannot be taken back"
        answers = f"afresh answer {name} retry|dismiss brings the worker up"
        return Undo(worker_id=name, words=f"{words}; {answers}", cannot=_lasting(host, worker, renewal))
    if not held and is_held(host.paths(worker).lock):
        words = f"a process is at renewal {renewal.renewal_id} right now; let it end or end it, then undo"
        return Undo(worker_id=name, words=words)
    asked = renewal.request is not None or renewal.delivery is not None
    then = "tell the worker RENEWAL_CANCELLED, with proof" if asked else "nothing was asked of the worker yet"
    saved = ("its handoff stays in the archive, and is what latest holds",) if renewal.saved is not None else ()
    return Undo(
        worker_id=name,
        act="cancel_request",
        renewal_id=renewal.renewal_id,
        words=f"close renewal {renewal.renewal_id}, which stands at {renewal.phase}; {then}",
        cannot=(*(("that the worker has read the request",) if asked else ()), *saved),
    )


def _going_back(host: Host, worker: Worker) -> Undo:
    """The handoff before the one that `latest` holds; what a person put there is never overwritten."""
    name, stored = worker.worker_id, host.ledger.handoffs_of(worker.worker_id)
    last = next((one for one in host.ledger.renewals_of(name) if one.end is End.RENEWED), None)
    cannot = _lasting(host, worker, last)
    if not stored:
        return Undo(worker_id=name, words="it has no stored handoff, so nothing to go back to", cannot=cannot)
    path = host.paths(worker).shared_latest
    now = pointed_at(host.paths(worker), stored)
    if now is None and path.exists():
        words = f"{path} holds no handoff of the archive: someone else wrote it, and it is kept"
        return Undo(worker_id=name, words=words, cannot=cannot)
    numbers = [one.renewal_id for one in stored]
    older = stored[numbers.index(now) + 1 :] if now is not None else stored
    target = next((one for one in older if host.stored_text(one)[1]), None)
    if target is None:
        words = "no earlier handoff is left as it was stored" if older else "no handoff is older than the latest one"
        return Undo(worker_id=name, words=words, cannot=cannot)
    which = f"generation {target.generation} ({target.quality}, {target.created_at:%Y-%m-%d %H:%M} UTC)"
    words = f"put the handoff of {which}, {target.renewal_id}, back as latest; the archive keeps all"
    return Undo(worker_id=name, act="restore_latest", renewal_id=target.renewal_id, words=words, cannot=cannot)


def _restore(host: Host, worker: Worker, renewal_id: str) -> None:
    target = next(one for one in host.ledger.handoffs_of(worker.worker_id) if one.renewal_id == renewal_id)
    text, intact = host.stored_text(target)
    if not intact:
        msg = f"{target.archive} is not what was stored"
        raise Misuse(msg, worker_id=worker.worker_id)
    archive.save(text, target.archive, _copies(host, worker, target), worker_id=worker.worker_id)


def _copies(host: Host, worker: Worker, target: StoredHandoff) -> list[Path]:
    paths = host.paths(worker)
    mission = [paths.mission_copy(target.mission_id)] if target.mission_id else []
    return [paths.shared_latest, paths.latest, *mission]


def _lasting(host: Host, worker: Worker, renewal: Renewal | None) -> tuple[str, ...]:
    """What of *renewal* nobody can take back."""
    if renewal is None:
        return ()
    found = []
    if renewal.has_stopped_worker:
        session = renewal.reading.session_id if renewal.reading is not None else None
        named = f"session {session}" if session else "its session"
        found.append(f"that {named} was ended; its words stay in {host.paths(worker).state_db}")
    if renewal.acknowledgement is not None:
        found.append(f"what the model has read in session {renewal.acknowledgement.session_id}")
    return tuple(found)
