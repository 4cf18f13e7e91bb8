"""Workers at rest: a profile each, and a pane in which a small process shows Hermes's idle screen."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from lifecycle.host import Host
from lifecycle.settings import load_settings
from tests.agents.ground import Ground
from tests.bench.fleet import make_session
from tests.bench.readings import settled
from tests.lifecycle.hermes.hermes_profile import EPOCH

HEALTHY, DUE = 4_000, 60_000
"""Tokens of a session below the soft limit, and of one over the handoff limit."""

AT_ONCE = 25
"""Sessions that one call of tmux makes: a command line of its ends at 16 kB."""

_CONFIG = """\
automatic = true
[policy]
soft = 30000
handoff = 50000
hard = 200000
max_compactions = 99
"""
# bash, for its exec can give a program another name: the pane's process is taken for Hermes by that name.
_PANE = """printf -v rule '%.0s─' {1..200}
printf '\\n ⚕ stub-model │ 13.6K/200K │ 7%% │ ✓ 0s\\n%s\\n%s ❯ \\n%s\\n' "$rule" "$1" "$rule"
printf '\\033[2A\\033[%dG' $((${#1} + 4))
exec -a hermes cat
"""


class Crew:
    """*size* workers, of whom *due* are over their handoff limit; all idle."""

    def __init__(self, ground: Ground, size: int, *, due: int = 0) -> None:
        self.ground = ground
        self.names = [f"swarm{number + 1}" for number in range(size)]
        self._make_profiles(due)
        path = ground.home / "afresh.toml"
        path.write_text(_CONFIG)
        path.chmod(0o600)

    def _make_profiles(self, due: int) -> None:
        begun = time.time() - 7200 - EPOCH
        models = self.ground.root / "models"
        for name, tokens in (("healthy", HEALTHY), ("due", DUE)):
            make_session(models / name, tokens=tokens, rows=tokens // 200, log=True, seed=3, begun=begun)
            with closing(sqlite3.connect(models / name / "state.db")) as owner, owner:
                # It lies ahead, for a session not seen since its agent's start is none of that agent's.
                newest = "UPDATE messages SET timestamp = ? WHERE id = (SELECT max(id) FROM messages)"
                owner.execute(newest, (time.time() + 900,))
        profiles = [self.ground.hermes_root / "profiles" / name for name in self.names]
        for number, profile in enumerate(profiles):
            shutil.copytree(models / ("due" if number < due else "healthy"), profile)
        settled(profiles)

    def start(self) -> None:
        """A session each, and wait until all panes show their screens."""
        script = self.ground.root / "pane.sh"
        script.write_text(_PANE)
        for first in range(0, len(self.names), AT_ONCE):
            words: list[str] = []
            for name in self.names[first : first + AT_ONCE]:
                home = f"HERMES_HOME={self.ground.hermes_root / 'profiles' / name}"
                words += ["new-session", "-d", "-s", f"swarm-{name}", "-x", "200", "-y", "50", "-e", home]
                words += ["bash", str(script), name, ";"]
            self.ground.tmux(*words[:-1])
        deadline = time.monotonic() + 120
        while any("❯" not in self._screen(name) for name in self.names[-AT_ONCE:]):
            if time.monotonic() > deadline:
                pytest.fail("the panes do not show their screens")

    def _screen(self, name: str) -> str:
        return self.ground.tmux("capture-pane", "-p", "-t", f"=swarm-{name}:")

    @contextmanager
    def host(self) -> Iterator[Host]:
        with Host.opened(load_settings(environ=self.ground.environment)) as host:
            yield host


@contextmanager
def crew_of(size: int, *, due: int = 0) -> Iterator[Crew]:
    """Workers whose environment is this process's, until the end of the block."""
    ground = Ground()
    try:
        crew = Crew(ground, size, due=due)
        crew.start()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in ground.environment.items():
                patch.setenv(name, value)
            yield crew
    finally:
        ground.clear()
