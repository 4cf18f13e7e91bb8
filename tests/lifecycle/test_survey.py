"""What one look at a worker changes in its record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lifecycle.policy import Policy
from lifecycle.processes import ProcessId
from lifecycle.reading import ContextReading, Source
from lifecycle.record import WorkerRecord
from lifecycle.renewal import Renewal
from lifecycle.screen import PaneLook, PaneState, Screen
from lifecycle.survey import DOWN, WAITS_AS_BUSY, counted
from lifecycle.transcript import TurnState
from lifecycle.worker import Worker

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
WORKER = Worker(
    worker_id="builder",
    profile=Path("/profile"),
    session="swarm-builder",
    policy=Policy(soft=30_000, handoff=60_000, hard=90_000),
)
FRESH = WorkerRecord(worker_id="builder")
AGENT, ANOTHER = ProcessId(pid=7, started=1.0), ProcessId(pid=8, started=2.0)
UNREAD = ContextReading(worker_id="builder", at=NOW, error="locked")
NO_SESSION = ContextReading(worker_id="builder", at=NOW)


def reading(tokens: int) -> ContextReading:
    return ContextReading(worker_id="builder", at=NOW, session_id="s1", tokens=tokens, source=Source.API_LOG)


def look(
    before: WorkerRecord,
    found: ContextReading,
    state: PaneState = PaneState.READY,
    *,
    now: datetime = NOW,
    turn: TurnState | None = None,
    agent: ProcessId | None = None,
    boot: str | None = "boot-1",
    background: bool = False,
    text: str = "",
) -> WorkerRecord:
    screen = Screen(session_id="$1", window_id="@1", pane_id="%1", pane_pid=7, text=text)
    pane = PaneLook(state=state, screen=screen, background=background)
    return counted(before, WORKER, found, pane, turn, now, agent=agent, boot=boot)


def test_unknown_readings_are_counted_until_one_is_good() -> None:
    record = look(look(FRESH, UNREAD), UNREAD)
    assert (record.unknown_streak, record.last_good) == (2, None)
    assert look(record, reading(1_000)).unknown_streak == 0


def test_the_last_good_reading_outlives_a_bad_one() -> None:
    record = look(look(FRESH, reading(1_000)), UNREAD)
    assert (record.last_good, record.session_id) == (reading(1_000), "s1")


def test_a_worker_without_a_session_is_no_unknown_one() -> None:
    record = look(look(FRESH, UNREAD), NO_SESSION)
    assert (record.unknown_streak, record.last_good, record.session_id) == (0, NO_SESSION, None)


@pytest.mark.parametrize("state", WAITS_AS_BUSY)
def test_a_worker_over_a_limit_is_busy_since_the_first_look_that_found_it_so(state: PaneState) -> None:
    record = look(FRESH, reading(70_000), state)
    assert record.busy_since == NOW
    assert look(record, reading(95_000), PaneState.BUSY, now=NOW + MINUTE).busy_since == NOW


def test_a_delegate_or_a_compaction_behind_a_free_line_is_busy_too() -> None:
    for turn in (TurnState(delegating=True), TurnState(compacting=True)):
        assert look(FRESH, reading(70_000), turn=turn).busy_since == NOW
    assert look(FRESH, reading(70_000), background=True).busy_since == NOW


def test_an_idle_look_or_one_under_the_limits_ends_the_run() -> None:
    record = look(FRESH, reading(70_000), PaneState.BUSY)
    assert look(record, reading(70_000), now=NOW + MINUTE).busy_since is None
    assert look(record, reading(50_000), PaneState.BUSY, now=NOW + MINUTE).busy_since is None
    assert look(record, NO_SESSION, PaneState.BUSY, now=NOW + MINUTE).busy_since is None


def test_a_reading_that_failed_neither_begins_nor_ends_the_run() -> None:
    record = look(FRESH, reading(70_000), PaneState.BUSY)
    unread = look(record, UNREAD, PaneState.BUSY, now=NOW + MINUTE)
    assert unread.busy_since == NOW
    assert look(unread, reading(70_000), PaneState.BUSY, now=NOW + 2 * MINUTE).busy_since == NOW
    assert look(FRESH, UNREAD, PaneState.BUSY).busy_since is None
    assert look(record, UNREAD, now=NOW + MINUTE).busy_since is None


def test_another_agent_in_the_place_of_the_known_one_means_that_it_died() -> None:
    record = look(FRESH, reading(1_000), agent=AGENT)
    assert (record.agent, record.deaths, record.last_alive_at) == (AGENT, (), NOW)
    assert look(record, reading(1_000), agent=AGENT, now=NOW + MINUTE).deaths == ()
    died = look(record, reading(1_000), agent=ANOTHER, now=NOW + MINUTE)
    assert (died.agent, died.deaths) == (ANOTHER, (NOW + MINUTE,))


def test_an_agent_that_a_renewal_replaces_did_not_die() -> None:
    renewal = Renewal(renewal_id="r1", worker_id="builder", generation=1, opened_at=NOW, updated_at=NOW)
    record = look(FRESH, reading(1_000), agent=AGENT).model_copy(update={"open_renewal": renewal})
    assert look(record, reading(1_000), agent=ANOTHER).deaths == ()


def test_deaths_of_long_ago_are_forgotten() -> None:
    record = look(FRESH, reading(1_000), agent=AGENT).model_copy(update={"deaths": (NOW - 61 * MINUTE, NOW - MINUTE)})
    assert look(record, reading(1_000), agent=ANOTHER).deaths == (NOW - MINUTE, NOW)


@pytest.mark.parametrize("state", DOWN)
def test_a_worker_that_is_down_in_its_boot_was_not_cut_off(state: PaneState) -> None:
    alive = look(FRESH, reading(1_000), agent=AGENT)
    assert (alive.was_alive, alive.last_boot) == (True, "boot-1")
    assert not look(alive, reading(1_000), state).was_alive
    rebooted = look(alive, reading(1_000), state, boot="boot-2")
    assert (rebooted.was_alive, rebooted.last_boot) == (True, "boot-1")
    assert rebooted.was_cut_off_before("boot-2")


def test_a_pane_that_cannot_be_read_says_nothing_of_life_and_death() -> None:
    alive = look(FRESH, reading(1_000), agent=AGENT)
    record = look(alive, reading(1_000), PaneState.UNKNOWN, now=NOW + MINUTE)
    assert (record.was_alive, record.last_alive_at, record.agent) == (True, NOW, AGENT)


def test_a_busy_pane_is_still_since_it_last_showed_anything_new() -> None:
    record = look(FRESH, reading(1_000), PaneState.BUSY, text="builds")
    same = look(record, reading(1_000), PaneState.BUSY, text="builds", now=NOW + MINUTE)
    assert same.still_since == NOW
    assert (
        look(same, reading(1_000), PaneState.BUSY, text="tests", now=NOW + 2 * MINUTE).still_since == NOW + 2 * MINUTE
    )
    assert look(same, reading(1_000), PaneState.READY, text="builds").still_since is None


def test_a_look_changes_nothing_else() -> None:
    before = WorkerRecord(worker_id="builder", generation=4, held_since=NOW, held_why="x", baseline=5, repeats=2)
    after = look(before, reading(1_000), agent=AGENT)
    kept = ("generation", "held_since", "held_why", "baseline", "repeats", "parked_until", "open_renewal", "launch")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
