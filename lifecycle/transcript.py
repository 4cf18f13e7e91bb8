"""Rows of an agent's transcript, as far as a renewal needs them."""

from __future__ import annotations

from datetime import datetime

from lifecycle.value import Value


class SentRow(Value):
    """The proof that our text arrived: a user row of the agent's database that holds exactly that text."""

    session_id: str
    row_id: int
    at: datetime


class Reply(Value):
    """What the agent answered to one of our rows: the last closed assistant text before any later user row."""

    session_id: str
    row_id: int
    at: datetime
    text: str


class TurnState(Value):
    """Where the current session stands. *newest_row* counts active rows only.

    *answered* is false while the newest user row has no closed assistant row behind it. *compacting* is a
    live compaction lock; *delegating* an open delegate or background turn. *compaction_rests_until* is how long the
    agent itself does not try to compact, after one that failed; *failed_summaries* counts those in a row whose
    summary was none of a model's. *mark* stands for the files that were read as they then were, empty where that is
    not sure.
    """

    session_id: str | None = None
    newest_row: int = 0
    newest_at: datetime | None = None
    last_role: str | None = None
    answered: bool = True
    compacting: bool = False
    delegating: bool = False
    compaction_rests_until: datetime | None = None
    failed_summaries: int = 0
    mark: str = ""


class ToolCall(Value):
    """One tool call of a session. *outcome* is None where no result was ever written: its effect is unknown.

    *files* are those that it was to write, as the agent named them.
    """

    name: str
    arguments: str
    outcome: str | None = None
    files: tuple[str, ...] = ()


class Digest(Value):
    """What a session's rows say by themselves, oldest first; undone rows and summaries are left out."""

    session_id: str | None = None
    requests: tuple[str, ...] = ()
    last_words: str = ""
    calls: tuple[ToolCall, ...] = ()
