"""The fleet as it is now, read once for all who ask at the same time, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from lifecycle.blocked import Waiting, waiting
from lifecycle.errors import LifecycleError
from lifecycle.host import Host
from lifecycle.settings import load_settings
from lifecycle.status import WorkerStatus, statuses
from lifecycle.value import Value

log = logging.getLogger(__name__)

FRESH_FOR = timedelta(seconds=1)
"""A reading serves everyone for so long, or for as long as it took, whichever is more: reading a fleet of hundreds
takes at most half of one core.
"""


class Snapshot(Value):
    """One reading of all workers, and what waits for a human.

    *error* says why there is none; *rows* are then empty, and nobody is healthy.
    """

    at: datetime
    rows: tuple[WorkerStatus, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    error: str = ""
    reason: str = ""

    def row(self, worker_id: str) -> WorkerStatus | None:
        return next((row for row in self.rows if row.worker_id == worker_id), None)


class Fleet:
    """Belongs to one event loop. `close` lets everyone who waits go."""

    def __init__(self) -> None:
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="fleet")
        self._reading: asyncio.Task[Snapshot] | None = None
        self._fresh_until = 0.0
        self._is_outdated = False
        self._closing = asyncio.Event()

    async def now(self) -> Snapshot:
        """The newest reading. One that is going on is waited for; a new one begins where the last is too old."""
        if self._reading is None or (self._reading.done() and time.monotonic() >= self._fresh_until):
            self._reading = asyncio.create_task(self._read())
        # One who asks and goes away ends no reading for the others.
        return await asyncio.shield(self._reading)

    async def after(self, span: timedelta) -> bool:
        """Wait for *span*; False, at once, when the service ends."""
        try:
            async with asyncio.timeout(span.total_seconds()):
                await self._closing.wait()
        except TimeoutError:
            return True
        return False

    def outdate(self) -> None:
        """Something was changed: the reading that is going on, or the last one, serves nobody who asks later."""
        self._fresh_until, self._is_outdated = 0.0, True

    def close(self) -> None:
        self._closing.set()
        self._reader.shutdown(wait=False, cancel_futures=True)

    async def _read(self) -> Snapshot:
        began, self._is_outdated = time.monotonic(), False
        snapshot = await asyncio.get_running_loop().run_in_executor(self._reader, read_fleet)
        ended = time.monotonic()
        if not self._is_outdated:
            self._fresh_until = ended + max(FRESH_FOR.total_seconds(), ended - began)
        return snapshot


def read_fleet() -> Snapshot:
    """Read the configuration anew, then every worker. What cannot be read is said, not raised."""
    try:
        with Host.opened(load_settings(), progress=_silent) as host:
            return Snapshot(at=host.now(), rows=tuple(statuses(host, host.workers())), waiting=tuple(waiting(host)))
    except LifecycleError as error:
        log.warning("%s", error)
        return Snapshot(at=datetime.now(UTC), error=error.detail, reason=error.reason)


def _silent(_worker_id: str, _words: str) -> None:
    return
