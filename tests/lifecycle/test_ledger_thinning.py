"""What the ledger lets go with time, and that a long past costs a sweep nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from lifecycle.collected import Collected, Command, WorkTree
from lifecycle.history import _chapter
from lifecycle.ledger import Ledger
from lifecycle.ledger_thinning import OF_USE_WHILE_OPEN
from lifecycle.reading import ContextReading
from lifecycle.renewal import End, Phase, Renewal
from lifecycle.value import Value
from tests.lifecycle.test_renewal import advanced_to

NOW = datetime(2026, 5, 4, 12, 30, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
WORKERS = ("a", "b")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as ledger:
        yield ledger


def swept(ledger: Ledger, begin: datetime, end: datetime, *, thin: bool = True) -> None:
    """A reading of each worker every ten minutes, and the thinning of every hour."""
    at = begin
    while at <= end:
        ledger.add_readings(ContextReading(worker_id=worker, at=at, tokens=at.minute) for worker in WORKERS)
        if thin and at.minute == begin.minute:
            ledger.thin(at)
        at += 10 * MINUTE


def kept(ledger: Ledger, worker: str = "a") -> list[datetime]:
    rows = ledger._rows("select at from readings where worker_id = ? order by reading_id", [worker])
    return [datetime.fromisoformat(at) for (at,) in rows]


def test_every_reading_stays_for_a_day_one_an_hour_for_a_month_and_none_longer(ledger: Ledger) -> None:
    swept(ledger, NOW - 33 * DAY, NOW)
    for worker in WORKERS:
        found = kept(ledger, worker)
        young = [at for at in found if at >= NOW - DAY]
        old = [at for at in found if at < (NOW - DAY).replace(minute=0)]
        assert young == [NOW - DAY + number * 10 * MINUTE for number in range(24 * 6 + 1)]
        assert {at.minute for at in old} == {50}, "the last of each hour"
        assert [later - earlier for earlier, later in pairwise(old)] == [HOUR] * (len(old) - 1)
        assert NOW - 30 * DAY <= found[0] < NOW - 30 * DAY + HOUR


def test_thinning_that_comes_late_leaves_the_same(ledger: Ledger, tmp_path: Path) -> None:
    swept(ledger, NOW - 4 * DAY, NOW)
    with Ledger(tmp_path / "late.db") as late:
        swept(late, NOW - 4 * DAY, NOW, thin=False)
        late.thin(NOW)
        late.thin(NOW)
        assert kept(late) == kept(ledger)


def test_old_events_go_and_no_number_is_given_twice(ledger: Ledger) -> None:
    for days in (40, 31, 29):
        ledger.add_event("told", "a", at=NOW - days * DAY)
    ledger.thin(NOW)
    assert [event.event_id for event in ledger.events()] == [3]
    ledger.thin(NOW + 40 * DAY)
    ledger.add_event("told", "a", at=NOW + 40 * DAY)
    assert [event.event_id for event in ledger.events()] == [3, 4], "whoever follows by number misses none"
    swept(ledger, NOW, NOW)
    ledger.thin(NOW + 40 * DAY)
    swept(ledger, NOW + 40 * DAY, NOW + 40 * DAY)
    assert ledger._rows("select max(reading_id) from readings") == [(4,)]


def test_an_empty_ledger_is_thinned_too(ledger: Ledger) -> None:
    ledger.thin(NOW)
    assert kept(ledger) == []


def test_thinning_looks_only_at_the_hour_that_became_old(tmp_path: Path) -> None:
    assert _steps(tmp_path / "long.db", past=25 * DAY) <= 2 * _steps(tmp_path / "short.db", past=3 * DAY)


def test_of_a_renewal_that_ended_long_ago_the_texts_go_and_the_history_stays(ledger: Ledger) -> None:
    long_ago, lately = NOW - 31 * DAY, NOW - 29 * DAY
    waits = advanced_to(Phase.SAVED).model_copy(update={"renewal_id": "waits", "worker_id": "b", "opened_at": long_ago})
    ledger.open(waits)
    renewals = [ended(ledger, f"r{number}", at) for number, at in enumerate((long_ago, long_ago, lately))]
    ended(ledger, "newest", NOW)
    ledger.thin(NOW)
    first, second, young = (ledger.renewal(renewal.renewal_id) for renewal in renewals)
    for before, after in zip(renewals, (first, second), strict=False):
        assert _chapter(after, None, is_latest=False) == _chapter(before, None, is_latest=False)
        assert after.parsed is not None
        assert before.parsed is not None
        assert after.parsed.checkpoint == before.parsed.checkpoint, "a reboot goes on with it"
        assert (after.saved, after.acknowledgement) == (before.saved, before.acknowledgement)
        assert after.collected == Collected(at=NOW, git=WorkTree(root=Path("/repo"), snapshot="ref", commit="c"))
        assert "a long text" not in after.model_dump_json()
    assert young == renewals[2]
    assert ledger.renewal("waits") == waits, "it may be taken up again"


@pytest.mark.parametrize("path", OF_USE_WHILE_OPEN)
def test_what_goes_of_a_renewal_is_a_field_that_need_not_be_there(path: str) -> None:
    kind: type[Value] = Renewal
    for name in path.split("."):
        field = kind.model_fields[name]
        kind = next((one for one in get_args(field.annotation) if isinstance(one, type)), Value)
    assert not field.is_required()


def test_renewals_are_thinned_a_few_hundred_at_a_time(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifecycle.ledger_thinning.AT_ONCE", 2)
    for number in range(5):
        ended(ledger, f"r{number}", NOW - 31 * DAY)
    ended(ledger, "newest", NOW)
    left = []
    for _ in range(3):
        ledger.thin(NOW)
        left.append(sum("a long text" in doc for (doc,) in ledger._rows("select doc from renewals")))
    assert left == [4, 2, 1]


def test_a_renewal_that_cannot_be_read_does_not_end_the_thinning(ledger: Ledger) -> None:
    for name in ("broken", "whole"):
        ended(ledger, name, NOW - 31 * DAY)
    ended(ledger, "newest", NOW)
    ledger._connection.execute("update renewals set doc = 'a long text' where renewal_id = 'broken'")
    ledger.thin(NOW)
    assert "a long text" not in ledger.renewal("whole").model_dump_json()
    assert ledger._rows("select doc from renewals where renewal_id = 'broken'") == [("a long text",)]


def ended(ledger: Ledger, renewal_id: str, at: datetime) -> Renewal:
    proved = advanced_to(Phase.PROVED)
    assert proved.parsed is not None
    text = "a long text"
    renewal = proved.model_copy(
        update={
            "renewal_id": renewal_id,
            "opened_at": at,
            "updated_at": at,
            "why": "its context was full",
            "given_text": text,
            "reading": ContextReading(worker_id="builder", at=at, tokens=400_000, session_id="s1"),
            "parsed": proved.parsed.model_copy(update={"answer": text, "draft_text": text, "supplement": text}),
            "collected": Collected(
                at=NOW,
                git=WorkTree(root=Path("/repo"), snapshot="ref", commit="c", dirty=(text,)),
                commands=(Command(command=text, at=at),),
            ),
        }
    )
    ledger.open(renewal)
    return ledger.put(renewal.model_copy(update={"end": End.RENEWED}))


def test_the_file_of_a_steady_fleet_stops_growing_after_a_month(ledger: Ledger) -> None:
    ledger._connection.execute("pragma synchronous=off")  # the disk's time says nothing here
    pages = {}
    for hour in range(60 * 24):
        at = NOW + hour * HOUR
        with ledger.transaction():
            for minutes in (0, 15, 30, 45):
                sweep = at + minutes * MINUTE
                ledger.add_readings(ContextReading(worker_id=f"swarm{number}", at=sweep) for number in range(5))
        ledger.thin(at + 50 * MINUTE)
        pages[hour // 24] = ledger._rows("pragma page_count")[0][0]
    assert pages[32] > 1.5 * pages[10]
    assert pages[59] <= 1.02 * pages[32]


def _steps(path: Path, *, past: timedelta) -> int:
    """Steps of SQLite's machine that one more hour takes, in tens."""
    taken: list[None] = []

    def count() -> int:
        taken.append(None)
        return 0

    with Ledger(path) as ledger:
        swept(ledger, NOW - past, NOW)
        ledger._connection.set_progress_handler(count, 10)
        ledger.thin(NOW + HOUR)
        ledger._connection.set_progress_handler(None, 0)
    assert taken
    return len(taken)
