"""What one pass over the rows of a session tells: its rows are many, so they are not read once for each question."""

from __future__ import annotations

from lifecycle.agents.hermes.database import State
from lifecycle.agents.hermes.message import live_condition, summary_condition
from lifecycle.value import Value


class Figures(Value):
    """*token_count* is the sum of the rows' own counts. *rewritten_at* is when the live rows were last rewritten by a
    compaction, seconds since the epoch, 0 where they never were. *summaries* counts the rows that stand for a history.
    """

    token_count: int = 0
    summaries: int = 0
    rewritten_at: float = 0.0


def figures(state: State, session_id: str) -> Figures:
    live, summary = live_condition(state), summary_condition()
    tokens = state.column("messages", "token_count", "0").partition(" AS ")[0]
    archived = f"max(id) FILTER (WHERE compacted = 1 AND NOT ({live}))"
    has_archive = "compacted" in state.columns("messages")
    sql = (
        f"SELECT sum({tokens}), count(*) FILTER (WHERE {summary}), "  # noqa: S608
        f"max(timestamp) FILTER (WHERE {live} AND {summary}), {archived if has_archive else 'NULL'} "
        "FROM messages WHERE session_id = ?"
    )
    count, summaries, summarised_at, archived_to = state.first(sql, session_id) or (0, 0, None, None)
    if summarised_at is None and archived_to is not None:
        summarised_at = _first_live_behind(state, session_id, archived_to)
    return Figures(token_count=int(count or 0), summaries=summaries, rewritten_at=float(summarised_at or 0.0))


def _first_live_behind(state: State, session_id: str, archived_to: int) -> float | None:
    """A summary that begins in a way of a later release: the first row that was written anew is as good.

    A compaction stamps the rows that it keeps anew, except those of a resumed session; the summary is always new.
    """
    sql = f"SELECT min(timestamp) FROM messages WHERE session_id = ? AND {live_condition(state)} AND id > ?"  # noqa: S608
    row = state.first(sql, session_id, archived_to)
    return row[0] if row else None
