"""How a worker is started: as the configuration says, else as its agent runs, else as it was last seen running."""

from __future__ import annotations

import os

from lifecycle.host import Host
from lifecycle.launch import LaunchSpec
from lifecycle.processes import Process
from lifecycle.worker import Worker


def launch_of(host: Host, worker: Worker, live: Process | None, *, remembered: LaunchSpec | None = None) -> LaunchSpec:
    """The launch specification of *worker*; *remembered* counts where neither configuration nor process tells.

    Raises:
        LaunchUnknown
    """
    if worker.command is None and worker.wrapper is None and live is None and remembered is not None:
        return remembered
    wanted = {name: os.environ[name] for name in host.settings.pass_env if name in os.environ}
    return host.agent(worker).launch_spec(worker, live, wanted)
