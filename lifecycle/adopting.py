"""Finding agents that run in tmux now, and the configuration lines that would manage them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from lifecycle.agents.kinds import KINDS
from lifecycle.errors import InvalidWorkerId
from lifecycle.host import Host
from lifecycle.processes import tree_of
from lifecycle.settings import WorkerSettings
from lifecycle.value import Value
from lifecycle.worker import checked_worker_id


class Proposal(Value):
    """An agent that runs in a pane. *toml* holds the lines for afresh.toml, and nothing where none help.

    *managed* says that Afresh finds the agent already. *note* is what a human must know or do first.
    """

    worker_id: str
    managed: bool
    session: str
    profile: Path
    toml: str
    note: str = ""


class _Running(Value):
    kind: str
    profile: Path
    session: str
    cwd: str | None


def proposals(host: Host) -> list[Proposal]:
    """Every profile whose agent runs on the configured tmux socket, by worker id. Nothing is changed."""
    found: dict[Path, Proposal] = {}
    taken = {worker.worker_id.lower() for worker in host.workers()}
    for running in _running(host):
        profile = running.profile.resolve()
        first = found.get(profile)
        if first is None:
            found[profile] = _proposal(host, running, taken)
            taken.add(found[profile].worker_id.lower())
        elif first.session != running.session:
            note = f"{first.note}; " if first.note else ""
            note += f"another agent runs on this profile in session {running.session}"
            found[profile] = first.model_copy(update={"note": note})
    return sorted(found.values(), key=lambda proposal: proposal.worker_id)


def _running(host: Host) -> Iterator[_Running]:
    for pane in host.terminal_on(host.settings.socket).panes():
        agents = (
            _Running(kind=kind, profile=profile, session=pane.session, cwd=process.cwd)
            for process in tree_of(pane.pane_pid)
            for kind, agent in KINDS.items()
            if (profile := agent.profile_of(process)) is not None
        )
        yield from list(agents)[:1]


def _proposal(host: Host, running: _Running, taken: set[str]) -> Proposal:
    profile = running.profile.resolve()
    declared = next((w for w in host.workers() if w.profile.resolve() == profile), None)
    if declared is not None and declared.managed and declared.session == running.session:
        return _of(running, declared.worker_id, managed=True)
    worker_id = declared.worker_id if declared is not None else _worker_id(profile, running.session, taken)
    try:
        WorkerSettings(session=running.session)
    except ValidationError:
        note = f"no configuration can name the tmux session {running.session!r}: rename it first"
        return _of(running, worker_id, note=note)
    if worker_id in host.settings.workers:
        note = f"[workers.{worker_id}] is there already: set session = {json.dumps(running.session)} in it"
        return _of(running, worker_id, note=note)
    return _of(running, worker_id, toml=_lines(running, worker_id))


def _of(running: _Running, worker_id: str, *, managed: bool = False, toml: str = "", note: str = "") -> Proposal:
    return Proposal(
        worker_id=worker_id, managed=managed, session=running.session, profile=running.profile, toml=toml, note=note
    )


def _lines(running: _Running, worker_id: str) -> str:
    values = {"profile": str(running.profile), "session": running.session, "cwd": running.cwd}
    values["agent"] = running.kind if running.kind != WorkerSettings().agent else None
    # A JSON string of printable text is a TOML string.
    given = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items() if value]
    return "\n".join((f"[workers.{worker_id}]", *given)) + "\n"


def _worker_id(profile: Path, session: str, taken: set[str]) -> str:
    """The profile's folder name where it is a worker id, else one made of the session's name; not a taken one."""
    letters = "".join(ch if ch.isascii() and ch.isalnum() else "-" for ch in session.lower())
    made = "-".join(["agent", *filter(None, letters.split("-"))])[:56].rstrip("-")
    numbered = (f"{made}-{number}" for number in range(2, len(taken) + 3))
    wanted = (profile.name, session.removeprefix("swarm-"), made, *numbered)
    return next(name for name in wanted if _is_id(name) and name.lower() not in taken)


def _is_id(name: str) -> bool:
    try:
        checked_worker_id(name)
    except InvalidWorkerId:
        return False
    return True
