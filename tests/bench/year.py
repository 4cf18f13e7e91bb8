"""A year of a thousand workers that are swept every minute: how large the ledger gets, whether a survey stays quick.

The year is simulated: the clock is moved, and Afresh's own ledger, thinning and surveys do the work.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, cast

from lifecycle.collected import Collected, Command, WorkTree
from lifecycle.host import Host
from lifecycle.ledger import Ledger, StoredHandoff
from lifecycle.reading import ContextReading, Source
from lifecycle.renewal import End, Phase, Quality, Renewal
from lifecycle.settings import load_settings
from lifecycle.survey import survey
from lifecycle.waiting import SystemClock
from tests.bench.crew import Crew, crew_of
from tests.bench.fleet import text_of
from tests.bench.measure import Figure, seconds, timed, worked
from tests.lifecycle.test_renewal import advanced_to

DAYS = 365
LOOKED_AT = (1, 30, 180, 365)
"""Days at whose ends a survey of all workers is timed."""

WHOLE = (1, 180, 365)
"""Days with a sweep every minute. On the others there is one an hour, at its end: what thinning leaves of sixty."""

RENEWED_EVERY = 3
"""Days after which a worker is renewed again."""

EVENTS = 12
"""Of one renewal, as the journal of a real one has them; and those of the last weeks only, for no others are kept."""

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class Ahead(SystemClock):
    """The host's clock, so much later."""

    def __init__(self) -> None:
        self.by = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.by


def year(_folder: Path, workers: int = 1_000, *, days: int = DAYS) -> Iterator[Figure]:
    clock = Ahead()
    with crew_of(workers) as crew, Host.opened(load_settings(environ=crew.ground.environment), clock=clock) as host:
        begin, path = datetime.now(UTC), host.ledger.path
        took: dict[int, tuple[float, float]] = {}
        thinned: list[float] = []
        largest, began = 0, time.monotonic()
        with Ledger(path) as ledger:
            # What waits for the disk takes long here and changes nothing of the file.
            ledger._connection.execute("pragma synchronous=off")
            past = Past(ledger, crew, days)
            for day in range(1, days + 1):
                thinned += past.live(begin + (day - 1) * DAY, day)
                largest = max(largest, _size(path))
                if day in LOOKED_AT:
                    clock.by = day * DAY
                    took[day] = _survey(host)
        largest = max(largest, _size(path))
        free = host.ledger._rows("pragma freelist_count")[0][0] * host.ledger._rows("pragma page_size")[0][0]
        yield Figure(
            name=f"ledger of {workers:,} workers after a year, at its largest, with its log", value=largest / 1e9,
            unit="GB", target=1, better="less",
            detail={"the year's end, MB": _size(path) / 1e6, "of which free, MB": free / 1e6,
                    "days with a sweep a minute": len(WHOLE), "days with a sweep an hour": days - len(WHOLE),
                    "renewals": past.renewals, "a renewal's record, bytes": past.record_bytes,
                    "the same after a month, bytes": _oldest_record(host.ledger),
                    "simulated in, s": time.monotonic() - began},
        )  # fmt: skip
        first = min(took)
        yield Figure(
            name="survey later in the year", value=max(used for _, used in took.values()) / took[first][1],
            unit=f"of the processor time of day {first}", target=1.25, better="less",
            detail={f"day {day}, s ({what})": value for day, both in took.items()
                    for what, value in zip(("clock", "processor"), both, strict=True)}
            | {"thinning after an hour of sweeps, s": statistics.median(thinned)},
        )  # fmt: skip


def _survey(host: Host) -> tuple[float, float]:
    workers = host.workers()
    for _ in range(2):
        survey(host, workers)
    used: list[float] = []
    clock = seconds(lambda: used.append(worked(lambda: survey(host, workers))))
    return clock, statistics.median(used)


def _oldest_record(ledger: Ledger) -> int:
    ((size,),) = ledger._rows("select length(doc) from renewals order by rowid limit 1")
    return int(size)


def _size(path: Path) -> int:
    return sum(one.stat().st_size for one in path.parent.glob(f"{path.name}*"))


class _Reading(NamedTuple):
    """As much of a reading as the ledger writes: a model each of 16 million of them is most of the time."""

    worker_id: str
    at: datetime
    session_id: str
    tokens: int
    source: Source
    session_total: int


class Past:
    """What surveys and renewals would have written, written by the ledger itself."""

    def __init__(self, ledger: Ledger, crew: Crew, days: int) -> None:
        self._ledger, self._names, self._days = ledger, crew.names, days
        self._renewal = _full_renewal(random.Random(11))  # noqa: S311 - no secret
        self.record_bytes = len(self._renewal.model_dump_json())
        self.renewals = 0

    def live(self, begin: datetime, day: int) -> list[float]:
        """Live through one day; the seconds of each thinning of an hour in which sweeps were a minute apart."""
        every, thinned = (MINUTE if day in WHOLE else HOUR), []
        at = begin + every - MINUTE / 2
        while at < begin + DAY:
            with self._ledger.transaction():
                self._ledger.add_readings(self._readings(at))
            at += every
            if (at - begin) // HOUR != (at - every - begin) // HOUR:
                thinned.append(timed(lambda at=at: self._ledger.thin(at)))  # type: ignore[misc]
        self._renew(begin, day)
        return thinned[1:] if day - 1 in WHOLE else []

    def _readings(self, at: datetime) -> Iterable[ContextReading]:
        """Each sweep finds new tokens in each of them."""
        tokens, session = 20_000 + int(at.timestamp()) // 60 % 400_000, f"{at:%Y%m%d}_080000_4f3a01"
        found = (_Reading(name, at, session, tokens, Source.API_LOG, tokens * 9) for name in self._names)
        return cast("Iterable[ContextReading]", found)

    def _renew(self, begin: datetime, day: int) -> None:
        due = self._names[day % RENEWED_EVERY :: RENEWED_EVERY]
        with self._ledger.transaction():
            for number, name in enumerate(due):
                at = begin + DAY * (number / len(due))
                self._one_renewal(name, at, generation=day // RENEWED_EVERY + 1, tell=day > self._days - 40)
            # One statement for all instead of a put each: the row is the same.
            self._ledger._connection.execute("update renewals set end = 'renewed' where end is null")

    def _one_renewal(self, name: str, at: datetime, *, generation: int, tell: bool) -> None:
        renewal_id = f"r{at:%y%m%d%H%M%S}-{self.renewals:06x}"
        self.renewals += 1
        given = {"renewal_id": renewal_id, "worker_id": name, "generation": generation, "opened_at": at}
        self._ledger.open(self._renewal.model_copy(update={**given, "updated_at": at + 3 * MINUTE}))
        self._ledger.add_handoff(
            StoredHandoff(
                renewal_id=renewal_id, worker_id=name, generation=generation,
                archive=Path(f"/home/operator/.afresh/archive/{name}/{at:%Y%m%dT%H%M%SZ}-{renewal_id}.md"),
                sha256=f"{self.renewals:064x}", quality=Quality.WRITTEN, mission_id="mission-42", created_at=at,
            )
        )  # fmt: skip
        if tell:
            for number in range(EVENTS):
                self._ledger.add_event("phase", name, at=at, renewal_id=renewal_id, phase="proved", number=number)


def _full_renewal(chance: random.Random) -> Renewal:
    """A renewed one with texts as long as a worker's that has much to hand over."""
    proved = advanced_to(Phase.PROVED)
    assert proved.request is not None
    assert proved.parsed is not None
    assert proved.resume is not None
    checkpoint = proved.parsed.checkpoint.model_copy(
        update={"files_changed": text_of(60, chance), "result": text_of(80, chance), "next_action": text_of(30, chance)}
    )
    at = proved.opened_at
    return proved.model_copy(
        update={
            "end": End.RENEWED,
            "request": proved.request.model_copy(update={"text": text_of(400, chance)}),
            "parsed": proved.parsed.model_copy(
                update={
                    "checkpoint": checkpoint, "answer": text_of(300, chance), "draft_text": text_of(1_500, chance),
                }
            ),
            "collected": Collected(
                at=at, git=WorkTree(root=Path("/repository"), snapshot="refs/afresh/1", commit="0" * 40),
                commands=tuple(Command(command=text_of(20, chance), exit_code=0, at=at) for _ in range(25)),
            ),
            "resume": proved.resume.model_copy(update={"text": text_of(700, chance)}),
        }
    )  # fmt: skip
