"""What the ledger remembers of a worker between sweeps."""

from __future__ import annotations

from datetime import datetime

from lifecycle.compression import Compression
from lifecycle.launch import LaunchSpec
from lifecycle.orders import Orders
from lifecycle.processes import ProcessId
from lifecycle.reading import ContextReading
from lifecycle.renewal import Delivery, Renewal
from lifecycle.transcript import TurnState
from lifecycle.value import Value


class Dismissed(Value):
    """A block that a human closed: the same one is not put again for the same cause.

    *session_id* and *generation* are those that the worker then had.
    """

    reason: str
    session_id: str | None
    generation: int
    at: datetime


class WorkerRecord(Value):
    """The memory of one worker. Every field has a default: a worker that was never seen has an empty record.

    *automatic* overrules the configuration where it is set. *baseline* is the first reading of the session
    *baseline_session*. *last_good* is the newest reading that was not unknown, *last_turn* where its turn last stood;
    *unknown_streak* counts the
    unknown ones since. *repeats* counts generations in a row that ended with the same next action;
    *idle_repeats* those of them that also changed no file and made no tool call. *busy_since* is the first
    sweep of an unbroken run of sweeps that found the worker over a limit and busy. *agent* is the process that
    was seen last; another one in its place means that it died. *last_boot* names the boot in which it was last seen
    alive, and *was_alive* says whether it still was at the last look in that boot. *overhead* is what a call carries
    besides its rows, learned in a fresh session. *renewals* and *deaths* are those of the last hour. *parked_by* is the
    account whose trouble parked the worker. *still_since* is when the pane of a busy worker last showed anything new,
    and *still_mark* stands for what it showed. *dismissed* is the newest block of each reason that a human closed.
    *compression* is what came of telling it to compact its context. *release* is the intent to tell it that a renewal
    is cancelled, *released* the last renewal of which it was told. *orders* are those that crossed last,
    *weak_resumes* counts renewals in a row whose new session took up something else than its handoff.
    """

    worker_id: str
    generation: int = 1
    automatic: bool | None = None
    held_since: datetime | None = None
    held_why: str = ""
    parked_until: datetime | None = None
    parked_why: str = ""
    parked_by: str | None = None
    cooldown_until: datetime | None = None
    session_id: str | None = None
    baseline: int | None = None
    baseline_session: str | None = None
    last_good: ContextReading | None = None
    last_turn: TurnState | None = None
    unknown_streak: int = 0
    checkpoint_asked_in: str | None = None
    stale_renewed_in: str | None = None
    handoff_stored_in: str | None = None
    busy_since: datetime | None = None
    still_since: datetime | None = None
    still_mark: str = ""
    renewals: tuple[datetime, ...] = ()
    deaths: tuple[datetime, ...] = ()
    next_action: str = ""
    repeats: int = 0
    idle_repeats: int = 0
    orders: Orders | None = None
    weak_resumes: int = 0
    last_handoff_at: datetime | None = None
    last_alive_at: datetime | None = None
    last_boot: str | None = None
    was_alive: bool = False
    launch: LaunchSpec | None = None
    overhead: int | None = None
    agent: ProcessId | None = None
    dismissed: tuple[Dismissed, ...] = ()
    compression: Compression | None = None
    release: Delivery | None = None
    released: str | None = None
    open_renewal: Renewal | None = None

    def dismissal(self, reason: str) -> Dismissed | None:
        """When a human last closed a block with this reason."""
        return next((one for one in self.dismissed if one.reason == reason), None)

    @property
    def is_held(self) -> bool:
        return self.held_since is not None

    def was_cut_off_before(self, boot: str) -> bool:
        """Whether the host went down under a worker that was alive: nobody stopped it, and *boot* is a later one."""
        return self.was_alive and self.last_boot is not None and self.last_boot != boot
