"""Telling a turn that failed from one that takes its time."""

from __future__ import annotations

from datetime import timedelta

from lifecycle.errors import ContextUnreadable, ParksHere
from lifecycle.host import Host
from lifecycle.screen import PaneLook, PaneState
from lifecycle.trouble import Trouble, trouble_in
from lifecycle.worker import Worker

SETTLED = timedelta(seconds=2)
"""How long the agent's notice must stand: right after a prompt the last turn's may still be drawn."""

QUIET = timedelta(seconds=20)
"""How long a free input line below an unanswered prompt may say nothing before that counts as a failure, too."""

SILENT = Trouble(kind="api_failure", words="its turn ended without an answer")


class TurnWatch:
    """Watches one unanswered prompt over many looks."""

    def __init__(self, host: Host, worker: Worker) -> None:
        self._host, self._worker = host, worker
        self._free_since: float | None = None
        self._notice, self._noticed_since = "", 0.0

    def see(self, look: PaneLook) -> None:
        """Take one more look at a worker that has not answered.

        Raises:
            ParksHere: the turn has ended without an answer.
        """
        clock = self._host.clock
        if look.state is not PaneState.READY or self._is_answered():
            self._free_since, self._notice = None, ""
            return
        now = clock.monotonic()
        self._free_since = now if self._free_since is None else self._free_since
        if look.notice != self._notice:
            self._notice, self._noticed_since = look.notice, now
        if look.notice and now - self._noticed_since >= SETTLED.total_seconds():
            self._fail(look, trouble_in(look.notice, self._host.now()) or SILENT)
        if now - self._free_since >= QUIET.total_seconds():
            self._fail(look, SILENT)

    def _fail(self, look: PaneLook, trouble: Trouble) -> None:
        msg = f"{self._worker.worker_id}: {trouble.words}"
        raise ParksHere(msg, trouble=trouble, worker_id=self._worker.worker_id, evidence=look.evidence())

    def _is_answered(self) -> bool:
        try:
            turn = self._host.turn(self._worker, self._host.process(self._worker))
        except ContextUnreadable:
            return True
        return turn.answered or turn.compacting or turn.delegating


def refuse_in_trouble(host: Host, worker: Worker) -> None:
    """Nothing is typed, and nobody is stopped, while the breaker of the account is open.

    Raises:
        ParksHere
    """
    breaker = host.breaker(worker)
    if breaker is not None:
        msg = f"{worker.worker_id}: {breaker.words}"
        raise ParksHere(msg, trouble=breaker.trouble, worker_id=worker.worker_id, failed_turn=False)
