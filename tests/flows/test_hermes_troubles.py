"""What a provider does to the real Hermes Agent, and what becomes of its renewal."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from flows.sweep import sweep_workers
from lifecycle.failed_turn import TurnWatch
from lifecycle.parking import resting
from lifecycle.renewal import Phase
from lifecycle.screen import PaneState
from lifecycle.survey import survey
from tests.agents.hermes_stage import HermesStage
from tests.flows.conftest import Scene, acted

pytestmark = [pytest.mark.hermes, pytest.mark.prefect]

both_faces = pytest.mark.parametrize("hermes_stage", ["cli", "tui"], indirect=True)

PATIENT = {
    "delivery": 15,
    "handoff_answer": 90,
    "idle_before_stop": 30,
    "exit": 15,
    "term": 5,
    "ready": 90,
    "resume_answer": 90,
}


MISSION = "Mission: keep the seed ledger of this folder, ledger.txt, one line an entry. Begin with entry 1."


@pytest.fixture
def full(hermes_stage: HermesStage, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A real agent that has begun its mission and is over its handoff limit."""
    hermes_stage.answer_to(hermes_stage.say(MISSION))
    hermes_stage.wait_ready()
    hermes_stage.fill(70_000)
    return Scene(hermes_stage, monkeypatch, deadlines=PATIENT)


def _model_of(scene: Scene) -> Callable[..., Any]:
    assert isinstance(scene.stage, HermesStage)
    return scene.stage.model.change


def _sweep() -> list[str]:
    state: Any = sweep_workers(renewals="here", return_state=True)
    return [entry["outcome"] for entry in acted(state)]


def _sweep_until_it_acts() -> list[str]:
    """A pane that is caught while it is drawn is left to the next sweep."""
    for _ in range(6):
        if outcomes := _sweep():
            return outcomes
    return []


def _let_the_rest_end(scene: Scene) -> None:
    """What the clock would do: every stored time has come."""
    past = datetime.now(UTC) - timedelta(seconds=1)
    with scene.host() as host:
        host.ledger.remember(scene.worker_id, parked_until=past)
        path = host.ledger.path
    with closing(sqlite3.connect(path)) as ledger, ledger:
        ledger.execute("update breakers set until = ?", (past.isoformat(),))


@both_faces
def test_a_limit_with_a_stated_end_parks_the_handoff_until_then(full: Scene) -> None:
    pid = full.stage.pane_pid
    _model_of(full)(fault=429, fault_words="Usage limit reached, try again in 2h 42m", retry_after=0.2)

    assert _sweep_until_it_acts() == ["parked"]

    with full.host() as host:
        parked = resting(host, host.worker(full.worker_id))
    assert parked is not None
    assert parked.until is not None
    assert timedelta(hours=2, minutes=40) < parked.until - datetime.now(UTC) < timedelta(hours=2, minutes=44)
    assert (full.renewal.phase, full.renewal.block, full.stage.pane_pid) == (Phase.REQUESTED, None, pid)
    _model_of(full)(fault=None)
    typed = full.user_texts()
    assert _sweep() == []
    assert full.user_texts() == typed, "nothing is typed before"
    _let_the_rest_end(full)
    assert _sweep_until_it_acts() == ["renewed"]


@both_faces
def test_a_lost_login_parks_until_a_person_is_answered_again(full: Scene) -> None:
    _model_of(full)(fault=401, fault_words="Invalid API key or token expired")

    assert _sweep_until_it_acts() == ["parked"]

    assert [subject for subject in full.notices() if "login" in subject] == ["swarm1: login lost"]
    _model_of(full)(fault=None)
    typed = full.user_texts()
    assert _sweep() == []
    assert full.user_texts() == typed
    full.stage.answer_to(full.stage.say("I have logged in again."))
    full.stage.wait_ready()
    with full.host() as host:
        survey(host, host.workers())
    assert _sweep_until_it_acts() == ["renewed"]


@both_faces
def test_an_endpoint_that_is_down_parks_and_the_renewal_goes_on_when_it_is_back(full: Scene) -> None:
    _model_of(full)(fault=500)

    assert _sweep_until_it_acts() == ["parked"]

    with full.host() as host:
        parked = resting(host, host.worker(full.worker_id))
        assert host.breaker(host.worker(full.worker_id)) is None, "a failing call says nothing of the account"
    assert parked is not None
    assert parked.until is not None
    assert parked.until - datetime.now(UTC) <= timedelta(minutes=2)
    _model_of(full)(fault=None)
    _let_the_rest_end(full)
    assert _sweep_until_it_acts() == ["renewed"]


def test_an_agent_that_retries_by_itself_is_busy_and_has_not_failed(full: Scene) -> None:
    _model_of(full)(fault=429, retry_after=90)  # longer than any ten looks, so that its retries are not over before
    full.stage.say("one more entry")

    with full.host() as host:
        worker = host.worker(full.worker_id)
        full.stage.wait(lambda: host.look(worker).state is PaneState.BUSY, 60, "BUSY")
        watch, looks = TurnWatch(host, worker), []
        for _ in range(10):
            looks.append(host.look(worker))
            watch.see(looks[-1])

    whole = [look for look in looks if look.state is not PaneState.UNKNOWN]  # a frame that was not drawn whole
    wrong = [look.evidence() for look in whole if (look.state, look.notice) != (PaneState.BUSY, "")]
    assert whole
    assert wrong == []
