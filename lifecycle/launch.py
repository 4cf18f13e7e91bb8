"""How a worker is started."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from lifecycle.value import Value


class LaunchSpec(Value):
    """The command, folder and environment that bring a worker back in a clean session.

    *command* never resumes an old conversation. *environment* holds only what the agent needs; no secret of
    Afresh's or Prefect's is in it.
    """

    command: tuple[str, ...]
    cwd: Path
    environment: dict[str, str] = {}
    source: Literal["configured", "wrapper", "live"]
