"""answer_worker: a human's answer to a block, from the form of the `answer` deployment or over HTTP."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from prefect.states import Completed, Failed

from flows.hosting import host_of_run
from flows.renewal import ended, renew
from lifecycle import answering
from lifecycle.answering import Answered
from lifecycle.choice import Choice
from lifecycle.errors import LifecycleError, Misuse, RenewalInProgress
from lifecycle.host import Host
from lifecycle.lock import held
from lifecycle.worker import Worker


@flow(
    name="answer",
    flow_run_name="answer {worker_id}: {answer}",
    description="Answer what waits for a human: the renewal goes on in this run, or is closed.",
    persist_result=False,
)
def answer_worker(
    worker_id: str,
    answer: Choice,
    why: str = "",
    text: str = "",
    who: str = "Prefect",
    host: str = "",
) -> State[Any]:
    """Answer the block of a worker, as `afresh answer` does. A run that is retried answers nothing again.

    Args:
        worker_id: The worker whose block is answered.
        answer: retry = the same renewal goes on from its phase. force = that, and a busy turn is ended too. synthesize = go on with a handoff made from the transcript. use-text = go on with the handoff below. dismiss = close the renewal. hold = close it and keep hands off. The last two bring a stopped worker back first.
        why: Why, for the record.
        text: The handoff, with use-text only.
        who: Who answers, for the record.
        host: The host that must be this one; empty where there is only one.
    """  # noqa: E501 - the form shows each description as it stands
    with host_of_run() as this:
        try:
            this.must_be(host)
            worker = this.worker(worker_id)
            with held(this.paths(worker).lock, worker_id=worker_id):
                answered = _answered(this, worker, answer, who=who, why=why, text=text)
                if answered is None and not _is_cut_off(this, worker):
                    return Completed(name="Spared", message="this run has answered; nothing is answered again")
                if answered is not None and not answered.goes_on:
                    return Completed(name="Answered", message=answered.message)
                forced = answer is Choice.FORCE
                return ended(this, renew(this, worker, forced=forced, by_hand=True, why=why or answer.value))
        except (Misuse, RenewalInProgress) as error:
            return Failed(name="Refused", message=error.detail)
        except LifecycleError as error:
            return Failed(message=error.detail)


def _answered(this: Host, worker: Worker, choice: Choice, *, who: str, why: str, text: str) -> Answered | None:
    """What the answer did; None where this run has given it before, so that only its renewal goes on.

    So a block that came later is not answered by an old run that somebody retries.
    """
    if choice is not Choice.USE_TEXT and text.strip():
        msg = f"{worker.worker_id}: a text goes with use-text and with no other answer"
        raise Misuse(msg, worker_id=worker.worker_id)
    given = f"answered-by:{flow_run.id}"
    if flow_run.id and not this.ledger.is_first_notice(worker.worker_id, given, at=this.now()):
        return None
    try:
        return answering.answer(this, worker, choice, who=who, why=why, text=text or None)
    except Misuse:
        this.ledger.forget_notices(worker.worker_id, passing=[given])
        raise


def _is_cut_off(this: Host, worker: Worker) -> bool:
    """Whether a renewal stands where its run left it, rather than at a block or closed."""
    renewal = this.ledger.record(worker.worker_id).open_renewal
    return renewal is not None and renewal.block is None
