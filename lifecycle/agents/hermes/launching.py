"""How a Hermes worker is started again, what that needs, and which of its processes end it cleanly."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from lifecycle.agents.hermes import command_line
from lifecycle.agents.hermes.command_line import profile_of
from lifecycle.agents.hermes.config_file import ConfigBroken, read_config
from lifecycle.errors import LaunchUnknown
from lifecycle.launch import LaunchSpec
from lifecycle.processes import Process, ProcessId, find, started_at_tick
from lifecycle.worker import Worker

__all__ = ["asked_first", "background_processes", "is_agent", "launch_spec", "preflight", "profile_of"]

LEAST_SPACE = 50_000_000
"""Bytes that must be free: a state.db that cannot grow loses the new session's first message."""

_CARRIED_OVER = ("HOME", "PATH", "HERMES_TUI")
"""Of the live agent's environment: where it lives, where it finds node and its tools, which face it shows."""

_TUI_NODE = "tui_dist/entry.js"


def is_agent(process: Process, profile: Path) -> bool:
    """Whether *process* is an interactive Hermes on *profile*. Parents are asked first: the topmost one is it."""
    found = profile_of(process)
    return found is not None and (found == profile or found.resolve() == profile.resolve())


def launch_spec(worker: Worker, live: Process | None, environment: Mapping[str, str]) -> LaunchSpec:
    """The configured command, else the roster's wrapper, else the live agent's own command line, never resuming.

    *environment* is what the operator passes on. HERMES_HOME is the worker's profile whatever it says.

    Raises:
        LaunchUnknown: nobody says how, or what is said resumes an old conversation.
    """
    refused = ""
    if worker.command:
        if command_line.resumes(command_line.arguments_of(worker.command) or ()):
            msg = f"{worker.worker_id}: the configured command resumes an old conversation: {' '.join(worker.command)}"
            raise LaunchUnknown(msg, worker_id=worker.worker_id)
        return _spec(worker, live, environment, worker.command, "configured")
    if worker.wrapper:
        if not command_line.script_resumes(_text_of(worker.wrapper)):
            return _spec(worker, live, environment, (str(worker.wrapper),), "wrapper")
        refused = f"; its wrapper {worker.wrapper} resumes an old conversation"
    if live is not None and command_line.arguments_of(live.command) is not None:
        return _spec(worker, live, environment, command_line.without_old_conversation(live.command), "live")
    msg = (
        f"{worker.worker_id}: nobody says how it is started{refused}; set `command` and `cwd` in "
        f"[workers.{worker.worker_id}] of afresh.toml"
    )
    raise LaunchUnknown(msg, worker_id=worker.worker_id)


def preflight(worker: Worker, launch: LaunchSpec) -> list[str]:
    """What is missing to start the worker again, a sentence each; empty when all is there."""
    path = launch.environment.get("PATH") or os.environ.get("PATH")
    missing = [_program(word, path) for word in _programs(launch)]
    if shutil.which("tmux") is None:
        missing.append("no tmux on PATH")
    if not launch.cwd.is_dir():
        missing.append(f"the folder to start in is missing: {launch.cwd}")
    missing += _profile(worker.profile)
    return [sentence for sentence in missing if sentence]


def background_processes(profile: Path) -> list[int]:
    """Pids of the agent's own background processes that still are the ones it recorded (processes.json)."""
    try:
        entries = json.loads((profile / "processes.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    pids = []
    for entry in entries if isinstance(entries, list) else []:
        pid, tick = (entry.get("pid"), entry.get("host_start_time")) if isinstance(entry, dict) else (None, None)
        # No agent starts process 1, and everything that runs is below it.
        if isinstance(pid, int) and pid > 1 and isinstance(tick, int) and started_at_tick(pid, tick):
            pids.append(pid)
    return pids


def asked_first(tree: tuple[ProcessId, ...]) -> tuple[ProcessId, ...]:
    """The one process of the agent's tree, parents first, that a TERM lets close the session.

    Measured on 0.19 in a kept pane with a second window, which stayed, until every writer of state.db was gone:
    the cli's own process 0.5 s idle (3 of 3), 2.0 s in a model call (2 of 2), 2.0 and 2.9 s in a tool, which ends
    with it; it may write a `received signal` row and one answer more. In the TUI it is node: everything in 0.12 s,
    in a turn 0.2–0.3 s (2 of 2); with a tool running the gateway took 0.5 and 1.0 s, and the tool lives on. TERM to
    the TUI's pane process leaves node for 4 s, to its gateway leaves the pane with a dead face.
    """
    members = [process for identity in tree if (process := find(identity)) is not None]
    node = next((process for process in members if any(word.endswith(_TUI_NODE) for word in process.command)), None)
    first = node or next((process for process in members if command_line.arguments_of(process.command)), None)
    first = first or next(iter(members), None)
    return (first.identity,) if first else ()


def _spec(
    worker: Worker, live: Process | None, passed: Mapping[str, str], command: tuple[str, ...], source: str
) -> LaunchSpec:
    cwd = worker.cwd or (Path(live.cwd) if live and live.cwd else None)
    if cwd is None:
        msg = f"{worker.worker_id}: nobody says in which folder it works; set `cwd` in [workers.{worker.worker_id}]"
        raise LaunchUnknown(msg, worker_id=worker.worker_id)
    carried = {name: live.environment[name] for name in _CARRIED_OVER if live and name in live.environment}
    environment = {"HOME": str(Path.home()), **carried, **passed, **worker.environment}
    return LaunchSpec.model_validate(
        {
            "command": command,
            "cwd": cwd,
            "environment": {**environment, "HERMES_HOME": str(worker.profile)},
            "source": source,
        }
    )


def _programs(launch: LaunchSpec) -> list[str]:
    """What has to be there: the command, the script that an interpreter runs, and node for the TUI."""
    words = [launch.command[0]]
    if Path(words[0]).name.startswith("python") and launch.command[1:2] and launch.command[1].startswith("/"):
        words.append(launch.command[1])
    is_tui = "--tui" in launch.command or launch.environment.get("HERMES_TUI") == "1"
    return [*words, "node"] if is_tui and "--cli" not in launch.command else words


def _program(word: str, path: str | None) -> str:
    if shutil.which(word, path=path):
        return ""
    return f"{word} is missing or cannot be run" if "/" in word else f"no {word} on PATH"


def _profile(profile: Path) -> list[str]:
    if not profile.is_dir():
        return [f"the profile is missing: {profile}"]
    missing = []
    database = profile / "state.db"
    if not os.access(profile, os.W_OK | os.X_OK) or (database.exists() and not os.access(database, os.W_OK)):
        missing.append(f"the profile cannot be written: {profile}")
    if shutil.disk_usage(profile).free < LEAST_SPACE:
        missing.append(f"less than {LEAST_SPACE // 1_000_000} MB are free at {profile}")
    try:
        read_config(profile)
    except ConfigBroken as error:
        missing.append(f"{error.detail}: Hermes would start its setup wizard")
    return missing


def _text_of(script: Path) -> str:
    """Empty where there is none to read; the preflight then says so."""
    try:
        return script.read_text(errors="replace")
    except OSError:
        return ""
