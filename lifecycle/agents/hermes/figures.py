"""What the rows of a session tell in one pass; and of what was seen before, only the new rows are passed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lifecycle.agents.hermes.database import State
from lifecycle.agents.hermes.message import live_condition, summary_condition
from lifecycle.billed import Tokens
from lifecycle.value import Value


class Extent(Value):
    """How far the rows of a session reach: all *rows* up to the id *newest*, and the *live* ones *first* to *last*.

    *ids* is the sum of the live ones' ids, *latest* the newest time of all. Ids only grow, and a compaction, an undo
    or a deletion takes live rows or rows away; so the same extent means that the same rows are there and live.
    """

    inode: int = 0
    rows: int = 0
    newest: int = 0
    live: int = 0
    first: int = 0
    last: int = 0
    ids: int = 0
    latest: float = 0.0

    def behind(self, earlier: Extent) -> Extent:
        """The extent of *earlier* rows and of those behind them."""
        return Extent(
            inode=self.inode,
            rows=earlier.rows + self.rows,
            newest=max(earlier.newest, self.newest),
            live=earlier.live + self.live,
            first=min(filter(None, (earlier.first, self.first)), default=0),
            last=max(earlier.last, self.last),
            ids=earlier.ids + self.ids,
            latest=max(earlier.latest, self.latest),
        )


class Figures(Value):
    """*token_count* is the sum of the rows' own counts. *summaries* counts the rows that stand for a history.

    *summarised_at* is the time of the newest of these that is live, *archived_to* the id of the newest row that a
    compaction took out of the context.
    """

    extent: Extent = Extent()
    token_count: Tokens = 0
    summaries: int = 0
    summarised_at: float | None = None
    archived_to: int | None = None

    def behind(self, earlier: Figures) -> Figures:
        """The figures of *earlier* rows and of those behind them."""
        return Figures(
            extent=self.extent.behind(earlier.extent),
            token_count=earlier.token_count + self.token_count,
            summaries=earlier.summaries + self.summaries,
            summarised_at=max(earlier.summarised_at or 0.0, self.summarised_at or 0.0) or None,
            archived_to=max(earlier.archived_to or 0, self.archived_to or 0) or None,
        )


class FigureBook:
    """Keeps the figures of each session that it passed over."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Path, str], Figures] = {}

    def figures(self, state: State, session_id: str) -> Figures:
        key = state.path, session_id
        kept, found = self._kept.get(key), None
        if kept is not None and kept.extent.inode == state.inode:
            extent = _extent(state, session_id)
            if extent == kept.extent:
                return kept
            if extent.newest > kept.extent.newest:
                newer = _newer(state, session_id, kept).behind(kept)
                found = newer if newer.extent == extent else None
        self._kept[key] = found or _passed(state, "session_id = ?", session_id)
        return self._kept[key]


def rewritten_at(state: State, session_id: str, figures: Figures) -> float:
    """When the live rows were last rewritten by a compaction, seconds since the epoch, 0 where they never were."""
    if figures.summarised_at is None and figures.archived_to is not None:
        return _first_live_behind(state, session_id, figures.archived_to) or 0.0
    return figures.summarised_at or 0.0


def _newer(state: State, session_id: str, kept: Figures) -> Figures:
    # The plus keeps SQLite from the session's index, which would lead over all its rows.
    return _passed(state, "+session_id = ? AND id > ?", session_id, kept.extent.newest)


def _passed(state: State, condition: str, *parameters: str | int) -> Figures:
    tokens, summary = state.column("messages", "token_count", "0").partition(" AS ")[0], summary_condition()
    archived = "max(id) FILTER (WHERE compacted = 1)" if "compacted" in state.columns("messages") else "NULL"
    columns = f"sum({tokens}), count(*) FILTER (WHERE {summary}), max(timestamp) FILTER (WHERE {summary}), {archived}"
    found = Figures(extent=Extent(inode=state.inode))
    for is_live, extent, (count, summaries, summarised_at, archived_to) in _parts(
        state, columns, condition, *parameters
    ):
        part = Figures(
            extent=extent,
            token_count=int(count or 0),
            summaries=summaries,
            summarised_at=summarised_at if is_live else None,
            archived_to=None if is_live else archived_to,
        )
        found = part.behind(found)
    return found


def _extent(state: State, session_id: str) -> Extent:
    """As it is now: answered from an index alone, where the database has the agent's own."""
    found = Extent(inode=state.inode)
    for _, extent, _ in _parts(state, "NULL", "session_id = ?", session_id):
        found = extent.behind(found)
    return found


def _parts(
    state: State, columns: str, condition: str, *parameters: str | int
) -> Iterator[tuple[bool, Extent, list[Any]]]:
    """The live rows and the others, each with what *columns* say of them.

    By groups, whose order is the index's: to ask of each row whether it is live, once for each figure, took a third of
    the pass.
    """
    active, grouped = (
        ("messages.active", "GROUP BY messages.active") if "active" in state.columns("messages") else ("1", "")
    )
    sql = (
        f"SELECT {active}, count(*), min(id), max(id), sum(id), max(timestamp), {columns} "  # noqa: S608
        f"FROM messages WHERE {condition} {grouped}"
    )
    for flag, rows, first, last, ids, latest, *others in state.rows(sql, *parameters):
        if rows:
            is_live = flag is None or flag != 0
            live = {"live": rows, "first": first, "last": last, "ids": ids} if is_live else {}
            yield is_live, Extent(inode=state.inode, rows=rows, newest=last, latest=latest, **live), others


def _first_live_behind(state: State, session_id: str, archived_to: int) -> float | None:
    """A summary that begins in a way of a later release: the first row that was written anew is as good.

    A compaction stamps the rows that it keeps anew, except those of a resumed session; the summary is always new.
    """
    sql = f"SELECT min(timestamp) FROM messages WHERE session_id = ? AND {live_condition(state)} AND id > ?"  # noqa: S608
    row = state.first(sql, session_id, archived_to)
    return row[0] if row else None
