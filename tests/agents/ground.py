"""Folders and a tmux server of one test's own, gone at its end."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until
from tests.folders import clear_abandoned, give_up, own_folder

PREFIX = "afresh-ground-"


class Ground:
    """What the workers of one test share: a folder with a short name and a private tmux server.

    *inside* is put before each command that is run here: it enters a network namespace, say.
    """

    def __init__(self, inside: Sequence[str] = ()) -> None:
        self.inside = tuple(inside)
        # tmux's socket must fit into 108 bytes, and pytest's own folders do not always
        self.root = own_folder(PREFIX)
        self.hermes_root = self.root / "hermes"
        self.memory_root = self.root / "memory-root"
        self.home = self.root / "afresh"
        self.socket = str(self.root / "tmux")
        for folder in (self.hermes_root / "profiles", self.memory_root, self.home, self.root / "home"):
            folder.mkdir(parents=True)
        self.home.chmod(0o700)

    @property
    def environment(self) -> dict[str, str]:
        """For programs that are run beside the test: this ground, and nothing of the developer's."""
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.root / "home"),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "HERMES_HOME": str(self.hermes_root),
            "HERMES_SWARM_MEMORY_ROOT": str(self.memory_root),
            "AFRESH_HOME": str(self.home),
            "AFRESH_TMUX_SOCKET": self.socket,
        }

    def tmux(self, *arguments: str, text: str | None = None, check: bool = True) -> str:
        done = subprocess.run(
            [*self.inside, "tmux", "-u", "-S", self.socket, "-f", "/dev/null", *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env={name: self.environment[name] for name in ("PATH", "HOME", "LANG", "TERM")},
            timeout=60,
        )
        if check and done.returncode:
            pytest.fail(f"tmux {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def clear(self) -> None:
        """End every process that was started here, each by its id, then tmux, and remove the folder."""
        end_all_in(self.root)
        give_up(self.root)


def end_all_in(root: Path) -> None:
    """End what runs on the ground in *root*: agents, old and new, what they started, and tmux; unmount its disks."""
    for process in _processes(root):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    subprocess.run(["tmux", "-S", str(root / "tmux"), "kill-server"], capture_output=True, check=False, timeout=60)
    try:
        wait_until(lambda: not _processes(root), timedelta(seconds=60), SystemClock(), timedelta(seconds=0.02))
    except DeadlinePassed:
        pytest.fail(f"still running: {_processes(root)}")
    for disk in [part.mountpoint for part in psutil.disk_partitions(all=True)]:
        if disk.startswith(f"{root}/"):
            subprocess.run(["umount", "-l", disk], check=False, timeout=60)


def clear_abandoned_grounds() -> list[Path]:
    """End and remove what the tests of a killed run left."""

    def clear(root: Path) -> None:
        end_all_in(root)
        shutil.rmtree(root)

    return clear_abandoned(PREFIX, clear)


def _processes(root: Path) -> list[psutil.Process]:
    """Everything whose HERMES_HOME lies here."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("HERMES_HOME", "").startswith(f"{root}/") and not has_ended(process.pid):
                found.append(process)
    return found


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or only waits to be reaped: an orphan's new parent takes its time."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
