"""Requests that are typed behind a running turn, and what comes of the worker that was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from flows.sweep import sweep_workers
from lifecycle.decision import Action
from lifecycle.planning import plan
from lifecycle.renewal import End
from lifecycle.waiting import SystemClock, wait_until
from tests.flows.conftest import Scene

SHORT = {"delivery": 1, "handoff_answer": 5}


def _sweep() -> list[dict[str, Any]]:
    return sweep_workers(renewals="here", return_state=True).result()  # type: ignore[return-value]


def _occupy(scene: Scene, tokens: int = 95_000) -> None:
    """A turn that lasts until it is let go."""
    scene.stage.behave(held=True)
    scene.stage.paste(f"a long turn [[tokens {tokens}]]")
    scene.stage.press("Enter")
    scene.stage.wait_busy()


@contextmanager
def _let_go_once_queued(scene: Scene, after: float) -> Iterator[None]:
    """End the turn so many seconds after a request was entered behind it; what runs inside waits for that."""

    def is_entered() -> bool:
        with scene.host() as host:
            newest = next(iter(host.ledger.renewals_of(scene.worker_id, limit=1)), None)
            return newest is not None and newest.delivery is not None and newest.delivery.entered_at is not None

    def let_go() -> None:
        wait_until(is_entered, timedelta(seconds=120), SystemClock())
        over.wait(after)
        scene.stage.behave(held=False)

    over = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        letting_go = pool.submit(let_go)
        try:
            yield
        finally:
            over.set()
            letting_go.result()


def _requests(scene: Scene) -> int:
    return sum(text.startswith("CONTEXT_HANDOFF_REQUIRED") for text in scene.user_texts())


def test_a_request_queued_behind_a_long_turn_is_waited_for(scene: Scene) -> None:
    scene.stage.fill(95_000)
    scene.configure(deadlines=SHORT)
    _occupy(scene)

    with _let_go_once_queued(scene, 7):
        assert [entry["outcome"] for entry in _sweep()] == ["renewed"]
    assert _requests(scene) == 1


def test_a_queued_request_that_arrives_after_its_block_is_taken_up(scene: Scene) -> None:
    scene.stage.fill(95_000)
    scene.configure(deadlines=SHORT, policy={"busy_block": 3})
    _occupy(scene)
    assert [entry["outcome"] for entry in _sweep()] == ["blocked"]
    assert scene.block.reason == "busy_too_long"
    scene.stage.behave(held=False)
    scene.stage.wait_ready()

    assert [entry["outcome"] for entry in _sweep()] == ["renewed"]
    assert "block.cleared" in scene.events()
    assert (_requests(scene), scene.renewal.end) == (1, End.RENEWED)


def test_an_order_by_hand_is_queued_behind_a_turn_as_the_dry_run_says(scene: Scene) -> None:
    scene.configure(automatic=False, deadlines=SHORT)
    _occupy(scene, tokens=20_000)
    with scene.host() as host:
        planned = plan(host, host.worker(scene.worker_id), by_hand=True)
    assert (planned.action, "its messages queue" in planned.reason) == (Action.RENEW, True)

    with _let_go_once_queued(scene, 0):
        assert scene.renew().name == "Renewed"
    assert (_requests(scene), scene.user_texts()[1].startswith("a long turn")) == (1, True)
