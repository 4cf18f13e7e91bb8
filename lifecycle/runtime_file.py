"""runtime.json: the record of a worker that half a dozen programs of the swarm read and write without a lock.

Writes of Afresh keep what they do not know, and never lose one another: they share a lock. Against writers that
know no lock, the file is compared right before the rename; what is written between that look and the rename,
some microseconds, is lost, as it is among those writers anyway (W-33).
"""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from pydantic import JsonValue

from lifecycle import durable
from lifecycle.errors import RenewalInProgress
from lifecycle.lock import held
from lifecycle.runtime import Runtime, runtime_from
from lifecycle.waiting import Clock, DeadlinePassed, SystemClock, wait_until

log = logging.getLogger(__name__)

TORN_FOR = timedelta(seconds=2)
"""A writer that does not rename has finished by then."""

LOCKED_FOR = timedelta(seconds=10)
REREAD_EVERY = timedelta(seconds=0.05)
TRIES = 20


class _Seen:
    """The file as it was read: its bytes, and what tells a change."""

    def __init__(self, path: Path) -> None:
        self.content: bytes | None = None
        self.mark: tuple[int, int, int] | None = None
        self.mode = 0o600
        self.owner = (os.geteuid(), os.getegid())
        try:
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                self.content = file.read()
        except FileNotFoundError:
            return
        self.mark = (found.st_ino, found.st_mtime_ns, found.st_size)
        self.mode = stat.S_IMODE(found.st_mode)
        self.owner = (found.st_uid, found.st_gid)

    def is_still(self, path: Path) -> bool:
        now = _Seen(path)
        return (now.mark, now.content) == (self.mark, self.content)

    def read(self) -> dict[str, JsonValue] | None:
        """The object in it, an empty one where there is no file, None where it is none."""
        if self.content is None:
            return {}
        try:
            found = json.loads(self.content.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


def read_runtime(path: Path) -> Runtime:
    """Read what Afresh knows of the file. Never raises for what it finds: see `Runtime.error`."""
    try:
        found = _Seen(path).read()
    except OSError as error:
        return Runtime(error=f"{path}: cannot be read: {error.strerror}")
    return Runtime(error=f"{path}: no JSON object") if found is None else runtime_from(found)


def update(
    path: Path, changes: Mapping[str, JsonValue], *, worker_id: str | None = None, clock: Clock | None = None
) -> bool:
    """Change these keys and keep all others; True if it was written.

    A missing file is created, with its `workerId`, where its folder exists. A file that holds no JSON object for
    two seconds is left as it is: a copy is kept beside it, and this write is skipped with a logged warning, as it
    is where the system refuses or others never stop writing.
    """
    clock = clock or SystemClock()
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        log.warning("%s: not written, there is no such folder", path.parent)
        return False
    if _says_so_already(path, changes):
        return True
    try:
        with ExitStack() as stack:
            wait_until(lambda: _entered(stack, path), LOCKED_FOR, clock, REREAD_EVERY)
            for _ in range(TRIES):
                if _try_update(path, changes, worker_id or path.parent.name, clock):
                    return True
    except DeadlinePassed:
        log.warning("%s: not written, another process of Afresh holds it", path)
        return False
    except _Unreadable:
        log.warning("%s: holds no JSON object; this write was skipped and a copy was kept beside it", path)
        return False
    except OSError as error:
        log.warning("%s: not written: %s", path, error.strerror)
        return False
    log.warning("%s: not written, other programs changed it %d times in a row", path, TRIES)
    return False


def _says_so_already(path: Path, changes: Mapping[str, JsonValue]) -> bool:
    """Whether nothing is to be written, seen without the lock: mostly a sweep has nothing new to say."""
    try:
        seen = _Seen(path)
    except OSError:
        return False
    found = seen.read()
    return seen.content is not None and found is not None and found | dict(changes) == found


class _Unreadable(Exception):
    """The file holds no JSON object, and did not become one."""


def _entered(stack: ExitStack, path: Path) -> bool:
    try:
        stack.enter_context(held(path.with_name(f".{path.name}.afresh.lock")))
    except RenewalInProgress:
        return False
    return True


def _try_update(path: Path, changes: Mapping[str, JsonValue], worker_id: str, clock: Clock) -> bool:
    """Read, change, and put in place if nobody else wrote meanwhile."""
    seen, found = _read_whole(path, clock)
    if seen.content is None:
        found["workerId"] = worker_id
    changed = found | dict(changes)
    if changed == found and seen.content is not None:
        return True
    with durable.staged(path, _as_json(changed), mode=seen.mode) as temporary:
        if os.geteuid() == 0:  # a worker that runs as another user must still be able to write its file
            os.chown(temporary, *seen.owner)
        if not seen.is_still(path):
            return False
        temporary.replace(path)
    durable.sync_folder(path.parent)
    return True


def _read_whole(path: Path, clock: Clock) -> tuple[_Seen, dict[str, JsonValue]]:
    newest = _Seen(path)

    def probe() -> tuple[_Seen, dict[str, JsonValue]] | None:
        nonlocal newest
        newest = _Seen(path)
        found = newest.read()
        return None if found is None else (newest, found)

    try:
        return wait_until(probe, TORN_FOR, clock, REREAD_EVERY)
    except DeadlinePassed:
        _keep_copy(path, newest.content or b"", clock)
        raise _Unreadable from None


def _keep_copy(path: Path, content: bytes, clock: Clock) -> None:
    """Once for one content: a file that stays broken does not fill the folder."""
    kept = path.parent.glob(f"{path.name}.unreadable-*")
    if any(copy.read_bytes() == content for copy in kept):
        return
    durable.replace(path.with_name(f"{path.name}.unreadable-{clock.now():%Y%m%dT%H%M%SZ}"), content)


def _as_json(value: dict[str, JsonValue]) -> bytes:
    try:
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can hold and UTF-8 cannot
        return (json.dumps(value, indent=2) + "\n").encode()
