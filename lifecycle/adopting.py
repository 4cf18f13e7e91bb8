"""Finding agents that run in tmux now, and the configuration lines that would manage them."""

from __future__ import annotations

import json
from pathlib import Path

from lifecycle.agents.kinds import KINDS
from lifecycle.host import Host
from lifecycle.processes import tree_of
from lifecycle.value import Value
from lifecycle.worker import WORKER_ID


class Proposal(Value):
    """An agent that runs in a pane, and the lines for afresh.toml."""

    worker_id: str
    managed: bool
    session: str
    profile: Path
    toml: str


def proposals(host: Host) -> list[Proposal]:
    """Every agent found on the configured tmux socket, by worker id. Nothing is changed."""
    managed = {worker.profile.resolve(): worker.worker_id for worker in host.workers() if worker.managed}
    found = []
    for pane in host.terminal_on(host.settings.socket).panes():
        tree, session = tree_of(pane.pane_pid), pane.session
        for kind, agent in KINDS.items():
            profile = next((home for process in tree if (home := agent.profile_of(process))), None)
            if profile is None:
                continue
            name = managed.get(profile.resolve())
            worker_id = name or _worker_id(profile, session)
            cwd = next((process.cwd for process in tree if process.cwd), None)
            lines = [
                f"[workers.{worker_id}]",
                f"profile = {json.dumps(str(profile))}",
                f"session = {json.dumps(session)}",
            ]
            lines += [f"cwd = {json.dumps(cwd)}"] if cwd else []
            lines += [f'agent = "{kind}"'] if kind != "hermes" else []
            found.append(
                Proposal(
                    worker_id=worker_id,
                    managed=name is not None,
                    session=session,
                    profile=profile,
                    toml="\n".join(lines) + "\n",
                )
            )
            break
    return sorted(found, key=lambda proposal: proposal.worker_id)


def _worker_id(profile: Path, session: str) -> str:
    """The profile's folder name where it is a worker id, else one made of the session's name."""
    for name in (profile.name, session.removeprefix("swarm-")):
        if WORKER_ID.fullmatch(name):
            return name
    letters = "".join(ch if ch.isascii() and ch.isalnum() else "-" for ch in session.lower())
    words = [word for word in letters.split("-") if word]
    return "-".join(["agent", *words])
