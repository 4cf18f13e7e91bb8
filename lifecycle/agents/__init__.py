"""Kinds of agent, each one module behind one small interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol

from lifecycle.conversation import Conversation
from lifecycle.launch import LaunchSpec
from lifecycle.past import PastMessage, PastSession
from lifecycle.processes import Process, ProcessId
from lifecycle.reading import Asked, ContextReading
from lifecycle.remark import Remark
from lifecycle.screen import Face, PaneLook, Screen
from lifecycle.trail import LargeRule, Trail
from lifecycle.transcript import Digest, Reply, SentRow, TurnState
from lifecycle.worker import Worker


class Agent(Protocol):
    """What Afresh needs to know of one kind of agent. Nothing here types, starts or stops anything."""

    name: str

    def is_agent(self, process: Process, worker: Worker) -> bool:
        """Whether *process* is this worker's agent (its own profile, not a neighbour's)."""
        ...

    def may_run(self, command: tuple[str, ...]) -> bool:
        """Whether a process with this command line may be an agent of this kind: where not, `is_agent` says no."""
        ...

    def read_context(
        self,
        worker: Worker,
        *,
        since: datetime | None,
        now: datetime,
        overhead: int | None = None,
        known: ContextReading | None = None,
    ) -> ContextReading:
        """Measure the worker's context. Never raises for what it finds: an unreadable one is `unknown`.

        *since* is the start of the agent process, if known: a session not seen since then is not the current one.
        *overhead* is what `overhead` learned; it makes a counted reading better. *known* is an earlier reading, of
        this or another process: what has not changed since need not be read or counted again.
        """
        ...

    def read_contexts(self, asked: Iterable[Asked], *, now: datetime) -> Iterator[ContextReading]:
        """As `read_context`, of many and in their order: what can be done at the same time is."""
        ...

    def overhead(self, worker: Worker, *, since: datetime | None) -> int | None:
        """Tokens of a call that stand in no row (tool schemas), by the last exact reading; None without one."""
        ...

    def look(self, worker: Worker, screen: Screen, agent: Process | None) -> PaneLook:
        """What the pane means. *agent* is the agent's process in the pane's tree, None where there is none."""
        ...

    def turn(self, worker: Worker, *, since: datetime | None, known: TurnState | None = None) -> TurnState:
        """Where the current session stands. *known* is what an earlier look found: it saves one at what is unchanged.

        Raises:
            ContextUnreadable
        """
        ...

    def newest_row(self, worker: Worker) -> int:
        """The highest row id of any session, 0 in an empty or missing database.

        Raises:
            ContextUnreadable
        """
        ...

    def stamp(self, worker: Worker) -> object:
        """Another value as soon as the agent has written what the methods below would find. It costs microseconds.

        Of two writes within one tick of the file system's clock the second one may not show.
        """
        ...

    def find_sent(self, worker: Worker, text: str, *, after_row: int) -> SentRow | None:
        """The newest active user row behind *after_row* that holds exactly *text* (ends stripped).

        Raises:
            ContextUnreadable
        """
        ...

    def find_reply(self, worker: Worker, sent: SentRow, text: str) -> Reply | None:
        """The agent's closed answer to our row; follows the row through compaction, by its text.

        Raises:
            ContextUnreadable
        """
        ...

    def check_sendable(self, text: str, face: Face, worker: Worker, *, busy: bool) -> None:
        """Refuse text that this face would run, complete, collapse or swallow.

        Raises:
            TextNotSendable
        """
        ...

    def shows_text(self, look: PaneLook, text: str) -> bool:
        """Whether the input line of *look* holds our *text*, whole or as a paste placeholder."""
        ...

    def queues_while_busy(self, worker: Worker, face: Face) -> bool:
        """Whether text sent during a turn is kept and answered after it, by the worker's own configuration."""
        ...

    def launch_spec(self, worker: Worker, live: Process | None, environment: Mapping[str, str]) -> LaunchSpec:
        """How to start the worker clean.

        Raises:
            LaunchUnknown: nobody says how.
        """
        ...

    def preflight(self, worker: Worker, launch: LaunchSpec) -> list[str]:
        """What is missing to start the worker again, a sentence each; empty when all is there."""
        ...

    def remarks(self, worker: Worker) -> list[Remark]:
        """What should be set otherwise for a worker that is renewed, with what mends it; empty where nothing is."""
        ...

    def background_processes(self, worker: Worker) -> list[int]:
        """Pids that the agent recorded as its own background processes."""
        ...

    def asked_first(self, tree: tuple[ProcessId, ...]) -> tuple[ProcessId, ...]:
        """Those of the agent's *tree*, parents first, that a TERM lets close their session cleanly."""
        ...

    def account(self, worker: Worker) -> str | None:
        """What the worker's limits and its login belong to, the same for all that share it; None where nobody knows.

        A name for people and ledger: it tells which credential is used and never holds it.
        """
        ...

    def profile_of(self, process: Process) -> Path | None:
        """The profile that *process* runs on, if it is an agent of this kind."""
        ...

    def digest(self, worker: Worker, *, since: datetime | None) -> Digest:
        """What the current session's rows say by themselves, for a handoff that nobody writes.

        Raises:
            ContextUnreadable
        """
        ...

    def past_sessions(self, worker: Worker) -> tuple[PastSession, ...]:
        """The sessions with rows that are no longer in the worker's context, in the order in which they began.

        Raises:
            ContextUnreadable
        """
        ...

    def past_messages(self, worker: Worker, session: PastSession, *, after_row: int) -> tuple[PastMessage, ...]:
        """The next such rows of *session* behind *after_row*, by row; none where there is nothing more.

        Raises:
            ContextUnreadable
        """
        ...

    def conversation(self, worker: Worker, *, since: datetime | None) -> Conversation:
        """What was said and done in the current session, before its compactions too.

        Raises:
            ContextUnreadable
        """
        ...

    def trail(self, worker: Worker, *, session_id: str | None, since: datetime | None, large: LargeRule) -> Trail:
        """What the worker did in its whole conversation: *session_id*'s, or without one the current session's.

        Raises:
            ContextUnreadable
        """
        ...

    def compact_command(self, own_words: str, quoted: str, face: Face) -> str:
        """What makes the agent compact its own context when it is typed into a free input line of *face*.

        The focus is *own_words*, and *quoted*, which others wrote, only where and as far as the face takes it safely.
        """
        ...
