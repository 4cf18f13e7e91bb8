"""The Hermes Agent, in both its faces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from lifecycle.agents.hermes import (
    accounts,
    checkup,
    command_line,
    compacting,
    conversation,
    digest,
    face,
    launching,
    past,
    sending,
    trail,
    transcript,
    turn,
)
from lifecycle.agents.hermes.reading import ContextReader
from lifecycle.agents.hermes.unchanged import WRITTEN, Unchanged, stamp_of
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


class HermesAgent:
    """Hermes Agent 0.19 behind the interface of agents. It keeps what it counted, so a poll counts new rows only."""

    name = "hermes"

    def __init__(self) -> None:
        self._reader = ContextReader()
        self._turns = Unchanged[TurnState]()

    def is_agent(self, process: Process, worker: Worker) -> bool:
        return launching.is_agent(process, worker.profile)

    def may_run(self, command: tuple[str, ...]) -> bool:
        return command_line.arguments_of(command) is not None

    def account(self, worker: Worker) -> str | None:
        return accounts.account(worker.profile)

    def profile_of(self, process: Process) -> Path | None:
        return launching.profile_of(process)

    def read_context(
        self,
        worker: Worker,
        *,
        since: datetime | None,
        now: datetime,
        overhead: int | None = None,
        known: ContextReading | None = None,
    ) -> ContextReading:
        return self._reader.read(worker.profile, worker.worker_id, since=since, now=now, overhead=overhead, known=known)

    def read_contexts(self, asked: Iterable[Asked], *, now: datetime) -> Iterator[ContextReading]:
        return self._reader.read_each(asked, now)

    def overhead(self, worker: Worker, *, since: datetime | None) -> int | None:
        return self._reader.overhead(worker.profile, worker.worker_id, since=since)

    def look(self, worker: Worker, screen: Screen, agent: Process | None) -> PaneLook:
        return face.look(worker.profile.name, screen, agent)

    def turn(self, worker: Worker, *, since: datetime | None, known: TurnState | None = None) -> TurnState:
        mark, state = self._turns.found(
            worker.profile,
            ("turn", worker.worker_id, since),
            lambda: turn.turn(worker.profile, worker.worker_id, since=since, now=datetime.now(UTC)),
            # A compaction's lease and a silent background turn end by time alone.
            lasts=lambda state: not state.compacting and not state.delegating,
            known=(known.mark, known) if known is not None and known.mark else None,
        )
        return state.model_copy(update={"mark": mark})

    def newest_row(self, worker: Worker) -> int:
        return transcript.newest_row(worker.profile, worker.worker_id)

    def stamp(self, worker: Worker) -> object:
        return stamp_of(worker.profile, WRITTEN)

    def find_sent(self, worker: Worker, text: str, *, after_row: int) -> SentRow | None:
        return transcript.find_sent(worker.profile, worker.worker_id, text, after_row=after_row)

    def find_reply(self, worker: Worker, sent: SentRow, text: str) -> Reply | None:
        return transcript.find_reply(worker.profile, worker.worker_id, sent, text)

    def digest(self, worker: Worker, *, since: datetime | None) -> Digest:
        return digest.digest(worker.profile, worker.worker_id, since=since)

    def past_sessions(self, worker: Worker) -> tuple[PastSession, ...]:
        return past.past_sessions(worker.profile, worker.worker_id)

    def past_messages(self, worker: Worker, session: PastSession, *, after_row: int) -> tuple[PastMessage, ...]:
        return past.past_messages(worker.profile, worker.worker_id, session, after_row=after_row)

    def conversation(self, worker: Worker, *, since: datetime | None) -> Conversation:
        return conversation.conversation(worker.profile, worker.worker_id, since=since)

    def trail(self, worker: Worker, *, session_id: str | None, since: datetime | None, large: LargeRule) -> Trail:
        return trail.trail(worker.profile, worker.worker_id, session_id=session_id, since=since, large=large)

    def check_sendable(self, text: str, face: Face, worker: Worker, *, busy: bool) -> None:
        sending.check_sendable(text, face, worker.profile, busy=busy)

    def shows_text(self, look: PaneLook, text: str) -> bool:
        return sending.shows_text(look, text)

    def queues_while_busy(self, worker: Worker, face: Face) -> bool:
        return sending.queues_while_busy(worker.profile, face)

    def launch_spec(self, worker: Worker, live: Process | None, environment: Mapping[str, str]) -> LaunchSpec:
        return launching.launch_spec(worker, live, environment)

    def preflight(self, worker: Worker, launch: LaunchSpec) -> list[str]:
        return launching.preflight(worker, launch)

    def remarks(self, worker: Worker) -> list[Remark]:
        return checkup.remarks(worker)

    def background_processes(self, worker: Worker) -> list[int]:
        return launching.background_processes(worker.profile)

    def asked_first(self, tree: tuple[ProcessId, ...]) -> tuple[ProcessId, ...]:
        return launching.asked_first(tree)

    def compact_command(self, own_words: str, quoted: str, face: Face) -> str:
        return compacting.compact_command(own_words, quoted, face)
