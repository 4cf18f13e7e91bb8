"""How tmux is called: libtmux with a time-out, a clean environment and errors that say what is the matter.

Every call is one short-lived client. It inherits none of our files (a lock that the tmux server inherits is held
for the server's life: job-hunter-team #214), none of our process group, and only the few variables that a
terminal needs, because a server that this call happens to start keeps them for ever.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import libtmux
from libtmux.common import tmux_cmd
from libtmux.exc import TmuxCommandNotFound

from lifecycle.errors import TerminalError

TIMEOUT = 10.0
"""Seconds that one call may take. tmux answers in milliseconds, or it hangs."""

_NUMBER = re.compile(r"(\d+)\.(\d+)")

_PASSED_ON = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "TMUX_TMPDIR", "XDG_RUNTIME_DIR", "LANG",
    "LC_ALL", "LC_CTYPE", "DBUS_SESSION_BUS_ADDRESS",
)  # fmt: skip


class NoServer(TerminalError):
    """No tmux server runs on this socket, so no session does."""


class TargetGone(TerminalError):
    """The session, window or pane does not exist, or no longer."""


class Tmux(libtmux.Server):
    """A libtmux server whose every call ends: libtmux 0.62 waits for tmux without limit."""

    def cmd(self, cmd: str, *args: Any, target: str | int | None = None) -> tmux_cmd:
        placed = args if target is None else ("-t", str(target), *args)
        return BoundedCommand(*self.socket_arguments(), cmd, *placed)

    def socket_arguments(self) -> tuple[str, ...]:
        if self.socket_path:
            return ("-S", str(self.socket_path))
        return ("-L", self.socket_name) if self.socket_name else ()

    def ask(self, *args: str, stdin: str | None = None) -> list[str]:
        """Run one command line, `;` between commands, and return what it printed, blank lines included.

        Raises:
            NoServer
            TargetGone
            TerminalError: tmux is missing, hangs or refused.
        """
        return self._run(args, stdin, ())

    def tell(self, script: str, *, may_start_server: bool) -> list[str]:
        """Run *script*, tmux's own language, from standard input: nothing of it shows in a list of processes.

        Raises:
            NoServer: none runs, and *may_start_server* is false.
            TargetGone
            TerminalError
        """
        start = ("start-server", ";") if may_start_server else ()
        return self._run((*start, "source-file", "-"), script, _own_scope() if may_start_server else ())

    def _run(self, args: tuple[str, ...], stdin: str | None, wrapper: tuple[str, ...]) -> list[str]:
        try:
            command = BoundedCommand(*self.socket_arguments(), *args, stdin=stdin, wrapper=wrapper)
        except TmuxCommandNotFound as error:
            msg = "no tmux on PATH"
            raise TerminalError(msg) from error
        except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
            msg = f"tmux cannot be run: {error}"
            raise TerminalError(msg) from error
        except subprocess.TimeoutExpired as error:
            msg = f"tmux did not answer within {TIMEOUT:.0f} s"
            raise TerminalError(msg) from error
        return _checked(command)


def installed_version() -> tuple[int, int] | None:
    """The version of tmux on PATH; None where it names no number, as a build of its main branch does.

    Raises:
        TerminalError: there is no tmux, or it does not run. libtmux keeps the first version it saw for ever.
    """
    found = _NUMBER.search(" ".join(Tmux().ask("-V")))
    return (int(found[1]), int(found[2])) if found else None


class BoundedCommand(tmux_cmd):
    """libtmux's command with a time-out, standard input and the clean environment. *stdout* keeps blank lines."""

    def __init__(
        self, *args: Any, tmux_bin: str | None = None, stdin: str | None = None, wrapper: tuple[str, ...] = ()
    ) -> None:
        binary = tmux_bin or shutil.which("tmux")
        if not binary:
            raise TmuxCommandNotFound
        # -u: without it a client in the C locale prints every special character as an underscore.
        self.cmd = [*wrapper, binary, "-u", *map(str, args)]
        self.process = subprocess.Popen(
            self.cmd,
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="backslashreplace",
            env=clean_environment(os.environ),
            start_new_session=True,
            close_fds=True,
        )
        try:
            stdout, stderr = self.process.communicate(stdin, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
                if pipe:
                    pipe.close()  # not read to its end: the hanging server holds the other end too
            raise
        self.returncode = self.process.returncode
        self.stdout = stdout.removesuffix("\n").split("\n") if stdout else []
        self.stderr = [line for line in stderr.split("\n") if line]


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a terminal needs and no more: no secret, nothing of Prefect's or ours, and no tmux that we run in."""
    kept = {name: environ[name] for name in _PASSED_ON if name in environ}
    return {"LANG": "C.UTF-8", **kept}


def quoted(text: str) -> str:
    """*text* as one word of tmux's language, taken literally."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _checked(command: tmux_cmd) -> list[str]:
    if command.returncode == 0:
        return command.stdout
    said = "; ".join(command.stderr) or f"exit status {command.returncode}"
    if said.startswith("no server running") or _has_no_socket(said):
        raise NoServer(said)
    if "can't find" in said or "no such pane" in said:
        raise TargetGone(said)
    msg = f"tmux refused: {said}"
    raise TerminalError(msg)


def _has_no_socket(said: str) -> bool:
    """Whether the client met no server, as far as its socket tells.

    Raises:
        TerminalError: the socket file is gone, and its server lives (tmux #2327): a second one would hide it.
    """
    if not said.startswith("error connecting to "):
        return False
    path, _, why = said.removeprefix("error connecting to ").rpartition(" (")
    if why == "No such file or directory)" and path in _bound_sockets():
        msg = f"{path} was deleted while its tmux server lives; send the server SIGUSR1, and it makes the socket again"
        raise TerminalError(msg)
    return why in {"No such file or directory)", "Connection refused)"}


def _bound_sockets() -> set[str]:
    """Paths of the sockets that some process listens on, whether or not the file is still there. Linux only."""
    try:
        lines = Path("/proc/net/unix").read_text(errors="replace").splitlines()
    except OSError:
        return set()
    return {line.split(maxsplit=7)[7] for line in lines[1:] if "/" in line}


def _own_scope() -> tuple[str, ...]:
    """A systemd scope of its own for the server, where we are a service: stopping that would stop all workers.

    Empty where systemd is not there or refuses; the server is then a process like any other we start.
    """
    if "INVOCATION_ID" not in os.environ or shutil.which("systemd-run") is None:
        return ()
    whose = () if os.geteuid() == 0 else ("--user",)
    scope = ("systemd-run", *whose, "--scope", "--quiet", "--collect", "--")
    try:
        tried = subprocess.run(
            [*scope, "true"], env=clean_environment(os.environ), capture_output=True, check=False, timeout=TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return scope if tried.returncode == 0 else ()
