"""Parking: a renewal that rests because the agent's provider fails or limits it, and the breaker of its account."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta

from lifecycle.breaker import Breaker
from lifecycle.errors import ParksHere
from lifecycle.host import Host
from lifecycle.notifying import notify
from lifecycle.renewal import Parked, Renewal
from lifecycle.screen import PaneLook, PaneState
from lifecycle.transcript import TurnState
from lifecycle.trouble import Kind, Trouble, trouble_in
from lifecycle.worker import Worker

JITTER = timedelta(seconds=60)
"""Workers that share a limit do not all come back in the second in which it ends."""

_LIMITS = (timedelta(minutes=15), timedelta(hours=4))
_FAULTS = (timedelta(minutes=2), timedelta(hours=1))
SPANS: dict[Kind, tuple[timedelta, timedelta]] = {
    "rate_limit": _LIMITS,
    "quota": _LIMITS,
    "login": _LIMITS,
    "api_failure": _FAULTS,
    "overloaded": _FAULTS,
}
"""Without a stated time: the first rest, doubled each time in a row, and the longest."""

MOST_FAILURES = 5
"""So many rests in a row for a failing provider; then a human is called."""


def is_hopeless(renewal: Renewal, trouble: Trouble) -> bool:
    """Whether the provider has failed so often that waiting is no plan any more."""
    return not trouble.is_shared and renewal.parks >= MOST_FAILURES


def rests_until(trouble: Trouble, parks: int, worker_id: str, now: datetime) -> datetime | None:
    """When to go on after *parks* rests in a row; None where no time cures it."""
    if trouble.kind == "login":
        return None
    if trouble.resets_at is not None:
        return max(trouble.resets_at, now) + _jitter(worker_id)
    first, longest = SPANS[trouble.kind]
    return now + min(first * (1 << min(parks, 10)), longest)


def park(host: Host, worker: Worker, renewal: Renewal | None, error: ParksHere) -> Parked:
    """Let *renewal* rest at its phase, and open the breaker of the account where its trouble is the account's.

    What was asked and not answered is asked again when the rest is over. Nothing is typed now.
    """
    now, trouble = host.now(), error.trouble
    until = rests_until(trouble, renewal.parks if renewal else 0, worker.worker_id, now)
    account = host.account(worker) if trouble.is_shared else None
    if renewal is not None:
        again: dict[str, object] = {"parks": renewal.parks + 1, "ask_again": True, "correction": None, "reminder": None}
        changes = {**(again if error.failed_turn else {}), "take_ups": 0, "updated_at": now}
        host.ledger.put(renewal.model_copy(update=changes))
    host.ledger.remember(worker.worker_id, parked_until=until, parked_why=trouble.words, parked_by=account)
    ends = until.isoformat() if until else None
    renewal_id = renewal.renewal_id if renewal else None
    host.event("renewal.parked", worker, renewal_id, cause=trouble.kind, until=ends, why=trouble.words)
    if account is not None and error.failed_turn:
        _open_breaker(
            host, worker, Breaker(account=account, kind=trouble.kind, since=now, until=until, why=trouble.words)
        )
    elif account is None:
        when = f"{until:%Y-%m-%d %H:%M} UTC" if until else "it is over"
        key = f"parked:{renewal_id}:{trouble.kind}"
        notify(host, worker, key, f"parked: {trouble.kind}", f"{trouble.words}; it goes on by itself at {when}")
    return Parked(worker_id=worker.worker_id, until=until, why=trouble.words)


def resting(host: Host, worker: Worker) -> Parked | None:
    """Why the worker is left alone now, if it is: its own rest, or the open breaker of its account."""
    breaker = host.breaker(worker)
    if breaker is not None:
        return Parked(worker_id=worker.worker_id, until=breaker.until, why=breaker.words)
    record = host.ledger.record(worker.worker_id)
    if record.parked_until is None or record.parked_until <= host.now():
        return None
    return Parked(worker_id=worker.worker_id, until=record.parked_until, why=record.parked_why)


def unpark(host: Host, worker: Worker) -> None:
    """A human says to go on now: the worker's rest ends, and the breaker of its account with it."""
    host.ledger.remember(worker.worker_id, parked_until=None, parked_why="", parked_by=None)
    breaker = host.breaker(worker)
    if breaker is not None:
        close_breaker(host, breaker.account, why="a human said to go on")


def close_breaker(host: Host, account: str, *, why: str) -> bool:
    """Close the breaker of *account* and end the rests that it made; whether it was there."""
    if not host.ledger.close_breaker(account, at=host.now()):
        return False
    for renewal in host.ledger.open_renewals():
        if host.ledger.record(renewal.worker_id).parked_by == account:
            host.ledger.remember(renewal.worker_id, parked_until=None, parked_why="", parked_by=None)
            host.ledger.add_event(
                "renewal.unparked", renewal.worker_id, at=host.now(), renewal_id=renewal.renewal_id, why=why
            )
    return True


def heed_accounts(host: Host, seen: Sequence[tuple[Worker, PaneLook, TurnState | None]]) -> bool:
    """Learn from what all workers show: a limit or a lost login holds its account, an answered turn frees it (O1).

    Says whether a breaker was opened or closed.
    """
    opened = [
        _open_breaker(host, worker, breaker)
        for worker, look, turn in seen
        if turn is not None and (breaker := _shown(host, worker, look, turn)) is not None
    ]
    if not host.ledger.breakers(host.now()):
        return any(opened)
    closed = [
        close_breaker(host, breaker.account, why=f"{worker.worker_id} was answered at {turn.newest_at:%H:%M:%S} UTC")
        for worker, _, turn in seen
        if (breaker := host.breaker(worker)) is not None
        and turn is not None
        and turn.newest_at is not None
        and turn.answered
        and turn.last_role == "assistant"
        and turn.newest_at > breaker.since
    ]
    return any(opened) or any(closed)


def _shown(host: Host, worker: Worker, look: PaneLook, turn: TurnState) -> Breaker | None:
    """The trouble of its account that an idle worker shows below a turn without an answer."""
    if look.state is not PaneState.READY or turn.answered or not look.notice or turn.newest_at is None:
        return None
    trouble = trouble_in(look.notice, turn.newest_at)
    if trouble is None or not trouble.is_shared:
        return None
    until = rests_until(trouble, 0, worker.worker_id, turn.newest_at)
    if until is not None and until <= host.now():
        return None
    return Breaker(
        account=host.account(worker), kind=trouble.kind, since=turn.newest_at, until=until, why=trouble.words
    )


def _open_breaker(host: Host, worker: Worker, breaker: Breaker) -> bool:
    """Open it and tell a human, once for all workers of the account."""
    if not host.ledger.open_breaker(breaker):
        return False
    host.event("breaker.opened", worker, account=breaker.account, cause=breaker.kind, why=breaker.why)
    subject = "login lost" if breaker.kind == "login" else f"parked: {breaker.kind}"
    notify(host, worker, f"breaker:{breaker.account}:{breaker.since.isoformat()}", subject, breaker.words)
    return True


def _jitter(worker_id: str) -> timedelta:
    """The same for a worker each time."""
    return JITTER * (hashlib.sha256(worker_id.encode()).digest()[0] / 255)
