"""An agent that lives where nobody looks for it: in a renamed session, on another socket, outside tmux."""

from __future__ import annotations

from lifecycle.host import Host
from lifecycle.processes import Process, everyone
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker


def living_elsewhere(host: Host, worker: Worker) -> Process | None:
    """The worker's agent, wherever on this host it runs. Asked before another one is started in its place."""
    agent = host.agent(worker)
    return next((process for process in everyone(agent.may_run) if agent.is_agent(process, worker)), None)


def has_ended(host: Host, worker: Worker) -> bool:
    """Whether no agent of the worker lives any more; one that was just told to end is given the time for it."""
    try:
        return wait_until(lambda: living_elsewhere(host, worker) is None, host.settings.deadlines.exit, host.clock)
    except DeadlinePassed:
        return False
