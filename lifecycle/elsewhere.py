"""An agent that lives where nobody looks for it: in a renamed session, on another socket, outside tmux."""

from __future__ import annotations

from lifecycle.host import Host
from lifecycle.processes import Process, everyone
from lifecycle.worker import Worker


def living_elsewhere(host: Host, worker: Worker) -> Process | None:
    """The worker's agent, wherever on this host it runs. Asked before another one is started in its place."""
    agent = host.agent(worker)
    return next((process for process in everyone() if agent.is_agent(process, worker)), None)
