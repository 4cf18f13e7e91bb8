"""What the rows of a session tell in one pass; and of what was seen before, only the new rows are passed."""

from __future__ import annotations

from pathlib import Path

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
            first=earlier.first or self.first,
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
        self._kept[key] = found or _passed(state, session_id, "session_id = ?")
        return self._kept[key]


def rewritten_at(state: State, session_id: str, figures: Figures) -> float:
    """When the live rows were last rewritten by a compaction, seconds since the epoch, 0 where they never were."""
    if figures.summarised_at is None and figures.archived_to is not None:
        return _first_live_behind(state, session_id, figures.archived_to) or 0.0
    return figures.summarised_at or 0.0


def _newer(state: State, session_id: str, kept: Figures) -> Figures:
    # The plus keeps SQLite from the session's index, which would lead over all its rows.
    return _passed(state, session_id, "+session_id = ? AND id > ?", kept.extent.newest)


def _passed(state: State, session_id: str, condition: str, *parameters: int) -> Figures:
    live, summary = live_condition(state), summary_condition()
    tokens = state.column("messages", "token_count", "0").partition(" AS ")[0]
    archived = f"max(id) FILTER (WHERE compacted = 1 AND NOT ({live}))"
    has_archive = "compacted" in state.columns("messages")
    sql = (
        f"SELECT {_extent_columns(live)}, sum({tokens}), count(*) FILTER (WHERE {summary}), "  # noqa: S608
        f"max(timestamp) FILTER (WHERE {live} AND {summary}), {archived if has_archive else 'NULL'} "
        f"FROM messages WHERE {condition}"
    )
    *extent, count, summaries, summarised_at, archived_to = next(state.rows(sql, session_id, *parameters))
    return Figures(
        extent=_made(state, *extent),
        token_count=int(count or 0),
        summaries=summaries,
        summarised_at=summarised_at,
        archived_to=archived_to,
    )


def _extent(state: State, session_id: str) -> Extent:
    """As it is now: answered from an index alone, where the database has the agent's own."""
    sql = f"SELECT {_extent_columns(live_condition(state))} FROM messages WHERE session_id = ?"  # noqa: S608
    return _made(state, *next(state.rows(sql, session_id)))


def _extent_columns(live: str) -> str:
    of_live = f"FILTER (WHERE {live})"
    live_ones = f"count(*) {of_live}, min(id) {of_live}, max(id) {of_live}, sum(id) {of_live}"
    return f"count(*), max(id), {live_ones}, max(timestamp)"


def _made(state: State, *found: int | None) -> Extent:
    names = ("rows", "newest", "live", "first", "last", "ids", "latest")
    return Extent(inode=state.inode, **{name: number or 0 for name, number in zip(names, found, strict=True)})


def _first_live_behind(state: State, session_id: str, archived_to: int) -> float | None:
    """A summary that begins in a way of a later release: the first row that was written anew is as good.

    A compaction stamps the rows that it keeps anew, except those of a resumed session; the summary is always new.
    """
    sql = f"SELECT min(timestamp) FROM messages WHERE session_id = ? AND {live_condition(state)} AND id > ?"  # noqa: S608
    row = state.first(sql, session_id, archived_to)
    return row[0] if row else None
