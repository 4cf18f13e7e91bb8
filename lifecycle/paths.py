"""Every path of a worker and of Afresh itself, in one place."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from lifecycle.errors import Misuse
from lifecycle.value import Value
from lifecycle.worker import Worker


class WorkerPaths(Value):
    """The files of one worker. Nothing is created by asking."""

    worker_id: str
    profile: Path
    memory_root: Path
    home: Path

    @property
    def state_db(self) -> Path:
        return self.profile / "state.db"

    @property
    def agent_log(self) -> Path:
        return self.profile / "logs" / "agent.log"

    @property
    def config(self) -> Path:
        return self.profile / "config.yaml"

    @property
    def runtime_json(self) -> Path:
        return self.profile / "runtime.json"

    @property
    def memory(self) -> Path:
        return self.profile / "memory"

    @property
    def handoffs(self) -> Path:
        return self.memory / "handoffs"

    @property
    def latest(self) -> Path:
        return self.handoffs / "latest.md"

    @property
    def shared_latest(self) -> Path:
        """The reference system's resume source; only Afresh writes it."""
        return self.memory_root / "memory" / "handoffs" / "swarm" / f"{self.worker_id}-latest.md"

    @property
    def archive(self) -> Path:
        return self.home / "archive" / self.worker_id

    @property
    def lock(self) -> Path:
        return self.home / "locks" / f"{self.worker_id}.lock"

    def draft(self, renewal_id: str) -> Path:
        return self.handoffs / f"draft-{renewal_id}.md"

    def missing(self, renewal_id: str) -> Path:
        """What a draft lacks, for the worker to read."""
        return self.handoffs / f"missing-{renewal_id}.md"

    def pack(self, renewal_id: str) -> Path:
        """What a new session reads first. Beside the archive, which holds nothing but handoffs."""
        return self.home / "packs" / self.worker_id / f"resume-{renewal_id}.md"

    def mission_copy(self, mission_id: str) -> Path:
        """The reference system's per-mission handoff.

        Raises:
            Misuse: the mission id would leave the folder.
        """
        if not mission_id or "/" in mission_id or mission_id.startswith("."):
            msg = f"mission id {mission_id!r} of {self.worker_id} cannot name a file"
            raise Misuse(msg, worker_id=self.worker_id)
        return self.handoffs / f"{mission_id}.md"

    def archived(self, at: datetime, renewal_id: str) -> Path:
        return self.archive / f"{at:%Y%m%dT%H%M%SZ}-{renewal_id}.md"


def paths_of(worker: Worker, *, memory_root: Path, home: Path) -> WorkerPaths:
    return WorkerPaths(worker_id=worker.worker_id, profile=worker.profile, memory_root=memory_root, home=home)
