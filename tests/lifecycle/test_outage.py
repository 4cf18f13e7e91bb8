from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lifecycle.host import Host
from lifecycle.outage import SWEPT, heed_server, heed_sweeps
from lifecycle.settings import Settings

URL = "http://127.0.0.1:4200"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONG_AGO = START - timedelta(days=30)


class Dial:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    def sleep(self, span: timedelta) -> None:
        self.at += span


@pytest.fixture
def dial() -> Dial:
    return Dial()


@pytest.fixture
def host(tmp_path: Path, dial: Dial) -> Iterator[Host]:
    given = {"home": tmp_path, "hermes_root": tmp_path, "memory_root": tmp_path, "host_name": "host-a"}
    with Host.opened(Settings.model_validate(given), clock=dial) as opened:
        yield opened


def told(host: Host) -> list[str]:
    return [str(event.detail["subject"]) for event in host.ledger.events() if event.kind == "notice"]


def test_a_server_that_is_down_is_told_once_until_it_answers_again(host: Host) -> None:
    answers = (True, False, False, True, False)
    assert [heed_server(host, URL, answers=one, remedy="Start it.") for one in answers] == [
        *(False, True, False),
        *(False, True),
    ]
    assert told(host) == ["the Prefect server is down"] * 2


def test_no_sweep_for_three_intervals_is_told_once_for_each_that_was_the_last(host: Host, dial: Dial) -> None:
    host.ledger.stamp(SWEPT, at=START)
    minutes = (29, 1, 10)
    found = []
    for more in minutes:
        dial.sleep(timedelta(minutes=more))
        found.append(heed_sweeps(host, up_since=LONG_AGO))
    assert found == [False, True, False]
    host.ledger.stamp(SWEPT, at=dial.now())
    dial.sleep(timedelta(minutes=30))
    assert heed_sweeps(host, up_since=LONG_AGO)
    assert told(host) == ["no sweep on host-a"] * 2


def test_where_none_has_ended_yet_the_first_look_begins_the_time(host: Host, dial: Dial) -> None:
    assert not heed_sweeps(host, up_since=LONG_AGO)
    dial.sleep(timedelta(minutes=30))
    assert heed_sweeps(host, up_since=LONG_AGO)


def test_the_time_in_which_the_host_was_down_does_not_count(host: Host, dial: Dial) -> None:
    host.ledger.stamp(SWEPT, at=START - timedelta(days=2))
    assert not heed_sweeps(host, up_since=START - timedelta(minutes=5))
    dial.sleep(timedelta(minutes=25))
    assert heed_sweeps(host, up_since=START - timedelta(minutes=5))
