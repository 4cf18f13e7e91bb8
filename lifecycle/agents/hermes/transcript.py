"""What arrived in a worker's transcript, and what was answered to it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from lifecycle.agents.hermes.database import State, open_state
from lifecycle.agents.hermes.message import SIGNALLED, Message, live_condition, read_messages
from lifecycle.agents.hermes.session import Session, children, find
from lifecycle.transcript import Reply, SentRow

ONE_WRITE = 5e-6
"""Seconds. `archive_and_compact` steps its time stamps by 1e-6; rows that were lived are a transaction apart."""


def newest_row(profile: Path, worker_id: str) -> int:
    """The highest row id of any session, 0 in an empty or missing database.

    Raises:
        ContextUnreadable
    """
    with open_state(profile, worker_id) as state:
        row = state.first("SELECT max(id) FROM messages") if state else None
        return (row and row[0]) or 0


def find_sent(profile: Path, worker_id: str, text: str, *, after_row: int) -> SentRow | None:
    """The newest live user row behind *after_row* that holds exactly *text*, ends stripped.

    Rows of delegates and of `/background` turns are not the worker's.

    Raises:
        ContextUnreadable
    """
    with open_state(profile, worker_id) as state:
        if state is None:
            return None
        condition = f"messages.role = 'user' AND messages.id > ? AND {live_condition(state)}"
        for message in reversed(read_messages(state, condition, after_row)):
            session = find(state, message.session_id) if message.says(text) else None
            if session is not None and session.is_main:
                return SentRow(session_id=message.session_id, row_id=message.row_id, at=_moment(message.at))
    return None


def find_reply(profile: Path, worker_id: str, sent: SentRow, text: str) -> Reply | None:
    """The last closed answer to our row, before any later user row but Hermes's own.

    A compaction archives our row, and may insert it anew under another id or in another session: the row is
    followed by its *text* through all its copies. An answer that was archived with the row is still its
    answer; what came before the row, or answers somebody else, never is. Undone rows are gone.

    Raises:
        ContextUnreadable
    """
    with open_state(profile, worker_id) as state:
        session = find(state, sent.session_id) if state else None
        if state is None or session is None:
            return None
        for generation in _generations(state, session, sent):
            answer, is_over = _answer(_behind(generation, text))
            if answer is not None:
                return Reply(
                    session_id=answer.session_id, row_id=answer.row_id, at=_moment(answer.at), text=answer.text
                )
            if is_over:
                break
    return None


def _generations(state: State, session: Session, sent: SentRow) -> list[list[Message]]:
    """The rows from ours on, cut where a compaction wrote the history anew; undone rows are left out."""
    generations: list[list[Message]] = []
    for link in _continued(state, session):
        rows = read_messages(state, "messages.session_id = ? AND messages.id >= ?", link, sent.row_id)
        rows = [row for row in rows if row.live or row.archived]
        earlier = state.rows("SELECT timestamp FROM messages WHERE session_id = ? AND id < ?", link, sent.row_id)
        marks = rewritten(rows, {at for (at,) in earlier})
        for index, row in enumerate(rows):
            if index == 0 or (marks[index] and not marks[index - 1]):
                generations.append([])
            generations[-1].append(row)
    return generations


def rewritten(rows: list[Message], stamps: set[float]) -> list[bool]:
    """Which rows a compaction wrote: a microsecond apart, all in one transaction, or with their old time stamps."""
    marks = []
    for index, row in enumerate(rows):
        around = rows[max(0, index - 1) : index + 2]
        is_close = any(other is not row and abs(other.at - row.at) < ONE_WRITE for other in around)
        marks.append(is_close or row.at in stamps)
        stamps.add(row.at)
    return marks


def _behind(generation: list[Message], text: str) -> list[Message]:
    """The rows behind the last copy of ours."""
    for index in range(len(generation) - 1, -1, -1):
        if generation[index].role == "user" and generation[index].says(text):
            return generation[index + 1 :]
    return []


def _answer(following: list[Message]) -> tuple[Message | None, bool]:
    """The answer among the rows behind ours, and whether the search is over.

    It is not over where a compaction caught the turn still open: the next generation goes on with it.
    """
    found: Message | None = None
    for message in following:
        if message.is_closed_answer:
            found = message
        elif message.role == "user" and not message.is_hermes_own and not message.is_summary:
            return found, True
        elif found is not None and message.text.startswith(SIGNALLED):
            break
    return found, False


def _continued(state: State, session: Session) -> list[str]:
    """The session and those that compactions went on in."""
    found = [session]
    for link in found:
        if link.end_reason == "compression":
            found.extend(
                child
                for child in children(state, link)
                if not child.is_delegate and not child.is_branch and child not in found
            )
    return [link.session_id for link in found]


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
