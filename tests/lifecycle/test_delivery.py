"""Texts that are typed once, whatever happens on their way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from lifecycle.delivery import deliver
from lifecycle.errors import BusyTooLong, NotDelivered, NothingTyped
from lifecycle.host import Host
from lifecycle.policy import Policy
from lifecycle.renewal import Delivery
from lifecycle.waiting import SystemClock
from tests.agents.deadlines import DEADLINES
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of

TEXT = "please write down where you stand"


@pytest.fixture
def host(stage: Stage) -> Iterator[Host]:
    with host_of(stage, deadlines={**DEADLINES, "delivery": 1}) as host:
        yield host


class Killed(BaseException):
    """The process dies here."""


class _Intents:
    """What an earlier run left in the ledger."""

    def __init__(self) -> None:
        self.newest: Delivery | None = None

    def __call__(self, intent: Delivery) -> None:
        self.newest = intent


def _occupy(stage: Stage) -> None:
    """A turn that lasts until it is let go."""
    stage.behave(held=True)
    stage.paste("a long turn")
    stage.press("Enter")
    stage.wait_busy()


def _let_go_once_queued(stage: Stage, host: Host, looks: int = 1) -> None:
    """End the turn when *deliver* has seen so often, five times a second, that its text is queued behind it."""
    seen: list[str] = []

    def heed(_: str, words: str) -> None:
        seen.append(words)
        if sum("queued" in words for words in seen) == looks:
            stage.behave(held=False)

    host.progress = heed


def _times_sent(stage: Stage) -> int:
    return sum(row.role == "user" and row.content == TEXT for row in stage.rows())


def _killed_in_the_queue(stage: Stage, host: Host) -> Delivery:
    """A first run that was killed after its Enter, while its text was queued behind a turn."""
    intents = _Intents()

    def die(_: str, words: str) -> None:
        if "queued" in words:
            raise Killed

    host.progress = die
    with pytest.raises(Killed):
        deliver(host, stage.worker(), TEXT, kind="handoff", remember=intents, while_busy=True)
    host.progress = lambda *_: None
    assert intents.newest is not None
    return intents.newest


def test_a_text_queued_when_its_run_was_killed_is_not_pasted_again(stage: Stage, host: Host) -> None:
    _occupy(stage)
    intent = _killed_in_the_queue(stage, host)
    assert stage.is_busy()
    _let_go_once_queued(stage, host)

    row = deliver(host, stage.worker(), TEXT, kind="handoff", intent=intent, while_busy=True)

    stage.wait_ready()
    assert (row.row_id > intent.after_row, _times_sent(stage)) == (True, 1)


def test_a_text_that_was_entered_and_lost_is_pasted_again_once_the_agent_is_idle(stage: Stage, host: Host) -> None:
    intent = Delivery(kind="handoff", text=TEXT, after_row=0, began_at=host.now(), entered_at=host.now())
    _occupy(stage)
    _let_go_once_queued(stage, host)

    deliver(host, stage.worker(), TEXT, kind="handoff", intent=intent, while_busy=True)

    assert [row.content for row in stage.rows() if row.role == "user"] == ["a long turn", TEXT]


def test_a_text_killed_before_its_enter_is_entered_where_it_stands(stage: Stage, host: Host) -> None:
    intent = Delivery(kind="handoff", text=TEXT, after_row=0, began_at=host.now(), entered_at=host.now())
    stage.paste(TEXT)
    stage.wait(lambda: stage.holds(TEXT), 60, "the text")

    deliver(host, stage.worker(), TEXT, kind="handoff", intent=intent)

    assert _times_sent(stage) == 1


def test_a_queued_text_is_waited_for_longer_than_any_other_answer(stage: Stage, host: Host) -> None:
    _occupy(stage)
    _let_go_once_queued(stage, host, looks=10)  # two seconds, after the second of the delivery's own deadline

    deliver(host, stage.worker(), TEXT, kind="handoff", while_busy=True)

    assert _times_sent(stage) == 1


def test_a_text_behind_a_turn_that_does_not_end_is_given_up_as_busy_too_long(stage: Stage, host: Host) -> None:
    _occupy(stage)
    worker = stage.worker(policy=Policy(busy_block=timedelta(seconds=2)))

    with pytest.raises(BusyTooLong):
        deliver(host, worker, TEXT, kind="handoff", while_busy=True)

    assert _times_sent(stage) == 0


def test_nothing_is_pasted_into_a_dialog_that_opens_while_the_intent_is_written(stage: Stage, host: Host) -> None:
    def remember(_: Delivery) -> None:
        stage.behave(handoff="dialog")
        stage.paste("CONTEXT_HANDOFF_REQUIRED by someone else")
        stage.press("Enter")
        stage.wait(lambda: "Allow once" in stage.screen(), 60, "the dialog")

    with pytest.raises(NothingTyped):
        deliver(host, stage.worker(), TEXT, kind="handoff", remember=remember)

    assert TEXT[:20] not in stage.screen()
    assert "Allow once" in stage.screen(), "nobody answered it"


def test_the_intent_says_that_enter_is_pressed_before_it_is(stage: Stage, host: Host) -> None:
    stood: list[tuple[bool, bool]] = []

    def remember(intent: Delivery) -> None:
        stood.append((intent.entered_at is not None, stage.holds(TEXT)))

    deliver(host, stage.worker(), TEXT, kind="handoff", remember=remember)

    assert stood == [(False, False), (True, True)]


def test_a_paste_that_vanished_is_pasted_once_more(stage: Stage, host: Host) -> None:
    stage.behave(lost_pastes=1)

    deliver(host, stage.worker(), TEXT, kind="handoff")

    assert _times_sent(stage) == 1


def test_a_line_that_loses_every_paste_gets_two_and_no_enter(stage: Stage, host: Host) -> None:
    stage.behave(lost_pastes=99, handoff="good")

    with pytest.raises(NotDelivered, match="Enter was not pressed"):
        deliver(host, stage.worker(), TEXT, kind="handoff")
    stage.behave(lost_pastes=2)  # the third one is taken
    stage.paste("a word of a person")
    stage.wait(lambda: stage.holds("a word of a person"), 60, "the third paste")

    assert (_times_sent(stage), stage.holds(TEXT)) == (0, False)


def test_a_face_that_reads_late_is_given_the_text_once(stage: Stage) -> None:
    class Waker(SystemClock):
        """The face reads on only when its paste has stood unread for longer than a lost one is waited for."""

        deaf_since: float | None = None

        def sleep(self, span: timedelta) -> None:
            super().sleep(span)
            if self.deaf_since is not None and self.monotonic() - self.deaf_since > 2.5:
                stage.behave(deaf=False)
                self.deaf_since = None

    clock = Waker()

    def remember(intent: Delivery) -> None:
        if intent.entered_at is None:
            stage.behave(deaf=True)
            stage.press("C-u")  # it looks into its manners again
            clock.deaf_since = clock.monotonic()

    with host_of(stage, deadlines={**DEADLINES, "delivery": 1}) as host:
        host.clock = clock
        deliver(host, stage.worker(), TEXT, kind="handoff", remember=remember)

    assert _times_sent(stage) == 1
