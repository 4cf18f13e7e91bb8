"""A paste that vanished, told from one that a face reads late."""

from __future__ import annotations

from datetime import timedelta

from lifecycle.errors import ContextUnreadable
from lifecycle.host import Host
from lifecycle.renewal import Delivery
from lifecycle.screen import PaneLook, PaneState
from lifecycle.worker import Worker

PASTE_LOST_AFTER = timedelta(seconds=3)
"""An input line that stays empty so long, with nothing left unread and without our row, has lost our paste (T16).
95 kB took under a second on the TUI."""


class LostPaste:
    """Tells a paste that vanished from one that a face reads late: a late one stays unread in the terminal."""

    def __init__(self, host: Host, worker: Worker, intent: Delivery, *, while_busy: bool) -> None:
        self._host, self._worker, self._intent = host, worker, intent
        self._free = (PaneState.READY, PaneState.BUSY) if while_busy else (PaneState.READY,)
        self._since: float | None = None
        self.may_be_mended = True

    def seen(self) -> PaneLook | None:
        """The look at a line that has been empty long enough, seen just now."""
        host, worker, now = self._host, self._worker, self._host.clock.monotonic()
        look = host.look(worker)
        if not self.may_be_mended or not self._is_nowhere(look):
            self._since = None
            return None
        self._since = now if self._since is None else self._since
        long = min(PASTE_LOST_AFTER, host.settings.deadlines.delivery)
        return look if now - self._since >= long.total_seconds() else None

    def _is_nowhere(self, look: PaneLook) -> bool:
        host, worker = self._host, self._worker
        if look.state not in self._free or look.typed or look.screen is None:
            return False
        if host.terminal(worker).unread(look.screen.pane_id) != 0:
            return False
        try:
            sent = host.agent(worker).find_sent(worker, self._intent.text, after_row=self._intent.after_row)
        except ContextUnreadable:
            return False  # a database that cannot be read may hold it
        return sent is None
