"""What people and orchestrators are told to do with a worker, by its context."""

from __future__ import annotations

from lifecycle.policy import Policy
from lifecycle.reading import ContextReading, ContextState
from lifecycle.record import WorkerRecord


def recommended_action(state: ContextState) -> str:
    """What to tell a person or an orchestrator, in the reference system's words where it has any."""
    return _RECOMMENDED[state]


_RECOMMENDED = {
    ContextState.HEALTHY: "Continue normally.",
    ContextState.WATCH: "Monitor context; request concise checkpoint soon.",
    ContextState.HANDOFF_REQUIRED: "Request durable handoff before assigning more work.",
    ContextState.RENEW_REQUIRED: "Renew worker after handoff; avoid new work until restarted.",
    ContextState.UNKNOWN: "Find out why the context cannot be read; do not count the worker as healthy.",
    ContextState.NO_SESSION: "Nothing to do; the worker has no session yet.",
}


def accepts_work(reading: ContextReading, record: WorkerRecord, policy: Policy) -> bool:
    """Whether new work may be given to the worker. An unreadable worker takes none."""
    if record.is_held or record.open_renewal is not None:
        return False
    if record.parked_until is not None and record.parked_until > reading.at:
        return False
    return reading.state(policy) in {ContextState.HEALTHY, ContextState.WATCH, ContextState.NO_SESSION}
