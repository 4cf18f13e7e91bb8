"""Adapter: git, run so that nothing but git itself runs.

A repository's own configuration can name programs: hooks, filters, a file-system monitor, signing, transports. All of
them are overruled, and what a partial clone lacks is not fetched. Nothing here changes index, HEAD, stash or files.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from lifecycle.errors import GitRefused

_OVERRULED = {
    "commit.gpgsign": "false",
    "core.compression": "1",  # a snapshot is taken while a renewal waits for it
    "core.fsmonitor": "false",
    "core.hookspath": "/dev/null",
    "core.logallrefupdates": "false",
    "core.quotepath": "false",
    "core.safecrlf": "false",
    "core.splitindex": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
}
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "afresh",
    "GIT_AUTHOR_EMAIL": "afresh@localhost",
    "GIT_COMMITTER_NAME": "afresh",
    "GIT_COMMITTER_EMAIL": "afresh@localhost",
}
_KEPT = ("HOME", "PATH", "TMPDIR", "XDG_CONFIG_HOME")
"""Of our own environment; no GIT_* of whoever started us reaches git."""

_LETS_GO = 1.0
"""Seconds between TERM, on which git removes its lock files, and KILL."""


_SILENT = "it says nothing"
_TOO_OLD = "git is older than 2.31: it cannot be kept from running a repository's hooks"


class Git:
    """git in one folder, with a deadline for all its calls together.

    Raises:
        GitRefused: from every method.
    """

    def __init__(self, folder: Path, *, within: timedelta) -> None:
        self.folder = folder
        self._until = time.monotonic() + within.total_seconds()
        self._within = within
        self._overruled = dict(_OVERRULED)
        self._overruled |= self._filters_off()

    def left(self) -> float:
        """Seconds until the deadline.

        Raises:
            GitRefused: it has passed.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            msg = f"{self.folder}: git was not done after {self._within.total_seconds():g} s"
            raise GitRefused(msg)
        return left

    def __call__(
        self, *arguments: str, text: bytes = b"", environment: Mapping[str, str] | None = None, fails: bool = False
    ) -> bytes:
        """What `git *arguments` prints. With *fails* a refusal is no error but empty output."""
        with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as given:
            given.write(text)
            given.seek(0)
            try:
                child = subprocess.Popen(
                    ["git", *arguments],
                    cwd=self.folder,
                    env={**self._environment(), **(environment or {})},
                    stdin=given,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    start_new_session=True,
                )
            except OSError as error:
                msg = f"{self.folder}: git cannot be run: {error.strerror}"
                raise GitRefused(msg) from error
            with child:
                try:
                    printed, _ = child.communicate(timeout=self.left())
                except (subprocess.TimeoutExpired, GitRefused):
                    _end(child)
                    self.left()
                    raise
            if child.returncode == 0:
                return printed
            if fails:
                return b""
            said.seek(0)
            lines = said.read(4_000).decode(errors="replace").strip().splitlines() or [_SILENT]
        msg = f"{self.folder}: git {arguments[0]}: {_advised(lines)}"
        raise GitRefused(msg)

    def line(self, *arguments: str, fails: bool = False) -> str:
        """The one line that a call prints."""
        return os.fsdecode(self(*arguments, fails=fails)).rstrip("\n")

    def _filters_off(self) -> dict[str, str]:
        """Settings that take their programs from all filters that are configured, wherever."""
        try:
            found = self("config", "-z", "--name-only", "--get-regexp", r"^(filter\..*|core\.hookspath)$")
        except GitRefused as error:
            # Our own core.hookspath is always found, unless git does not know the way in which it is set.
            if _SILENT not in error.detail:
                raise
            raise GitRefused(_TOO_OLD) from error
        names = [os.fsdecode(name) for name in found.split(b"\0") if name]
        filters = {name.rpartition(".")[0] for name in names if name.startswith("filter.")}
        ends = {"clean": "", "smudge": "", "process": "", "required": "false"}
        return {f"{name}.{key}": value for name in filters for key, value in ends.items()}

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        numbered = {"GIT_CONFIG_COUNT": str(len(self._overruled))}
        for number, (key, value) in enumerate(self._overruled.items()):
            numbered |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return {**kept, **_ENVIRONMENT, **numbered}


def _advised(lines: list[str]) -> str:
    """Git's own first line, or what to do."""
    if "dubious ownership" in lines[0]:
        return "the repository belongs to someone else; `git config --global --add safe.directory …` lets it be read"
    return lines[0].removeprefix("fatal: ")


def _end(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
        try:
            child.wait(_LETS_GO)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
