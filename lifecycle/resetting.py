"""Making the records of a stuck worker true again: what waits is closed, what the swarm reads says what is."""

from __future__ import annotations

from pydantic import JsonValue

from lifecycle.allowing import Changed
from lifecycle.answering import answer
from lifecycle.choice import Choice
from lifecycle.errors import Misuse
from lifecycle.host import Host
from lifecycle.lock import held
from lifecycle.renewal import Renewal
from lifecycle.runtime_file import read_runtime
from lifecycle.screen import PaneState
from lifecycle.survey import DOWN
from lifecycle.swarm import tell_swarm
from lifecycle.worker import Worker

_AT_WORK = frozenset({"executing", "thinking", "writing", "waiting", "blocked", "syncing", "reviewing"})
"""What runtime.json may say of a worker that is at work or waits; an idle one does neither."""


def reset(host: Host, worker: Worker, *, who: str, why: str = "") -> Changed:
    """Close the worker's open renewal, if nobody is at work on it, and let runtime.json say what its pane shows.

    Nothing is typed into a busy worker, stopped or started (hermes-workspace #462 kills the session first).

    Raises:
        RenewalInProgress: a process is at work on it.
        Misuse: its renewal has stopped it, and only an answer brings it back.
    """
    with held(host.paths(worker).lock, worker_id=worker.worker_id):
        done = [*_closed(host, worker, who=who, why=why), *_told(host, worker)]
        if done:
            host.event("reset", worker, who=who, why=why, done="; ".join(done))
    words = "; ".join(done) or "nothing was stuck"
    return Changed(
        worker_id=worker.worker_id, change="reset" if done else "none", message=f"{worker.worker_id}: {words}"
    )


def _closed(host: Host, worker: Worker, *, who: str, why: str) -> list[str]:
    renewal = resettable(host, worker)
    if renewal is None:
        return []
    return [answer(host, worker, Choice.DISMISS, who=who, why=why or f"reset by {who}").message]


def resettable(host: Host, worker: Worker) -> Renewal | None:
    """The open renewal that a reset closes, None where there is none.

    Raises:
        Misuse: the worker is down where it stands.
    """
    renewal = host.ledger.record(worker.worker_id).open_renewal
    if renewal is not None and renewal.leaves_worker_down:
        msg = (
            f"{worker.worker_id} was stopped by renewal {renewal.renewal_id} and is down: "
            "answer retry, dismiss or hold, which bring it back"
        )
        raise Misuse(msg, worker_id=worker.worker_id)
    return renewal


def _told(host: Host, worker: Worker) -> list[str]:
    """Write over what runtime.json says of a worker whose pane shows otherwise."""
    look = host.look(worker)
    told = read_runtime(host.paths(worker).runtime_json)
    changes: dict[str, JsonValue] = {}
    if look.state is PaneState.READY and not look.background and told.state in _AT_WORK:
        changes = {"state": "idle", "phase": "reset"}
    elif look.state in DOWN and told.state is not None and told.state != "offline":
        changes = {"state": "offline", "phase": "stopped"}
    if not changes:
        return []
    changes |= {"checkpointStatus": "none", "blockedReason": None, "needsHuman": False}
    tell_swarm(host, worker, **changes)
    return [f"runtime.json said {told.state}, and says {changes['state']} now"]
