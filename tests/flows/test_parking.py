"""A provider that limits, fails or no longer knows its client: renewals rest, and go on by themselves."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flows.asking import request_handoff_only
from flows.sweep import sweep_workers
from lifecycle import failed_turn
from lifecycle.answering import answer
from lifecycle.choice import Choice
from lifecycle.errors import Misuse
from lifecycle.host import Host
from lifecycle.parking import close_breaker
from lifecycle.renewal import End, Phase
from lifecycle.settings import load_settings
from lifecycle.status import WorkerStatus, status_of
from lifecycle.survey import survey
from lifecycle.waiting import SystemClock
from tests.agents.stage import Stage
from tests.flows.conftest import Scene, acted

pytestmark = pytest.mark.prefect

LIMIT = "HTTP 429: usage limit reached, try again in 2h 42m"
DOWN = "HTTP 500: the scripted model failed"
LOGIN = "HTTP 401: invalid API key"


@pytest.fixture(autouse=True)
def patient(scene: Scene) -> None:
    scene.configure(deadlines={"handoff_answer": 20, "resume_answer": 20})


def _sweep() -> list[str]:
    state: Any = sweep_workers(renewals="here", return_state=True)
    return [f"{entry['worker_id']} {entry['outcome']}" for entry in acted(state)]


def _status(scene: Scene) -> WorkerStatus:
    with scene.host() as host:
        return status_of(host, host.worker(scene.worker_id))


def _let_the_rest_end(scene: Scene) -> None:
    """What the clock would do: every stored time has come."""
    past = datetime.now(UTC) - timedelta(seconds=1)
    with scene.host() as host:
        host.ledger.remember(scene.worker_id, parked_until=past)
        path = host.ledger.path
    with closing(sqlite3.connect(path)) as ledger, ledger:
        ledger.execute("update breakers set until = ?", (past.isoformat(),))


def _keys(scene: Scene) -> list[str]:
    with scene.host() as host:
        return [str(event.detail["key"]) for event in host.ledger.events() if event.kind == "notice"]


def test_u6_a_limit_during_the_handoff_turn_parks_the_renewal_and_keeps_the_old_session(scene: Scene) -> None:
    pid = scene.stage.pane_pid
    scene.stage.behave(handoff="mute", trouble=LIMIT)

    assert _sweep() == ["swarm1 parked"]

    typed = scene.user_texts()
    assert _sweep() == [], "nothing goes on, and nothing is typed"
    assert scene.renew().name == "Parked"
    assert (scene.user_texts(), scene.stage.pane_pid) == (typed, pid)
    assert (scene.renewal.phase, scene.renewal.block, scene.renewal.is_open) == (Phase.REQUESTED, None, True)
    assert "renewal.parked" in scene.events()
    assert len([subject for subject in scene.notices() if "parked" in subject]) == 1
    _let_the_rest_end(scene)
    scene.stage.behave(handoff="good")
    assert _sweep() == ["swarm1 renewed"]
    assert sum(text.startswith("CONTEXT_HANDOFF_REQUIRED") for text in scene.user_texts()) == 2, "asked again, once"


def test_u5_a_parked_worker_shows_when_and_why_in_any_process(scene: Scene) -> None:
    scene.stage.behave(handoff="mute", trouble=LIMIT)
    began = datetime.now(UTC)
    _sweep()

    row = _status(scene)

    assert (row.lifecycle_state, row.accepting_work) == ("parked", False)
    assert row.parked_until is not None
    assert timedelta(hours=2, minutes=41) < row.parked_until - began < timedelta(hours=2, minutes=44)
    assert "try again in 2h 42m" in row.why
    assert f"{row.parked_until:%Y-%m-%d %H:%M} UTC" in row.why


def test_a_bad_answer_after_a_rest_is_corrected_like_any_other(scene: Scene) -> None:
    scene.stage.behave(handoff="mute", trouble=LIMIT)
    _sweep()
    _let_the_rest_end(scene)
    scene.stage.behave(handoff="partial")

    assert _sweep() == ["swarm1 blocked"]

    assert scene.block.reason == "checkpoint_incomplete"
    assert sum(text.startswith("CONTEXT_HANDOFF_REQUIRED") for text in scene.user_texts()) == 3


def test_a_limit_during_the_first_turn_of_the_new_session_parks_and_the_session_is_reminded(scene: Scene) -> None:
    scene.stage.behave(resume="mute", trouble=LIMIT)

    assert _sweep() == ["swarm1 parked"]

    assert scene.renewal.phase is Phase.RESUMED
    _let_the_rest_end(scene)
    scene.stage.behave(resume="good")
    pid = scene.stage.pane_pid
    assert _sweep() == ["swarm1 renewed"]
    assert scene.stage.pane_pid == pid, "no second start"


def test_a_provider_that_is_down_parks_five_times_and_then_a_human_is_called(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failed_turn, "SETTLED", timedelta(seconds=0.5))
    scene.stage.behave(handoff="mute", trouble=DOWN)
    outcomes = []
    for _ in range(6):
        outcomes += _sweep()
        _let_the_rest_end(scene)

    assert outcomes == ["swarm1 parked"] * 5 + ["swarm1 blocked"]
    assert (scene.block.reason, scene.block.phase) == ("api_failure", Phase.REQUESTED)
    assert "retry" in scene.block.choices
    assert [key.rsplit(":", 1)[1] for key in _keys(scene) if key.startswith("parked:")] == ["api_failure"]


def test_a_turn_that_ends_without_a_word_parks_as_well(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_turn, "QUIET", timedelta(seconds=1))
    scene.stage.behave(handoff="mute")

    assert _sweep() == ["swarm1 parked"]
    _let_the_rest_end(scene)
    scene.stage.behave(handoff="good")
    assert _sweep() == ["swarm1 renewed"]


def test_a_worker_that_talks_of_limits_and_logins_is_not_parked(scene: Scene) -> None:
    scene.stage.say("API call failed after 3 retries: HTTP 401: please log in, the limit resets in 2 hours")
    scene.stage.wait_ready()

    assert _sweep() == ["swarm1 renewed"]


def test_a_handoff_that_was_only_to_be_stored_is_not_turned_into_a_renewal_by_a_rest(scene: Scene) -> None:
    scene.configure(automatic=False, deadlines={"handoff_answer": 20})
    pid = scene.stage.pane_pid
    scene.stage.behave(handoff="mute", trouble=LIMIT)

    assert request_handoff_only(scene.worker_id, return_state=True).name == "Parked"

    assert (scene.renewal.end, scene.stage.pane_pid) == (None, pid)
    assert not any(text.startswith("RENEWAL_CANCELLED") for text in scene.user_texts()), "nothing is typed into a limit"

    scene.stage.behave(handoff="good", trouble="")
    _let_the_rest_end(scene)
    _sweep()

    assert (scene.renewal.end, scene.renewal.stopped, scene.stage.pane_pid) == (End.SPARED, None, pid)
    assert scene.stage.paths.shared_latest.exists(), "it is stored after the rest, and nothing more"


# A fleet: workers with the same provider, address and key.


@pytest.fixture
def second(scene: Scene) -> Stage:
    """A worker on the same account, over its limit too."""
    other = scene.stage.another("swarm2")
    other.start()
    other.wait_ready()
    other.fill(70_000)
    path = scene.stage.ground.home / "afresh.toml"
    entry = f'automatic = true\ncwd = "{other.cwd}"\ncommand = ["{other.command[0]}", "chat", "--cli"]\n'
    path.write_text(f"{path.read_text()}\n[workers.swarm2]\n{entry}")
    return other


def _fail_a_turn(stage: Stage, trouble: str) -> None:
    stage.behave(fails=True, trouble=trouble)
    stage.say("one more line")
    stage.wait(lambda: "❌" in stage.screen(), 60, "the failure")
    stage.wait_ready()


def test_u3_one_limit_holds_every_worker_of_the_account(scene: Scene, second: Stage) -> None:
    _fail_a_turn(scene.stage, LIMIT)
    typed = second.rows()

    assert _sweep() == []

    assert second.rows() == typed
    assert len(scene.notices()) == 1, "one word for the fleet"
    assert scene.renew().name == "Parked"


def test_o1_a_lost_login_holds_the_fleet_until_an_answered_turn_proves_the_new_one(scene: Scene, second: Stage) -> None:
    scene.stage.behave(handoff="mute", trouble=LOGIN)
    second_before = [row.content for row in second.rows() if row.role == "user"]

    assert _run_for("swarm1") == ["swarm1 parked"]

    assert _sweep() == []
    assert [row.content for row in second.rows() if row.role == "user"] == second_before
    assert scene.notices() == ["swarm1: asked for a handoff", "swarm1: login lost"]
    assert "hermes auth" in _status(scene).why
    assert _status(scene).parked_until is None
    scene.stage.behave(handoff="good")
    second.answer_to(second.say("a person has logged in again [[tokens 70000]]"))
    second.wait_ready()
    assert _sweep() == ["swarm2 renewed"], "the proof is found"
    assert _sweep() == ["swarm1 renewed"], "and what rested goes on"


def _run_for(worker_id: str) -> list[str]:
    state: Any = sweep_workers([worker_id], renewals="here", return_state=True)
    return [f"{entry['worker_id']} {entry['outcome']}" for entry in acted(state)]


def test_a_breaker_that_a_human_closed_is_not_opened_again_by_the_old_banner(scene: Scene) -> None:
    _fail_a_turn(scene.stage, LOGIN)
    assert _sweep() == []
    with scene.host() as host:
        account = host.account(host.worker(scene.worker_id))
        assert close_breaker(host, account, why="logged in again")
    scene.stage.behave(fails=False)

    assert _sweep() == ["swarm1 renewed"]


def test_the_account_tells_the_credential_apart_and_does_not_hold_it(scene: Scene, second: Stage) -> None:
    with scene.host() as host:
        first, other = (host.account(host.worker(name)) for name in ("swarm1", "swarm2"))
        assert first == other
        assert first.startswith("custom@127.0.0.1:9#")
        assert "dummy" not in first
        config = second.profile / "config.yaml"
        config.write_text(config.read_text().replace("dummy", "another-key"))
        assert host.account(host.worker("swarm2")) != first


# A human's way out.


def _answer(scene: Scene, choice: Choice) -> bool:
    with scene.host() as host:
        return answer(host, host.worker(scene.worker_id), choice, who="ann").goes_on


def test_retry_ends_a_rest_at_once(scene: Scene) -> None:
    scene.stage.behave(handoff="mute", trouble=LIMIT)
    _sweep()
    scene.stage.behave(handoff="good")

    assert _answer(scene, Choice.RETRY)

    assert scene.renew().name == "Renewed"


def test_a_parked_worker_is_spoken_for_where_a_human_says_so(scene: Scene) -> None:
    scene.stage.behave(handoff="mute", trouble=LIMIT)
    _sweep()

    assert _answer(scene, Choice.SYNTHESIZE)

    assert scene.renew().name == "Renewed"
    assert scene.renewal.saved is not None
    assert 'quality: "synthesized"' in scene.renewal.saved.archive.read_text()


def test_a_parked_renewal_can_be_held_and_is_not_forced(scene: Scene) -> None:
    scene.stage.behave(handoff="mute", trouble=LIMIT)
    _sweep()

    with pytest.raises(Misuse, match="parked"):
        _answer(scene, Choice.FORCE)
    assert not _answer(scene, Choice.HOLD)

    assert scene.renewal.end is End.HELD
    assert _status(scene).lifecycle_state == "held"


# What is no failure.


class _Later(SystemClock):
    def __init__(self, ahead: timedelta) -> None:
        self.ahead = ahead

    def now(self) -> datetime:
        return super().now() + self.ahead


def test_b1_a_turn_that_shows_nothing_new_for_half_an_hour_is_told_of_once_and_never_ended(scene: Scene) -> None:
    scene.stage.behave(turn_seconds=600)
    scene.stage.paste("a long and quiet turn")
    scene.stage.press("Enter")
    scene.stage.wait_busy()
    pid = scene.stage.pane_pid

    for minutes in (0, 29, 31, 45):
        with Host.opened(load_settings(), clock=_Later(timedelta(minutes=minutes))) as host:
            survey(host, host.workers())
        told = [key for key in _keys(scene) if key.startswith("wedged")]
        assert len(told) == (minutes > 30), f"after {minutes} minutes"

    assert scene.stage.pane_pid == pid


def test_text_that_a_person_left_in_the_line_is_waited_for_and_never_cleared(scene: Scene) -> None:
    scene.stage.paste("half a thou")
    scene.stage.wait(lambda: scene.stage.holds("half a thou"), 60, "the text")

    assert _sweep() == []
    assert scene.renew().name == "Spared"

    assert scene.stage.holds("half a thou")
    scene.stage.press("Enter")
    scene.stage.wait_ready()
    assert _sweep() == ["swarm1 renewed"]


def test_a_background_process_hinders_no_renewal(scene: Scene) -> None:
    scene.stage.stop()
    scene.stage.start(child="background")
    scene.stage.wait_ready()
    scene.stage.fill(70_000)
    assert "⚙ 1" in scene.stage.screen()

    assert _sweep() == ["swarm1 renewed"]
