"""What to do about a worker now: one pure function over what is known of it.

The table is `_GUARDS` and `_CARE`, in order; the first row that has something to say decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from lifecycle.breaker import Breaker
from lifecycle.case import Case
from lifecycle.compression import STRIKES, is_spent, not_now
from lifecycle.loops import REPEATS, find_loop
from lifecycle.reading import ContextReading, ContextState
from lifecycle.record import WorkerRecord
from lifecycle.screen import PaneLook, PaneState
from lifecycle.transcript import TurnState
from lifecycle.value import Value
from lifecycle.worker import Worker

ALARMING_STREAK = 3
UNREADABLE = "unreadable"

WEDGED_AFTER = timedelta(minutes=30)
"""A turn that shows nothing new for so long may hang, or run a quiet build (B1): a human is told, nothing is ended."""

INCONSISTENT = 1.25
"""A reading above this share of the window doubts the window, not the worker (a 1M model was once read as 200k)."""


class Action(StrEnum):
    """What a sweep does. HANDOFF asks for a handoff and stores it; the worker carries on.

    START brings a worker back that went down with its host.
    """

    NONE = "none"
    NOTIFY = "notify"
    CHECKPOINT = "checkpoint"
    COMPRESS = "compress"
    HANDOFF = "handoff"
    RENEW = "renew"
    START = "start"
    BLOCK = "block"


class Decision(Value):
    """One action and why.

    *notice* is the key of a notification that goes out once while it is due. *block* is the reason of a BLOCK.
    *would* is what automatic renewal would do where it is off. *waits* is true where only an idle pane is missing.
    """

    action: Action
    reason: str
    notice: str | None = None
    block: str | None = None
    would: Action | None = None
    waits: bool = False


def decide(
    worker: Worker,
    reading: ContextReading,
    record: WorkerRecord,
    pane: PaneLook,
    turn: TurnState | None,
    now: datetime,
    *,
    queues_while_busy: bool = False,
    by_hand: bool = False,
    assignment_open: bool = False,
    rebooted: bool = False,
    breaker: Breaker | None = None,
) -> Decision:
    """Choose one action for *worker*. Pure: the same facts give the same decision.

    *record* already counts *reading*; its baseline belongs to a session that Afresh started. *by_hand* is an
    operator's consent to a renewal now: it needs no pressure, no `automatic` and no cooldown, and it is itself
    the human whom the loop guards would call. It never overrules a dialog, copy mode, text in the input line, an
    absent pane, a hold or an open renewal. *rebooted* says that the worker was alive when its host went down.
    *breaker* is the open one of its account.
    """
    case = Case(
        worker, reading, record, pane, turn, now, queues_while_busy, by_hand, assignment_open, rebooted, breaker
    )
    standing = _first(_STANDING, case)
    if standing:
        return standing
    due = _first(_GUARDS, case) or _noticing_repeats(case, _first(_CARE, case) or _nothing(case))
    automatic = worker.automatic if record.automatic is None else record.automatic
    return _noticing_stillness(case, due if automatic or by_hand else _withheld(due, worker.worker_id))


_Row = Callable[[Case], Decision | None]


def _first(rows: Sequence[_Row], case: Case) -> Decision | None:
    return next((decision for row in rows if (decision := row(case)) is not None), None)


def _none(reason: str, notice: str | None = None) -> Decision:
    return Decision(action=Action.NONE, reason=reason, notice=notice)


def _nothing(case: Case) -> Decision:
    return _none(case.figures)


# Rows that not even an operator's `renew` passes.


def _unmanaged(case: Case) -> Decision | None:
    name = case.worker.worker_id
    return None if case.worker.managed else _none(f"not managed; declare [workers.{name}] in afresh.toml first")


def _held(case: Case) -> Decision | None:
    record = case.record
    if not record.is_held:
        return None
    why = f" ({record.held_why})" if record.held_why else ""
    return _none(f"held{why}; afresh release {case.worker.worker_id} lets it go")


def _blocked(case: Case) -> Decision | None:
    renewal = case.record.open_renewal
    if renewal is None or renewal.block is None:
        return None
    return _none(f"blocked ({renewal.block.reason}); answer it with afresh answer {case.worker.worker_id}")


def _open(case: Case) -> Decision | None:
    renewal = case.record.open_renewal
    if renewal is None:
        return None
    return _none(f"renewal {renewal.renewal_id} is open at {renewal.phase}; afresh recover takes it up if it rests")


def _parked(case: Case) -> Decision | None:
    until, breaker = case.record.parked_until, case.breaker
    if breaker is not None:
        return _none(breaker.words)
    if until is None or until <= case.now:
        return None
    why = f" ({case.record.parked_why})" if case.record.parked_why else ""
    return _none(f"parked until {until:%Y-%m-%d %H:%M} UTC{why}; it goes on by itself then")


def _cooling_down(case: Case) -> Decision | None:
    until = case.record.cooldown_until
    if case.by_hand or case.is_cut_off or until is None or until <= case.now:
        return None
    return _none(f"cooling down until {until:%H:%M} UTC: a renewal of it has just ended")


_STANDING: tuple[_Row, ...] = (_unmanaged, _held, _blocked, _parked, _open, _cooling_down)


# Rows that call a human, or find nothing that could be acted on.


def _absent(case: Case) -> Decision | None:
    name = case.worker.worker_id
    if case.is_cut_off:
        return Decision(action=Action.START, reason="it went down with its host, which has rebooted")
    match case.pane.state:
        case PaneState.ABSENT:
            return _none(f"its pane is gone; afresh start {name} starts it", notice="absent")
        case PaneState.EXITED:
            return _none(f"the agent has ended; afresh start {name} starts it", notice="absent")
        case PaneState.NOT_AN_AGENT:
            return _none("its pane runs something else than the agent", notice="not_an_agent")
        case _:
            return None


def _dialog(case: Case) -> Decision | None:
    if case.pane.state not in {PaneState.DIALOG, PaneState.SETUP, PaneState.REFUSED}:
        return None
    what = case.pane.dialog or case.pane.state.value
    return _none(f"waits for a human in its pane ({what}); answer it there", notice="dialog")


def _unreadable(case: Case) -> Decision | None:
    if case.state is ContextState.UNKNOWN:
        alarm = UNREADABLE if case.record.unknown_streak >= ALARMING_STREAK else None
        return _none(f"its context cannot be read: {case.reading.error}", notice=alarm)
    if case.state is ContextState.NO_SESSION:
        return _none("it has no session yet, so nothing to renew")
    return None


def _inconsistent(case: Case) -> Decision | None:
    tokens, window = case.reading.tokens, case.reading.window
    if case.by_hand or tokens is None or window is None or tokens <= INCONSISTENT * window:
        return None
    return _none(f"{tokens:,} tokens cannot be in a window of {window:,}; set it right", notice="inconsistent")


def _looping(case: Case) -> Decision | None:
    loop = None if case.by_hand else find_loop(case)
    return Decision(action=Action.BLOCK, block=loop.kind, reason=loop.words) if loop else None


_GUARDS: tuple[_Row, ...] = (
    _absent,
    _dialog,
    _unreadable,
    _inconsistent,
    _looping,
)


# Rows that care for a worker that runs and can be read.


def _healthy(case: Case) -> Decision | None:
    if case.by_hand or case.state is not ContextState.HEALTHY:
        return None
    return _stale(case) or _nothing(case)


def _hindered(case: Case) -> Decision | None:
    return _wait(case, case.hindrance) if case.hindrance else None


def _busy(case: Case) -> Decision | None:
    if case.pane.state is not PaneState.BUSY:
        return None
    if case.may_queue:
        return Decision(action=Action.RENEW, reason=f"{case.figures}; busy, and its messages queue")
    return _wait(case, "it is in a turn")


def _wait(case: Case, why: str) -> Decision:
    """Wait for an idle pane; say so to a human, and give up where the policy says how long is too long."""
    minutes = int(case.busy_for.total_seconds() // 60)
    reason = f"{case.figures}; {why}"
    if case.by_hand:
        return Decision(action=Action.NONE, reason=f"{why}; try again when it is idle", waits=True)
    if case.is_urgent and case.busy_for >= case.policy.busy_block and not case.is_busy_at_a_humans_word:
        return Decision(action=Action.BLOCK, block="busy_too_long", reason=f"{reason}, for {minutes} minutes")
    spans = int(case.busy_for / case.policy.busy_notice)
    over = case.state in {ContextState.HANDOFF_REQUIRED, ContextState.RENEW_REQUIRED} and not case.is_urgent
    notice = f"busy_over_handoff:{spans}" if over and spans else None
    return Decision(action=Action.NONE, reason=f"{reason}: waits for idle", notice=notice, waits=True)


def _watch(case: Case) -> Decision | None:
    if case.by_hand or case.state is not ContextState.WATCH:
        return None
    wanted, asked = case.policy.at_watch, case.record.checkpoint_asked_in == case.reading.session_id
    if wanted == "compress":
        return _compress(case)
    if wanted == "nothing" or asked:
        return _stale(case) or _none(f"{case.figures}; {'asked already' if asked else 'nothing is done about it'}")
    return Decision(action=Action.CHECKPOINT, reason=f"{case.figures}; idle")


def _compress(case: Case) -> Decision:
    """Have it compact its own context, which saves a renewal; where that brings nothing, renew it."""
    memory, record = case.record.compression, case.record
    if is_spent(memory, case.reading):
        return Decision(action=Action.RENEW, reason=f"{case.figures}; {STRIKES} compactions were of no use; idle")
    why_not = not_now(memory, case.reading, case.turn, record.last_handoff_at, case.now)
    if why_not:
        return _stale(case) or _none(f"{case.figures}; {why_not}")
    return Decision(action=Action.COMPRESS, reason=f"{case.figures}; idle")


def _store_handoff(case: Case) -> Decision | None:
    if case.by_hand or case.policy.renew_on_handoff or case.state is not ContextState.HANDOFF_REQUIRED:
        return None
    if case.record.handoff_stored_in == case.reading.session_id:
        return _stale(case) or _none(f"{case.figures}; its handoff is stored, it is renewed at the hard limit")
    return Decision(action=Action.HANDOFF, reason=f"{case.figures}; idle")


def _renew(case: Case) -> Decision | None:
    asked = "asked for by hand; " if case.by_hand else ""
    return Decision(action=Action.RENEW, reason=f"{asked}{case.figures}; idle")


_CARE: tuple[_Row, ...] = (_healthy, _hindered, _busy, _watch, _store_handoff, _renew)


def _stale(case: Case) -> Decision | None:
    """An idle worker with open work that wrote nothing for long; only where no other row has anything to do."""
    idle = case.pane.state is PaneState.READY and not case.hindrance
    newest = case.turn.newest_at if case.turn is not None else None
    seen = max((at for at in (newest, case.reading.last_activity_at) if at is not None), default=None)
    if not idle or not case.assignment_open or seen is None or case.now - seen < case.policy.stale_after:
        return None
    minutes = int((case.now - seen).total_seconds() // 60)
    reason = f"idle for {minutes} minutes with an open assignment"
    session = case.reading.session_id
    if case.policy.on_stale == "renew" and case.record.stale_renewed_in != session:
        return Decision(action=Action.RENEW, reason=reason)
    return Decision(action=Action.NOTIFY, reason=reason, notice=f"stale:{session}")


def _noticing_repeats(case: Case, decision: Decision) -> Decision:
    """The same next action again and again is worth a word, but long work may well be like that."""
    if case.record.repeats < REPEATS or decision.notice is not None:
        return decision
    return decision.model_copy(update={"notice": "repeats"})


def _noticing_stillness(case: Case, decision: Decision) -> Decision:
    if case.still_for < WEDGED_AFTER or decision.notice is not None or decision.action is Action.BLOCK:
        return decision
    minutes = int(case.still_for.total_seconds() // 60)
    reason = f"in a turn, and for {minutes} minutes without a new row or a change on its screen; {decision.reason}"
    return decision.model_copy(update={"notice": "wedged", "reason": reason})


def _withheld(due: Decision, worker_id: str) -> Decision:
    """What is due to a worker whose automatic renewal is off: nothing is typed and nothing is started."""
    if due.action in {Action.NONE, Action.NOTIFY}:
        alarm = due.notice if due.notice == UNREADABLE else None
        return _none(f"automatic renewal is off; {due.reason}", notice=alarm)
    notice = "would_renew" if due.action in {Action.RENEW, Action.HANDOFF} else None
    notice = "absent" if due.action is Action.START else notice
    reason = f"automatic renewal is off, else it would {_WOULD[due.action]}: {due.reason}; afresh enable {worker_id}"
    return Decision(action=Action.NONE, reason=reason, notice=notice, would=due.action)


_WOULD = {
    Action.CHECKPOINT: "be asked for a checkpoint",
    Action.COMPRESS: "be told to compress its context",
    Action.HANDOFF: "be asked for a handoff",
    Action.RENEW: "be renewed",
    Action.START: "be brought back",
    Action.BLOCK: "be blocked",
}
