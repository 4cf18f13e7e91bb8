"""Ports for the servers that tests start some seconds after they have chosen one."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import TextIO

_LOWEST = 10_000
_OURS: list[TextIO] = []


def free_port(address: str = "127.0.0.1") -> int:
    """A port that nothing has and that nobody takes before its server does.

    It lies below those that the system gives to whoever asks for any, and no other process of the tests gets it.
    """
    folder = Path(tempfile.gettempdir()) / f"afresh-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(_LOWEST, max(given, 2 * _LOWEST))  # noqa: S311 - no secret
        claim = (folder / str(port)).open("w")
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.create_server((address, port)):
                pass
        except OSError:
            claim.close()
            continue
        _OURS.append(claim)  # locked for as long as this process lives
        return port
