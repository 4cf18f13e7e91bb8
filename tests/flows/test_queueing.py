"""Requests that are typed behind a running turn, and what comes of the worker that was asked."""

from __future__ import annotations

from typing import Any

from flows.sweep import sweep_workers
from lifecycle.decision import Action
from lifecycle.planning import plan
from lifecycle.renewal import End
from tests.flows.conftest import Scene

SHORT = {"delivery": 1, "handoff_answer": 3}


def _sweep() -> list[dict[str, Any]]:
    return sweep_workers(renewals="here", return_state=True).result()  # type: ignore[return-value]


def _occupy(scene: Scene, seconds: float, tokens: int = 95_000) -> None:
    """A turn that lasts so long."""
    scene.stage.behave(turn_seconds=seconds)
    scene.stage.paste(f"a long turn [[tokens {tokens}]]")
    scene.stage.press("Enter")
    scene.stage.wait_busy()
    scene.stage.behave(turn_seconds=0.1)


def _requests(scene: Scene) -> int:
    return sum(text.startswith("CONTEXT_HANDOFF_REQUIRED") for text in scene.user_texts())


def test_a_request_queued_behind_a_long_turn_is_waited_for(scene: Scene) -> None:
    scene.stage.fill(95_000)
    scene.configure(deadlines=SHORT)
    _occupy(scene, 7)

    assert [entry["outcome"] for entry in _sweep()] == ["renewed"]
    assert _requests(scene) == 1


def test_a_queued_request_that_arrives_after_its_block_is_taken_up(scene: Scene) -> None:
    scene.stage.fill(95_000)
    scene.configure(deadlines=SHORT, policy={"busy_block": 3})
    _occupy(scene, 9)
    assert [entry["outcome"] for entry in _sweep()] == ["blocked"]
    assert scene.block.reason == "busy_too_long"
    scene.stage.wait_ready()

    assert [entry["outcome"] for entry in _sweep()] == ["renewed"]
    assert "block.cleared" in scene.events()
    assert (_requests(scene), scene.renewal.end) == (1, End.RENEWED)


def test_an_order_by_hand_is_queued_behind_a_turn_as_the_dry_run_says(scene: Scene) -> None:
    scene.configure(automatic=False, deadlines=SHORT)
    _occupy(scene, 5, tokens=20_000)
    with scene.host() as host:
        planned = plan(host, host.worker(scene.worker_id), by_hand=True)
    assert (planned.action, "its messages queue" in planned.reason) == (Action.RENEW, True)

    assert scene.renew().name == "Renewed"
    assert (_requests(scene), scene.user_texts()[1].startswith("a long turn")) == (1, True)
