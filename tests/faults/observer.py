"""Judging what a case came to, from processes, the agents' databases, tmux and files; the ledger is one witness."""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from lifecycle.ledger import Ledger
from lifecycle.prompts import OUR_MARKERS, RESUME
from lifecycle.renewal import End, Renewal
from tests.agents.stage import Row, Stage

SAMPLED_EVERY = 0.05
"""Seconds between two looks at all processes."""

_YOUNG = 3.0
"""Seconds after which what a process is called and given does not change any more."""

_STATE = re.compile(r"^\W*STATE\b.*(IN_PROGRESS|DONE|BLOCKED|NEEDS_INPUT|HANDOFF)", re.MULTILINE)


@dataclass
class Seen:
    """One agent process, by pid and start."""

    pid: int
    started: int
    profile: str
    parent: int
    gone_unsaved: bool = False


@dataclass
class Sight:
    """What all samples together have shown of one profile."""

    agents: dict[tuple[int, int], Seen] = field(default_factory=dict)
    alive: set[tuple[int, int]] = field(default_factory=set)
    doubled: set[tuple[int, ...]] = field(default_factory=set)


class Watch:
    """Samples every process of the host on a thread of its own: which agents live, and how many of a profile."""

    def __init__(self, stages: list[Stage], saved_in: Path) -> None:
        self._profiles = {str(stage.profile) for stage in stages}
        self._saved_in = saved_in
        self._sights = {profile: Sight() for profile in self._profiles}
        self._settled: set[tuple[int, int]] = set()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.samples = 0

    def __enter__(self) -> Self:
        self.sample()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def add(self, stage: Stage) -> None:
        """Watch over one more worker from now on."""
        with self._lock:
            self._profiles.add(str(stage.profile))
            self._sights[str(stage.profile)] = Sight()

    def _run(self) -> None:
        while not self._over.wait(SAMPLED_EVERY):
            self.sample()

    def sample(self) -> None:
        """One look. The list of pids is taken first: two agents that are found alive were alive at the same time."""
        with self._lock:
            is_saved = any(self._saved_in.glob("*.md"))
            alive: dict[str, dict[tuple[int, int], Seen]] = {profile: {} for profile in self._profiles}
            for pid in [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]:
                seen = self._agent(pid)
                if seen is not None:
                    alive[seen.profile][(seen.pid, seen.started)] = seen
            for profile, found in alive.items():
                self._note(self._sights[profile], found, is_saved)
            self.samples += 1

    def _note(self, sight: Sight, found: dict[tuple[int, int], Seen], is_saved: bool) -> None:
        pids = {seen.pid for seen in found.values()}
        roots = {key: seen for key, seen in found.items() if seen.parent not in pids}
        if len(roots) > 1:
            sight.doubled.add(tuple(sorted(seen.pid for seen in roots.values())))
        for key in sight.alive - roots.keys():
            sight.agents[key].gone_unsaved = not is_saved
        sight.agents |= {key: seen for key, seen in roots.items() if key not in sight.agents}
        sight.alive = set(roots)

    def _agent(self, pid: int) -> Seen | None:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            state, parent, started = fields[0], int(fields[1]), int(fields[19])
            if state in "ZX" or (pid, started) in self._settled:
                return None
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except (OSError, IndexError):
            return None
        home = next((entry[12:].decode() for entry in environment if entry.startswith(b"HERMES_HOME=")), "")
        is_agent = any(word.endswith(b"/hermes") for word in command) and b"chat" in command
        if is_agent and home in self._profiles:
            return Seen(pid, started, home, parent)
        if _uptime() - started / os.sysconf("SC_CLK_TCK") > _YOUNG:
            self._settled.add((pid, started))
        return None

    def living(self, stage: Stage) -> list[Seen]:
        """The agents of *stage* that live now."""
        self.sample()
        sight = self._sights[str(stage.profile)]
        return [sight.agents[key] for key in sorted(sight.alive)]

    def doubled(self, stage: Stage) -> set[tuple[int, ...]]:
        return self._sights[str(stage.profile)].doubled

    def gone_unsaved(self, stage: Stage) -> list[Seen]:
        """Agents that ended while no handoff was on disk."""
        return [seen for seen in self._sights[str(stage.profile)].agents.values() if seen.gone_unsaved]


def _uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def our_texts_twice(rows: list[Row]) -> list[str]:
    """Texts of ours that one database holds more than once."""
    texts = Counter(row.content for row in rows if row.role == "user" and row.content.startswith(OUR_MARKERS))
    return [text.splitlines()[0] for text, times in texts.items() if times > 1]


def answered_sessions(rows: list[Row], old: set[str]) -> list[str]:
    """New sessions that hold a resume prompt of ours with the agent's checkpoint behind it."""
    found = []
    for asked in rows:
        if asked.role == "user" and asked.content.startswith(RESUME) and asked.session_id not in old:
            later = [row for row in rows if row.session_id == asked.session_id and row.id > asked.id]
            if any(row.role == "assistant" and _STATE.search(row.content) for row in later):
                found.append(asked.session_id)
    return found


def approvals(rows: list[Row]) -> list[Row]:
    """Traces of a dialog that someone answered."""
    return [row for row in rows if row.role == "tool" and "by the user" in row.content and "approv" in row.content]


def renewals_of(ledger: Path, worker_id: str) -> list[Renewal]:
    """What the ledger holds of a worker, newest first."""
    if not ledger.exists():
        return []
    with Ledger(ledger) as opened:
        return opened.renewals_of(worker_id, limit=1000)


def renewed(renewals: list[Renewal]) -> list[Renewal]:
    return [renewal for renewal in renewals if renewal.end is End.RENEWED]
