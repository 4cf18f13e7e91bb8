"""A step's long wait, as people see it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactCollectionFilter, ArtifactCollectionFilterKey
from prefect.settings import PREFECT_API_URL, temporary_settings

from tasks import waits
from tasks.waits import wait_shown
from tests.flows.conftest import Scene

KEY = "afresh-wait-swarm1"
WORDS = "waits for the handoff (busy) <b>x</b> password=hunter2hunter2"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "SHOWN_AFTER", timedelta(seconds=0.1))
    monkeypatch.setattr(waits, "SHOWN_EVERY", timedelta(seconds=0.2))


def _newest() -> Any:
    wanted = ArtifactCollectionFilter(key=ArtifactCollectionFilterKey(any_=[KEY]))
    with get_client(sync_client=True) as client:
        return next(iter(client.read_latest_artifacts(artifact_filter=wanted)), None)


def _waiting(scene: Scene, during: Callable[[], object]) -> None:
    @flow
    def waiting() -> None:
        with scene.host() as host, wait_shown(host, KEY, timedelta(seconds=60)):
            host.progress("swarm1", WORDS)
            during()

    waiting()


def test_a_wait_moves_towards_its_deadline_and_says_what_it_waits_for_without_secrets(scene: Scene) -> None:
    seen: list[Any] = []

    def moves() -> bool:
        found = _newest()
        seen.append(found)
        return found is not None and 0 < float(found.data) < 100

    _waiting(scene, lambda: scene.stage.wait(moves, 60, "progress"))

    assert "waits for the handoff" in seen[-1].description
    assert "of at most 60 s" in seen[-1].description
    assert "hunter2" not in seen[-1].description
    over = _newest()
    assert (float(over.data), "over after" in over.description) == (100.0, True)
    assert over.flow_run_id is not None


def test_a_server_that_never_answers_holds_no_step_up(scene: Scene) -> None:
    took: list[float] = []

    @flow
    def waiting(api: str) -> None:
        with scene.host() as host, temporary_settings({PREFECT_API_URL: api}):
            began = time.monotonic()
            with wait_shown(host, KEY, timedelta(seconds=60)):
                scene.stage.wait(lambda: time.monotonic() - began > 0.5, 5)
            took.append(time.monotonic() - began)

    with socket.create_server(("127.0.0.1", 0)) as mute:
        waiting(f"http://127.0.0.1:{mute.getsockname()[1]}/api")

    assert took[0] < 30, "its client would wait a minute for an answer"
    for thread in threading.enumerate():  # else it complains to the terminal, in whichever test runs by then
        if thread.name == KEY:
            thread.join(60)
            assert not thread.is_alive()
