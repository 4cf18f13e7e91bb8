"""One measurement of a worker's context."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path

from lifecycle.billed import Billed
from lifecycle.policy import Limits, Policy
from lifecycle.value import Value


class Source(StrEnum):
    """How the tokens of a reading are known, best first."""

    API_LOG = "api_log"
    COUNTED = "counted"
    BOUND = "bound"
    UNKNOWN = "unknown"


class ContextState(StrEnum):
    """How urgent a reading makes a renewal."""

    HEALTHY = "healthy"
    WATCH = "watch"
    HANDOFF_REQUIRED = "handoff_required"
    RENEW_REQUIRED = "renew_required"
    UNKNOWN = "unknown"
    NO_SESSION = "no_session"


class CountedRows(Value):
    """What was counted of a session so far: *rows* from the *first* to the *last* id, in the file *inode*.

    *ids* is the sum of their ids; 0 where it is not known, and then they are counted anew.
    """

    inode: int = 0
    first: int = 0
    last: int = 0
    rows: int = 0
    ids: int = 0
    tokens: int = 0


class ContextReading(Value):
    """How many tokens the worker's next call will carry, and how that is known.

    *tokens* is None where *source* is unknown and where the worker has no session yet.
    *session_total* is the reference system's figure, a lifetime bill, and *billed* its parts. *window* is the
    usable window (the model's, less what is reserved for output); *compaction_point* is None where the agent never
    compacts. *error* says why a reading is unknown. *title* is the session's own, as the agent or a person named it.
    *conversation_id* is the session that compactions led here from, if they closed it; *asked_compactions* are those
    of the *compactions* that Afresh asked for.
    *mark* stands for the files that were read as they then were, empty where that is not sure;
    *counted* is how far a count went, so that a later one goes on from there.
    """

    worker_id: str
    at: datetime
    session_id: str | None = None
    conversation_id: str | None = None
    session_open: bool = False
    model: str | None = None
    window: int | None = None
    compaction_point: int | None = None
    tokens: int | None = None
    source: Source = Source.UNKNOWN
    session_total: int = 0
    compactions: int = 0
    asked_compactions: int = 0
    api_calls: int = 0
    started_at: datetime | None = None
    last_activity_at: datetime | None = None
    newest_row: int = 0
    error: str | None = None
    billed: Billed = Billed()
    counted: CountedRows | None = None
    mark: str = ""
    title: str | None = None

    @property
    def conversation(self) -> str | None:
        """What stays the same through compactions, also those that close a session and open another."""
        return self.conversation_id or self.session_id

    @property
    def own_compactions(self) -> int:
        """Those of the agent itself: the others do not count against it."""
        return max(0, self.compactions - self.asked_compactions)

    def limits(self, policy: Policy) -> Limits:
        return policy.limits(window=self.window, compaction_point=self.compaction_point)

    def pressure(self, policy: Policy) -> int | None:
        """The figure that *policy* decides by."""
        return self.session_total if policy.signal == "session_total" and self.tokens is not None else self.tokens

    def state(self, policy: Policy) -> ContextState:
        """Classify against *policy*; an unreadable context is unknown, never healthy."""
        if self.error is not None:
            return ContextState.UNKNOWN
        figure = self.pressure(policy)
        if self.session_id is None or figure is None:
            return ContextState.NO_SESSION
        limits = self.limits(policy)
        if figure >= limits.hard or self.own_compactions > policy.max_compactions:
            return ContextState.RENEW_REQUIRED
        if figure >= limits.handoff:
            return ContextState.HANDOFF_REQUIRED
        return ContextState.WATCH if figure >= limits.soft else ContextState.HEALTHY

    def is_over_hard(self, policy: Policy) -> bool:
        """Over the hard limit by tokens, and not only by its count of compactions."""
        figure = self.pressure(policy)
        return figure is not None and figure >= self.limits(policy).hard


class Asked(Value):
    """A context to be read.

    *since* is the start of the agent's process, None where none is known: a session not seen since then is not the
    current one. *overhead* is what was learned of calls of this profile, *known* its last good reading, of this or of
    another process.
    """

    profile: Path
    worker_id: str
    since: datetime | None = None
    overhead: int | None = None
    known: ContextReading | None = None
