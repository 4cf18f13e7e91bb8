"""afresh events: what happened, in order."""

from __future__ import annotations

import pytest

from tests.deployments.conftest import Operator, table


@pytest.fixture
def eventful(afresh: Operator) -> Operator:
    """Five events of two workers."""
    afresh.configure(table("workers.alice", {}))
    with afresh.host() as host:
        for number, name in enumerate(["swarm1", "alice", "swarm1", "alice", "swarm1"], start=1):
            host.event(
                "tick", host.worker(name), "r1" if number == 5 else None, number=number, words="two words", none=""
            )
    return afresh


def numbers(operator: Operator, *options: str) -> list[int]:
    return [event["detail"]["number"] for event in operator("events", *options, "--json").json]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], [1, 2, 3, 4, 5]),
        (["alice"], [2, 4]),
        (["--after", "3"], [4, 5]),
        (["--limit", "2"], [4, 5]),
        (["swarm1", "--after", "1", "--limit", "1"], [5]),
        (["alice", "--after", "4"], []),
    ],
)
def test_events_are_chosen_by_worker_number_and_count(
    eventful: Operator, options: list[str], expected: list[int]
) -> None:
    assert numbers(eventful, *options) == expected


def test_people_read_a_line_an_event(eventful: Operator) -> None:
    line = eventful("events", "--limit", "1").out

    number, day, time, *rest = line.split()
    assert (number, len(day), time[-1]) == ("5", 10, "Z")
    assert " ".join(rest) == 'swarm1 tick renewal=r1 number=5 words="two words"'


def test_a_quiet_host_has_no_events(afresh: Operator) -> None:
    assert afresh("events").out == "no events\n"
    assert afresh("events", "--json").json == []
    assert afresh("events", "swarm1", "--json").json == []


def test_a_worker_that_nobody_declares_any_more_keeps_its_events(eventful: Operator) -> None:
    eventful.configure()

    assert numbers(eventful, "alice") == [2, 4]
