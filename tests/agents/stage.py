"""A worker on its ground: its folders, its tmux session, a running agent, and what a test does with them."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from lifecycle.paths import WorkerPaths, paths_of
from lifecycle.settings import Settings
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until
from lifecycle.worker import Worker
from tests.agents.ground import Ground, has_ended
from tests.agents.manners import Manners, write_manners

_T = TypeVar("_T")
PATIENCE = 60.0
"""Seconds that anything may take on a machine where ten programs want a core; only a test that fails waits them out."""

_REPOSITORY = Path(__file__).parents[2]
_WRAPPER = """#!{python}
import sys
sys.path.insert(0, {repository!r})
from tests.agents.scripted_agent import main
sys.exit(main())
"""
# Hermes waits for a decision, downloads or forks where one of these is missing.
_CONFIG = """\
model: {{default: scripted-model, provider: custom, base_url: "{base_url}", api_key: dummy, context_length: {window}}}
security: {{allow_lazy_installs: false, tirith_enabled: false}}
model_catalog: {{enabled: false}}
display: {{busy_input_mode: queue}}
memory: {{nudge_interval: 0}}
skills: {{creation_nudge_interval: 0}}
max_concurrent_sessions: 1
{more}"""


@dataclass(frozen=True)
class Row:
    """One row of the agent's transcript."""

    id: int
    session_id: str
    role: str
    content: str
    finish_reason: str | None


class Stage:
    """One worker on a ground: its folders, its session `swarm-<id>`, and what a test does with its agent."""

    def __init__(
        self,
        worker_id: str = "swarm1",
        *,
        ground: Ground | None = None,
        window: int = 200_000,
        command: Sequence[str] | None = None,
        base_url: str = "http://127.0.0.1:9/v1",
        config: str = "",
        face: str = "cli",
    ) -> None:
        self.worker_id, self.window, self.face = worker_id, window, face
        self.ground = ground or Ground()
        self.session = f"swarm-{worker_id}"
        self.profile = self.ground.hermes_root / "profiles" / worker_id
        self.cwd = self.ground.root / "work" / worker_id
        for folder in (self.profile, self.cwd):
            folder.mkdir(parents=True)
        (self.profile / "config.yaml").write_text(_CONFIG.format(base_url=base_url, window=window, more=config))
        # a fresh cache of Hermes's own: it asks no package index whether it is up to date
        (self.profile / ".update_check").write_text(
            f'{{"ts": {time.time()}, "behind": 0, "rev": null, "ver": "0.19.0"}}'
        )
        self.command = tuple(command) if command else (str(self._scripted_hermes()), "chat", "--cli")
        self._manners = Manners(context_length=window)

    @property
    def root(self) -> Path:
        return self.ground.root

    @property
    def paths(self) -> WorkerPaths:
        return paths_of(self.worker(), memory_root=self.ground.memory_root, home=self.ground.home)

    def another(self, worker_id: str) -> Stage:
        """A second scripted worker on the same ground, not yet started."""
        return Stage(worker_id, ground=self.ground, window=self.window)

    def worker(self, **changes: Any) -> Worker:
        """The worker as the domain knows it."""
        return Worker(
            worker_id=self.worker_id,
            profile=self.profile,
            session=self.session,
            socket=self.ground.socket,
            cwd=self.cwd,
        ).model_copy(update=changes)

    def settings(self, **changes: Any) -> Settings:
        ground = self.ground
        given = {
            "home": ground.home,
            "hermes_root": ground.hermes_root,
            "memory_root": ground.memory_root,
            "socket": ground.socket,
        }
        return Settings.model_validate({**given, **changes})

    def behave(self, **knobs: Any) -> None:
        """Change how the scripted agent behaves, from its next decision on."""
        self._manners = replace(self._manners, **knobs)
        write_manners(self.profile / "script.json", self._manners)

    def start(self, *, environment: Mapping[str, str] | None = None, **knobs: Any) -> None:
        """Start the agent as the program of the session's only pane."""
        self.behave(**knobs)
        given = {"HERMES_HOME": str(self.profile), "HOME": self.ground.environment["HOME"], **(environment or {})}
        flags = [flag for name, value in given.items() for flag in ("-e", f"{name}={value}")]
        size = ("-x", "200", "-y", "50")
        self.ground.tmux("new-session", "-d", "-s", self.session, *size, "-c", str(self.cwd), *flags, *self.command)

    def stop(self, within: float = PATIENCE) -> None:
        """End the agent as an operator would, and wait until it is gone."""
        agent = self.pane_pid
        self.ground.tmux("kill-session", "-t", f"={self.session}")
        wait_until(lambda: has_ended(agent), timedelta(seconds=within), SystemClock(), timedelta(seconds=0.02))

    @property
    def pane_pid(self) -> int:
        return int(self.format("#{pane_pid}"))

    def format(self, wanted: str) -> str:
        return self.ground.tmux("display-message", "-p", "-t", f"={self.session}:", wanted).strip()

    def screen(self) -> str:
        return self.ground.tmux("capture-pane", "-p", "-J", "-t", f"={self.session}:")

    def input_line(self) -> str | None:
        """What stands between the last two rules as wide as the pane; None where there is no input line."""
        lines, width = self.screen().splitlines(), int(self.format("#{pane_width}"))
        rules = [at for at, line in enumerate(lines) if line.rstrip() == "─" * width]
        return "\n".join(line.rstrip() for line in lines[rules[-2] + 1 : rules[-1]]) if len(rules) > 1 else None

    def is_ready(self) -> bool:
        if self.face == "cli":
            return self.input_line() == f"{self.worker_id} ❯"
        title, column = self.format("#{pane_title}\t#{cursor_x}").split("\t")
        bars = [line for line in self.screen().splitlines() if line.startswith(" ─ ") and " │ " in line]
        return (
            bool(bars)
            and (bars[-1].startswith(" ─ ready │ ") or (bars[-1].startswith(" ─ running… │ ") and " │ ✓ " in bars[-1]))
            and title[:2] == "✓ "
            and int(column) == len(self.worker_id) + 4
        )

    def holds(self, text: str) -> bool:
        """Whether the input line holds *text*, or a placeholder for a long paste."""
        line = self.screen().rpartition("❯")[2]
        return text.splitlines()[0][:40] in line or "[Pasted text #" in line or "[[ " in line

    def is_busy(self) -> bool:
        """Whether a scripted agent is in a turn. A line that is not ready may only hold what is not yet entered."""
        return (self.input_line() or "").startswith("⚕ ❯")

    def wait_ready(self, within: float = PATIENCE) -> None:
        """Wait for an empty input line, twice in a row."""
        self.wait(lambda: self.is_ready() and self.is_ready(), within, "READY")

    def wait_busy(self) -> None:
        """Wait until a scripted agent has begun a turn: what was typed before belongs to it, a new script does not."""
        self.wait(self.is_busy, what="BUSY")

    def wait(self, probe: Callable[[], _T | None], within: float = PATIENCE, what: str = "the condition") -> _T:
        """Return the first true result of *probe*, or fail and show the screen."""
        try:
            return wait_until(
                lambda: probe() or None, timedelta(seconds=within), SystemClock(), timedelta(seconds=0.05)
            )
        except DeadlinePassed:
            pytest.fail(f"{what} did not come in {within} s:\n{self.screen()}")

    def paste(self, text: str) -> None:
        """One bracketed paste, without Enter.

        The brackets are in the text: tmux puts none where the face asks for none just then, as Hermes does while it
        prints, and the lines would fall apart into messages.
        """
        self.ground.tmux("load-buffer", "-b", self.worker_id, "-", text=f"\x1b[200~{text}\x1b[201~")
        self.ground.tmux("paste-buffer", "-d", "-b", self.worker_id, "-t", f"={self.session}:")

    def press(self, *keys: str) -> None:
        self.ground.tmux("send-keys", "-t", f"={self.session}:", *keys)

    def say(self, text: str, within: float = PATIENCE) -> Row:
        """Send *text* as one message and return its row. Enter is pressed again while the text stands in the line."""
        before = max((row.id for row in self.rows()), default=0)
        self.paste(text)

        def arrived() -> Row | None:
            found = [
                row for row in self.rows() if row.id > before and row.role == "user" and row.content == text.strip()
            ]
            if not found and self.holds(text):
                self.press("Enter")
            return found[0] if found else None

        return self.wait(arrived, within, f"the row of {text[:40]!r}")

    def answer_to(self, row: Row, within: float = PATIENCE) -> Row:
        """The closed assistant row behind *row*."""

        def answered() -> Row | None:
            later = [found for found in self.rows() if found.id > row.id and found.session_id == row.session_id]
            return next((found for found in later if found.role == "assistant" and found.finish_reason == "stop"), None)

        return self.wait(answered, within, f"the answer to {row.content[:40]!r}")

    def fill(self, tokens: int) -> None:
        """Give the session so many tokens: the last `in=` of the log says exactly so. Ends READY."""
        self.answer_to(self.say(f"carry on [[tokens {tokens}]]"))
        self.wait_ready()

    def rows(self) -> list[Row]:
        """Every row of the database, oldest first."""
        path = self.profile / "state.db"
        if not path.exists():
            return []
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db, suppress(sqlite3.OperationalError):
            query = "SELECT id, session_id, role, coalesce(content, ''), finish_reason FROM messages ORDER BY id"
            return [Row(*row) for row in db.execute(query)]
        return []

    def starts(self) -> list[int]:
        """The pids of every scripted agent that was started on this profile."""
        path = self.profile / "starts"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def ledger(self) -> list[str]:
        """The lines that the agent's work left in its folder."""
        path = self.cwd / "ledger.txt"
        return path.read_text().splitlines() if path.exists() else []

    def _scripted_hermes(self) -> Path:
        program = self.ground.root / "bin" / "hermes"
        program.parent.mkdir(exist_ok=True)
        program.write_text(_WRAPPER.format(python=sys.executable, repository=str(_REPOSITORY)))
        program.chmod(0o755)
        return program
