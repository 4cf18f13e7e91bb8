"""How long a worker must have rested before it is stopped, or is typed to, and which looks count for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from lifecycle.calm import APART, Calm
from lifecycle.errors import NothingTyped
from lifecycle.host import Host
from lifecycle.idle import SETTLED, process_at_rest, wait_idle
from lifecycle.input_line import FREE_FOR, LONG_OVER, STILL_FOR, takes_text
from lifecycle.screen import PaneState
from lifecycle.transcript import TurnState
from lifecycle.waiting import SystemClock
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of

LONG = timedelta(seconds=30)


class Leaping(SystemClock):
    """The host's clock, which a test can put forward; it says how long was slept."""

    def __init__(self) -> None:
        self.ahead, self.slept = 0.0, timedelta()

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead

    def sleep(self, span: timedelta) -> None:
        self.slept += span
        super().sleep(span)

    def leap(self, span: timedelta) -> None:
        self.ahead += span.total_seconds()


@pytest.fixture
def clock() -> Leaping:
    return Leaping()


@pytest.fixture
def host(stage: Stage, clock: Leaping) -> Iterator[Host]:
    stage.wait_ready()
    with host_of(stage) as host:
        host.clock = clock
        yield host


def test_a_worker_that_nobody_saw_at_rest_is_watched_for_a_while(stage: Stage, host: Host, clock: Leaping) -> None:
    look = wait_idle(host, stage.worker(), LONG)
    assert look is not None
    assert (look.state, clock.slept > timedelta()) == (PaneState.READY, True)


def test_rest_that_an_earlier_step_saw_begin_is_not_waited_for_again(stage: Stage, host: Host, clock: Leaping) -> None:
    process_at_rest(host, stage.worker())
    clock.leap(SETTLED)
    assert wait_idle(host, stage.worker(), LONG) is not None
    assert clock.slept == timedelta()


def test_a_turn_between_two_looks_makes_the_rest_begin_anew(stage: Stage, host: Host, clock: Leaping) -> None:
    process_at_rest(host, stage.worker())
    stage.answer_to(stage.say("a short turn"))
    stage.wait_ready()
    clock.leap(SETTLED)
    assert wait_idle(host, stage.worker(), LONG) is not None
    assert clock.slept > timedelta()


def test_a_text_that_someone_begins_to_type_makes_the_rest_begin_anew(stage: Stage, host: Host, clock: Leaping) -> None:
    process_at_rest(host, stage.worker())
    stage.paste("half a thou")
    stage.wait(lambda: host.look(stage.worker()).state is PaneState.TYPED)
    process_at_rest(host, stage.worker())
    stage.press("C-u")
    stage.wait_ready()
    clock.leap(SETTLED)
    assert wait_idle(host, stage.worker(), LONG) is not None
    assert clock.slept > timedelta()


def test_a_span_of_rest_goes_on_from_look_to_look() -> None:
    calm = Calm()
    assert calm.seen("swarm1", 7, 10.0) == timedelta()
    assert calm.seen("swarm2", 7, 10.3) == timedelta()
    assert calm.seen("swarm1", 7, 10.4) == timedelta(seconds=0.4)


def test_looks_that_lie_far_apart_are_no_span_of_rest() -> None:
    calm = Calm()
    calm.seen("swarm1", 7, 10.0)
    assert calm.seen("swarm1", 7, 10.1 + APART.total_seconds()) == timedelta()


def test_a_worker_seen_at_work_does_not_rest() -> None:
    calm = Calm()
    calm.seen("swarm1", 7, 10.0)
    calm.broken("swarm1")
    assert calm.seen("swarm1", 7, 10.5) == timedelta()


def _takes(host: Host, stage: Stage) -> PaneState:
    return takes_text(host, stage.worker(), "please write down where you stand", while_busy=False).state


def _a_turn_is_just_over(stage: Stage, host: Host, clock: Leaping) -> None:
    at = host.now()
    stage.answer_to(stage.say("a short turn"))
    stage.wait_ready()
    clock.now = lambda: at  # type: ignore[method-assign]


def test_a_line_before_the_first_turn_takes_text_at_once(stage: Stage, host: Host, clock: Leaping) -> None:
    assert _takes(host, stage) is PaneState.READY
    assert clock.slept == timedelta()


def test_a_line_that_earlier_looks_saw_free_takes_text_at_once(stage: Stage, host: Host, clock: Leaping) -> None:
    _a_turn_is_just_over(stage, host, clock)
    host.look(stage.worker())
    clock.leap(STILL_FOR)
    assert _takes(host, stage) is PaneState.READY
    assert clock.slept == timedelta()


def test_a_face_that_draws_between_two_looks_is_waited_for(
    stage: Stage, host: Host, clock: Leaping, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = count()
    _a_turn_is_just_over(stage, host, clock)
    monkeypatch.setattr("lifecycle.host.written_by", lambda _: next(drawn))
    host.look(stage.worker())
    clock.leap(STILL_FOR)
    assert _takes(host, stage) is PaneState.READY
    assert clock.slept > FREE_FOR / 2


def test_a_line_whose_last_turn_is_long_over_takes_text_at_once(stage: Stage, host: Host, clock: Leaping) -> None:
    stage.answer_to(stage.say("a short turn"))
    stage.wait_ready()
    later = host.now() + LONG_OVER
    clock.now = lambda: later  # type: ignore[method-assign]
    assert _takes(host, stage) is PaneState.READY
    assert clock.slept == timedelta()


def test_a_line_whose_last_turn_is_just_over_takes_no_text_yet(stage: Stage, host: Host, clock: Leaping) -> None:
    _a_turn_is_just_over(stage, host, clock)
    assert _takes(host, stage) is PaneState.READY
    assert clock.slept > timedelta()


def test_a_turn_that_failed_is_not_over_with_its_newest_row(stage: Stage, host: Host, clock: Leaping) -> None:
    """It ends with what the agent says on the screen, and leaves no row of that."""
    stage.answer_to(stage.say("a short turn"))
    stage.wait_ready()
    with closing(sqlite3.connect(stage.profile / "state.db")) as db, db:
        db.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) "
            "SELECT session_id, 'user', 'asked in vain', max(timestamp) FROM messages"
        )
    later = host.now() + LONG_OVER
    clock.now = lambda: later  # type: ignore[method-assign]
    assert _takes(host, stage) is PaneState.READY
    assert clock.slept > timedelta()


def test_a_dialog_that_opens_while_the_database_is_asked_takes_no_text(
    stage: Stage, host: Host, clock: Leaping, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.answer_to(stage.say("a short turn"))
    stage.wait_ready()
    later, turn = host.now() + LONG_OVER, Host.turn
    clock.now = lambda: later  # type: ignore[method-assign]

    def while_a_dialog_opens(*args: Any) -> TurnState:
        found = turn(*args)
        stage.say("[[dialog]] go on")
        stage.wait(lambda: "Allow once" in stage.screen(), 30, "the dialog")
        return found

    monkeypatch.setattr(Host, "turn", while_a_dialog_opens)
    with pytest.raises(NothingTyped):
        _takes(host, stage)


def test_a_line_of_which_nobody_can_tell_whether_it_is_drawn_must_be_free_longer(
    stage: Stage, host: Host, clock: Leaping, monkeypatch: pytest.MonkeyPatch
) -> None:
    _a_turn_is_just_over(stage, host, clock)
    monkeypatch.setattr("lifecycle.host.written_by", lambda _: None)
    host.look(stage.worker())
    clock.leap(STILL_FOR)
    assert _takes(host, stage) is PaneState.READY
    assert clock.slept > FREE_FOR / 2
