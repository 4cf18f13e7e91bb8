"""A worker: one long-lived agent, as the operator declared it."""

from __future__ import annotations

import re
from pathlib import Path

from lifecycle.errors import InvalidWorkerId
from lifecycle.policy import Policy
from lifecycle.value import Value

WORKER_ID = re.compile(r"(swarm\d+|[a-z][a-z0-9]*(?:-[a-z0-9]+)*)", re.IGNORECASE | re.ASCII)
"""The reference system's rule for roster and lifecycle ids."""

LONGEST_ID = 64


def checked_worker_id(text: str) -> str:
    """Return *text* if it is a worker id.

    Raises:
        InvalidWorkerId: it is not; nothing may be built from it.
    """
    if len(text) <= LONGEST_ID and WORKER_ID.fullmatch(text):
        return text
    msg = (
        f"{text[:80]!r} is not a worker id: letters and digits in groups joined by single hyphens, "
        f"beginning with a letter, at most {LONGEST_ID} characters"
    )
    raise InvalidWorkerId(msg)


class Worker(Value):
    """What the operator declared of one worker.

    *automatic* is the configured default; `afresh enable` and `disable` overrule it in the ledger.
    *socket* is a tmux socket name (`-L`) or, with a slash in it, a path (`-S`); None is tmux's own default.
    *wrapper* is the script that starts the worker, where the roster names one or one has the worker's name.
    """

    worker_id: str
    profile: Path
    session: str
    socket: str | None = None
    cwd: Path | None = None
    command: tuple[str, ...] | None = None
    environment: dict[str, str] = {}
    agent: str = "hermes"
    managed: bool = True
    automatic: bool = False
    policy: Policy = Policy()
    greenlight_required_for: tuple[str, ...] = ()
    roster_mission: str | None = None
    wrapper: Path | None = None
