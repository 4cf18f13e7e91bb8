"""What a worker said and did in sessions, or parts of one, that are no longer in its context."""

from __future__ import annotations

from datetime import datetime

from lifecycle.value import Value


class PastSession(Value):
    """A session of a worker of which at least a part is past.

    *mark* changes when what was past may not be so any more: a session that goes on after its end is read anew.
    *order* is the order in which sessions began. *newest_row* is the highest row that can be past.
    """

    session_id: str
    mark: str
    order: float
    newest_row: int
    is_over: bool


class PastMessage(Value):
    """One row that left the context: its words, and what it called. Cut to a bounded length, not redacted."""

    row_id: int
    role: str
    at: datetime
    text: str
