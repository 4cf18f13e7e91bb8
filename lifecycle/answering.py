"""A human's answer to a block: what it changes in the ledger. The renewal itself then goes on in a flow run."""

from __future__ import annotations

from lifecycle.choice import Choice
from lifecycle.ending import close
from lifecycle.errors import LifecycleError, Misuse
from lifecycle.host import Host
from lifecycle.parking import resting, unpark
from lifecycle.redaction import redact
from lifecycle.renewal import End, Phase, Renewal
from lifecycle.shield import bringing_back_first
from lifecycle.steps.respawning import respawn_worker
from lifecycle.steps.standing import amend
from lifecycle.steps.stopping import stop_worker
from lifecycle.value import Value
from lifecycle.worker import Worker


class Answered(Value):
    """What an answer did. *goes_on* says that the renewal is open again and wants a flow run."""

    worker_id: str
    renewal_id: str
    choice: Choice
    goes_on: bool
    message: str


def answer(host: Host, worker: Worker, choice: Choice, *, who: str, why: str = "", text: str | None = None) -> Answered:
    """Apply *choice* to the worker's block, or end its parking with it. The caller holds the worker's lock.

    Raises:
        Misuse: no block waits, or the choice does not fit its phase.
    """
    renewal = fitting(host, worker, choice, text=text)
    if renewal is None or (renewal.block is None and resting(host, worker) is not None):
        return _answer_parked(host, worker, renewal, choice, who=who, why=why, text=text)
    worker = host.governed(worker, renewal.reading)
    has_handoff = renewal.phase.reached(Phase.PARSED)
    host.event("answered", worker, renewal.renewal_id, choice=choice.value, who=who, why=why)
    if choice in (Choice.DISMISS, Choice.HOLD):
        return _closed(host, worker, renewal, choice, why or f"{choice.value} by {who}")
    if choice is Choice.RETRY and renewal.released and renewal.phase in (Phase.PARSED, Phase.SAVED):
        return _asked_anew(host, worker, renewal)
    changes: dict[str, object] = {
        "block": None,
        "released": False,
        "respawns": 0,
        "reminder": None,
        "parks": 0,
        "take_ups": 0,
    }
    if choice in (Choice.USE_TEXT, Choice.SYNTHESIZE) or (choice is Choice.FORCE and not has_handoff):
        changes |= _substitute(choice, text)
    if choice is Choice.FORCE:
        changes["forced"] = True
    if choice is Choice.RETRY and renewal.phase in (Phase.REQUESTED, Phase.RESUMED):
        changes |= {"correction": None, "ask_again": True}
    amend(host, renewal, **changes)
    return Answered(
        worker_id=worker.worker_id,
        renewal_id=renewal.renewal_id,
        choice=choice,
        goes_on=True,
        message=f"renewal {renewal.renewal_id} goes on from {renewal.phase}",
    )


def _substitute(choice: Choice, text: str | None) -> dict[str, object]:
    """Who speaks for the worker: a human's text, or its own records."""
    kind = "text" if choice is Choice.USE_TEXT else "synthesize"
    return {"substitute": kind, "given_text": redact(text) if text else None}


def fitting(host: Host, worker: Worker, choice: Choice, *, text: str | None = None) -> Renewal | None:
    """The open renewal that *choice* answers; None for the rest of a parked worker without one. Nothing is changed.

    Raises:
        Misuse: no block waits, or the choice does not fit its phase.
    """
    renewal = host.ledger.record(worker.worker_id).open_renewal
    if (renewal is None or renewal.block is None) and resting(host, worker) is not None:
        fits = _fits_parked(renewal)
        if choice not in fits:
            msg = f"{worker.worker_id} is parked; answer {' or '.join(fits)}"
            raise Misuse(msg, worker_id=worker.worker_id)
        _check_text(worker, choice, text)
        return renewal
    if renewal is None:
        msg = f"{worker.worker_id} has no block that waits for an answer"
        raise Misuse(msg, worker_id=worker.worker_id)
    if renewal.block is None and choice not in (Choice.RETRY, Choice.DISMISS, Choice.HOLD):
        msg = f"{worker.worker_id}: renewal {renewal.renewal_id} was interrupted; answer retry, dismiss or hold"
        raise Misuse(msg, worker_id=worker.worker_id)
    if choice is Choice.RETRY and renewal.block is not None and choice.value not in renewal.block.choices:
        *others, last = renewal.block.choices
        msg = f"{worker.worker_id}: another try would end the same; answer {', '.join(others)} or {last}"
        raise Misuse(msg, worker_id=worker.worker_id)
    if choice in (Choice.SYNTHESIZE, Choice.USE_TEXT) and renewal.phase.reached(Phase.PARSED):
        word = "saved" if renewal.phase.reached(Phase.SAVED) else "given"
        msg = f"{worker.worker_id}: the handoff is {word} already; answer retry, dismiss or hold"
        raise Misuse(msg, worker_id=worker.worker_id)
    _check_text(worker, choice, text)
    return renewal


def _check_text(worker: Worker, choice: Choice, text: str | None) -> None:
    if choice is Choice.USE_TEXT and not (text and text.strip()):
        msg = f"{worker.worker_id}: use-text needs a text that is not empty"
        raise Misuse(msg, worker_id=worker.worker_id)


def _fits_parked(renewal: Renewal | None) -> tuple[Choice, ...]:
    """A worker that cannot answer for hours may be spoken for; once its handoff is there, nobody needs to."""
    if renewal is None:
        return (Choice.RETRY,)
    spoken_for = () if renewal.phase.reached(Phase.PARSED) else (Choice.SYNTHESIZE, Choice.USE_TEXT)
    return (Choice.RETRY, *spoken_for, Choice.DISMISS, Choice.HOLD)


def _asked_anew(host: Host, worker: Worker, renewal: Renewal) -> Answered:
    """The worker was told to carry on, so its handoff is no longer its newest word: a new renewal asks for one."""
    close(host, worker, renewal, End.DISMISSED, "retried: a new renewal asks for a fresh handoff")
    return Answered(
        worker_id=worker.worker_id,
        renewal_id=renewal.renewal_id,
        choice=Choice.RETRY,
        goes_on=True,
        message=f"renewal {renewal.renewal_id} is closed; a new one asks for a fresh handoff",
    )


def _answer_parked(
    host: Host, worker: Worker, renewal: Renewal | None, choice: Choice, *, who: str, why: str, text: str | None
) -> Answered:
    """End the rest of a worker at once: go on with its renewal, in another's words where told so, or close it."""
    host.event("answered", worker, renewal.renewal_id if renewal else None, choice=choice.value, who=who, why=why)
    unpark(host, worker)
    if renewal is not None and choice in (Choice.SYNTHESIZE, Choice.USE_TEXT):
        amend(host, renewal, **_substitute(choice, text), parks=0)
    elif renewal is not None and choice is not Choice.RETRY:
        return _closed(host, worker, renewal, choice, why or f"{choice.value} by {who}")
    goes_on = f"renewal {renewal.renewal_id} goes on from {renewal.phase}" if renewal else "it is parked no more"
    return Answered(
        worker_id=worker.worker_id,
        renewal_id=renewal.renewal_id if renewal else "",
        choice=choice,
        goes_on=renewal is not None,
        message=goes_on,
    )


def _closed(host: Host, worker: Worker, renewal: Renewal, choice: Choice, why: str) -> Answered:
    end = End.HELD if choice is Choice.HOLD else End.DISMISSED
    if choice is Choice.HOLD:
        # First, so that nobody finds the worker closed and not yet held.
        host.ledger.remember(worker.worker_id, held_since=host.now(), held_why=why)
    is_up, told = _brought_back(host, worker, renewal) if renewal.leaves_worker_down else (True, "")
    close(host, worker, host.ledger.renewal(renewal.renewal_id), end, why, is_up=is_up)
    if choice is Choice.DISMISS:
        host.ledger.remember(worker.worker_id, cooldown_until=host.now() + worker.policy.cooldown)
    return Answered(
        worker_id=worker.worker_id,
        renewal_id=renewal.renewal_id,
        choice=choice,
        goes_on=False,
        message=f"renewal {renewal.renewal_id} is closed{told}",
    )


def _brought_back(host: Host, worker: Worker, renewal: Renewal) -> tuple[bool, str]:
    """Start the worker that a renewal had stopped: whether it is up, and a sentence about it."""
    if renewal.saved is None:
        return False, f"; the worker is DOWN: `afresh start {worker.worker_id}` starts it"
    try:
        with bringing_back_first():
            amend(host, renewal, block=None, respawns=0)
            respawn_worker(host, worker, stop_worker(host, worker, renewal.saved))
    except LifecycleError as error:
        return False, f"; the worker is DOWN ({error.detail}): `afresh start {worker.worker_id}` starts it"
    return True, "; the worker was started again"
