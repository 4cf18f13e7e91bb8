"""Collecting for a handoff: git, the transcript, the process table. It never fails and never takes long."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from lifecycle.artifacts import prune, referenced
from lifecycle.collect_settings import CollectSettings
from lifecycle.collected import (
    BackgroundProcess,
    Collected,
    Command,
    KeptResult,
    OpenCall,
    ToDo,
    TouchedFile,
    WorkTree,
    newest,
)
from lifecycle.errors import ContextUnreadable, GitRefused, LifecycleError
from lifecycle.foreign_text import encodable
from lifecycle.host import Host
from lifecycle.idle import process_at_rest
from lifecycle.offload import keep_results
from lifecycle.processes import Process, tree_of
from lifecycle.prompts import one_line
from lifecycle.redaction import redact
from lifecycle.renewal import Renewal
from lifecycle.snapshot import describe, snapshot_ref
from lifecycle.trail import LargeRule, Trail
from lifecycle.work_tree import Caps, Repository
from lifecycle.worker import Worker

MOST_FILES = 150
MOST_COMMANDS = 100
MOST_TODOS = 60
MOST_OPEN_CALLS = 30
MOST_PROCESSES = 30
MOST_SESSIONS = 20
"""The newest of each are kept: more than a handoff shows, and little enough for a row of the ledger. Files that were
only read, and commands that only look, go first.
"""

LONGEST = 400
"""Characters of one command, path or entry."""


def collect(host: Host, worker: Worker, renewal: Renewal, *, session_id: str | None, keep: bool = True) -> Collected:
    """All that the machine knows of the worker now. What cannot be learned becomes a sentence in `troubles`.

    Git has a deadline of its own, and every other source is bounded by its size. With it comes a side effect each in
    two places of Afresh's own: a ref under `refs/afresh/`, and the files of large results; without *keep* neither.
    """
    rules, troubles = host.settings.collect, list[str]()
    process = _process(host, worker, troubles)
    trail = _trail(host, worker, rules, process, session_id, troubles)
    cwd = _cwd(worker, renewal, process, trail)
    results = _results(host, trail, troubles) if keep else ()
    git = _git(rules if keep else rules.model_copy(update={"snapshot": False}), worker, renewal, cwd, troubles)
    background = _background(host, worker)[-MOST_PROCESSES:]
    found = from_trail(trail, at=host.now(), draft=str(host.paths(worker).draft(renewal.renewal_id)))
    told = {"git": git, "background": background, "results": results, "troubles": tuple(map(_line, troubles))}
    return found.model_copy(update={"cwd": cwd, **told})


def from_trail(trail: Trail, *, at: datetime, draft: str = "") -> Collected:
    """What the transcript alone tells, bounded and redacted; *draft* is the handoff's own, which is no work. Pure."""
    return Collected(
        at=at.replace(microsecond=0),
        files=tuple(map(_file, newest([file for file in trail.files if file.path != draft], MOST_FILES))),
        commands=tuple(map(_command, newest(_distinct(trail.commands), MOST_COMMANDS))),
        todos=tuple(ToDo(text=_line(todo.text), status=todo.status) for todo in trail.todos[:MOST_TODOS]),
        interrupted=tuple(map(_open_call, trail.interrupted[-MOST_OPEN_CALLS:])),
        sessions=trail.sessions[-MOST_SESSIONS:],
    )


def forget_old_results(host: Host) -> None:
    """Remove kept results that no latest handoff names and that are too old, or too many.

    Raises:
        OSError
    """
    rules, home = host.settings.collect, host.settings.home
    prune(
        home / "artifacts",
        needed=referenced(home / "archive"),
        now=host.now(),
        keep_for=rules.artifacts_kept_for,
        quota=rules.artifacts_quota,
    )


def _process(host: Host, worker: Worker, troubles: list[str]) -> Process | None:
    try:
        return process_at_rest(host, worker)
    except LifecycleError as error:
        troubles.append(f"the agent's process: {error.detail}")
        return None


def _trail(
    host: Host,
    worker: Worker,
    rules: CollectSettings,
    process: Process | None,
    session_id: str | None,
    troubles: list[str],
) -> Trail:
    large = LargeRule(over=rules.offload_over, most=rules.offload_most, protected=rules.offload_protect)
    since = process.started_at if process else None
    try:
        return host.agent(worker).trail(worker, session_id=session_id, since=since, large=large)
    except (ContextUnreadable, ValueError, OverflowError) as error:
        # Rows that are not as the agent writes them are no reason to hold a renewal up.
        troubles.append(f"the transcript: {error.detail if isinstance(error, ContextUnreadable) else error}")
        return Trail()


def _results(host: Host, trail: Trail, troubles: list[str]) -> tuple[KeptResult, ...]:
    try:
        return keep_results(host.settings.home / "artifacts", trail.large)
    except OSError as error:
        troubles.append(f"large tool results: {error.filename or host.settings.home}: {error.strerror}")
        return ()


def _cwd(worker: Worker, renewal: Renewal, process: Process | None, trail: Trail) -> Path | None:
    """Where the agent says that it works, else where its process runs, else where it is started."""
    said = [
        trail.cwd,
        process.cwd if process else None,
        renewal.launch.cwd if renewal.launch else None,
        worker.cwd,
    ]
    folders = [Path(encodable(str(folder))) for folder in said if folder]
    return next((folder for folder in folders if _is_there(folder)), next(iter(folders), None))


def _is_there(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except OSError:  # a mount that is gone, a name too long, no right to look
        return False


def _git(
    rules: CollectSettings, worker: Worker, renewal: Renewal, cwd: Path | None, troubles: list[str]
) -> WorkTree | None:
    if cwd is None or not _is_there(cwd):
        troubles.append(f"git: the folder {cwd} is not there" if cwd else "git: nobody knows where it works")
        return None
    try:
        repository = Repository.around(cwd, within=rules.deadline)
        if repository is None:
            return None
        tree, trouble = describe(
            repository,
            snapshot_ref(worker.worker_id, renewal.generation),
            Caps(largest_file=rules.largest_file, most_bytes=rules.largest_snapshot) if rules.snapshot else None,
            message=f"afresh: {worker.worker_id}, the end of generation {renewal.generation} ({renewal.renewal_id})",
            keep=rules.snapshots_kept,
        )
    except (GitRefused, OSError) as error:
        troubles.append(f"git: {error.detail if isinstance(error, GitRefused) else error}")
        return None
    if trouble:
        troubles.append(f"git: {trouble}")
    return tree


def _background(host: Host, worker: Worker) -> tuple[BackgroundProcess, ...]:
    found = []
    for pid in host.agent(worker).background_processes(worker):
        member = next(iter(tree_of(pid)), None)
        if member is not None:
            found.append(BackgroundProcess(pid=pid, command=_line(" ".join(member.command))))
    return tuple(found)


def _distinct(commands: tuple[Command, ...]) -> list[Command]:
    """Each command once for each outcome, where it was run last."""
    newest: dict[tuple[object, ...], Command] = {}
    for command in commands:
        key = (command.command, command.exit_code, command.cwd)
        newest.pop(key, None)
        newest[key] = command
    return list(newest.values())


def _file(file: TouchedFile) -> TouchedFile:
    return file.model_copy(update={"path": _line(file.path)})


def _command(command: Command) -> Command:
    return command.model_copy(
        update={"command": _line(command.command), "cwd": _line(command.cwd) if command.cwd else None}
    )


def _open_call(call: OpenCall) -> OpenCall:
    return call.model_copy(update={"told": _line(call.told)})


def _line(text: str) -> str:
    return one_line(redact(encodable(text)), LONGEST)
