"""A process of its own that works on a ledger: one JSON request a line on its input, one answer a line on its output.

Run as a script it serves; imported it is the other end. It keeps the copy of a renewal that it read last, as a step
does: what it writes may be out of date by then.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from lifecycle.errors import LifecycleError
from lifecycle.ledger import Ledger
from lifecycle.renewal import End, Phase, Renewal

REPOSITORY = Path(__file__).parents[2]
BEGAN = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


class LedgerProcess:
    """The end that asks. Every answer must come within *patience* seconds."""

    def __init__(self, patience: float = 60) -> None:
        self._patience = patience
        self._child = subprocess.Popen(
            [sys.executable, str(Path(__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.communicate()

    def begin(self, act: str, **given: Any) -> None:
        """Send a request and do not wait for its answer."""
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps([act, given]).encode() + b"\n")
        self._child.stdin.flush()

    def has_answered(self, within: float) -> bool:
        assert self._child.stdout is not None
        return bool(select.select([self._child.stdout], [], [], within)[0])

    def answer(self) -> Any:
        assert self._child.stdout is not None
        assert self.has_answered(self._patience), "no answer in time"
        line = self._child.stdout.readline()
        assert line, f"the process ended with {self._child.wait(5)}"
        return json.loads(line)

    def ask(self, act: str, **given: Any) -> Any:
        """What the act returned, or the name of the error that it met."""
        self.begin(act, **given)
        return self.answer()

    def killed_at(self, act: str, **given: Any) -> int:
        """Send a request that ends the process, and return its status."""
        self.begin(act, **given)
        return self._child.wait(self._patience)


class _Acts:
    def __init__(self) -> None:
        self.ledger: Ledger | None = None
        self.copy: Renewal | None = None
        self.holding = ExitStack()

    def use(self, path: str) -> None:
        if self.ledger is not None:
            self.ledger.close()
        self.copy = None
        self.ledger = Ledger(Path(path))

    def open(self, renewal_id: str, worker_id: str) -> None:
        renewal = Renewal(renewal_id=renewal_id, worker_id=worker_id, generation=1, opened_at=BEGAN, updated_at=BEGAN)
        self._ledger.open(renewal)
        self.copy = renewal

    def take(self, worker_id: str) -> bool:
        """Read the open renewal, if there is one."""
        self.copy = self._ledger.record(worker_id).open_renewal or self.copy
        return self.copy is not None

    def move(self, phase: str) -> str | None:
        if self.copy is None:
            return None
        self.copy = self._ledger.put(self.copy.model_copy(update={"phase": Phase(phase)}))
        return self.copy.renewal_id

    def end(self, end: str) -> str | None:
        if self.copy is None:
            return None
        self.copy = self._ledger.put(self.copy.model_copy(update={"end": End(end)}))
        return self.copy.renewal_id

    def remember(self, worker_id: str, **changes: Any) -> None:
        self._ledger.remember(worker_id, **changes)

    def notice(self, worker_id: str, key: str) -> bool:
        return self._ledger.is_first_notice(worker_id, key, at=BEGAN)

    def hold(self) -> None:
        self.holding.enter_context(self._ledger.transaction())

    def let_go(self) -> None:
        self.holding.close()

    def grow_no_file(self) -> None:
        """From now on this process can write no file beyond the size that the ledger's log has, as on a full disk."""
        size = self._ledger.path.with_name("ledger.db-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def grow_again(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def die_writing(self, worker_id: str) -> None:
        with self._ledger.transaction():
            self._ledger.remember(worker_id, held_why="half written")
            os.kill(os.getpid(), signal.SIGKILL)

    @property
    def _ledger(self) -> Ledger:
        assert self.ledger is not None
        return self.ledger


def _serve() -> None:
    acts = _Acts()
    for line in sys.stdin:
        act, given = json.loads(line)
        try:
            answer = getattr(acts, act)(**given)
        except LifecycleError as error:
            answer = type(error).__name__
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
