"""Whose words are typed: a worker's, where its face takes them as text, else only our own."""

from __future__ import annotations

from lifecycle.errors import TextNotSendable
from lifecycle.host import Host
from lifecycle.screen import Face
from lifecycle.worker import Worker


def own_words(host: Host, worker: Worker, text: str) -> bool:
    """Whether *text*, which quotes a worker, may not be typed into its face: then only our own words may."""
    face = host.look(worker).face
    if face is not Face.CLI:
        return True
    try:
        host.agent(worker).check_sendable(text, face, worker, busy=False)
    except TextNotSendable:
        return True
    return False
