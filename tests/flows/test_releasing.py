"""A worker that was asked, and is not renewed, is told to carry on: once, and as soon as it can be told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments import cli
from flows.recovery import recover_renewals
from flows.sweep import sweep_workers
from lifecycle.answering import answer
from lifecycle.choice import Choice
from lifecycle.ledger import Ledger
from lifecycle.releasing import release, release_late
from tests.flows.conftest import Scene


def _sweep() -> list[dict[str, Any]]:
    return sweep_workers(renewals="here", return_state=True).result()  # type: ignore[return-value]


def _releases(scene: Scene) -> int:
    return scene.user_texts().count(f"RENEWAL_CANCELLED {scene.renewal.renewal_id}: carry on with your task")


def _blocked_at_a_dialog(scene: Scene) -> None:
    scene.configure(deadlines={"handoff_answer": 3})
    scene.stage.behave(handoff="dialog")
    assert scene.renew(asked_by="sweep").name == "Blocked"
    assert _releases(scene) == 0


def _refuse_the_dialog(scene: Scene) -> None:
    """Its turn goes on without an answer to us: the human stops it with a word of their own."""
    scene.stage.behave(handoff="partial")
    scene.stage.press("4")
    scene.stage.wait_ready()


def test_a_worker_closed_at_a_dialog_is_released_by_the_sweep_that_finds_it_idle(scene: Scene) -> None:
    _blocked_at_a_dialog(scene)
    with scene.host() as host:
        answer(host, host.worker(scene.worker_id), Choice.DISMISS, who="alex")
    _sweep()
    assert _releases(scene) == 0, "nothing is typed into its dialog"
    _refuse_the_dialog(scene)

    (told,) = _sweep()
    scene.stage.wait_ready()
    (later,) = _sweep()

    assert _releases(scene) == 1
    assert (told["outcome"], later["outcome"]) == ("spared", "none")
    assert "told to carry on" in told["reason"]


def test_recover_tells_a_worker_that_could_not_be_told_and_a_dry_run_only_says_so(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    _blocked_at_a_dialog(scene)
    with scene.host() as host:
        answer(host, host.worker(scene.worker_id), Choice.DISMISS, who="alex")
    _refuse_the_dialog(scene)

    def recover(*options: str) -> dict[str, Any]:
        capsys.readouterr()
        assert cli.run(["recover", *options, "--json"]) == 0
        (entry,) = json.loads(capsys.readouterr().out)
        return dict(entry)

    planned = recover("--dry-run")
    assert (planned["goes_on"], planned["next_step"]) == (True, "tell the worker to carry on, once it is idle")
    assert _releases(scene) == 0
    assert recover()["outcome"] == "spared"
    assert _releases(scene) == 1
    scene.stage.wait_ready()
    assert recover_renewals(renewals="here", return_state=True).result() == []


def test_a_held_worker_is_released_only_when_the_hold_is_lifted(scene: Scene) -> None:
    _blocked_at_a_dialog(scene)
    with scene.host() as host:
        answer(host, host.worker(scene.worker_id), Choice.HOLD, who="alex")
        _refuse_the_dialog(scene)
        _sweep()
        assert _releases(scene) == 0

        host.ledger.remember(scene.worker_id, held_since=None, cooldown_until=host.now().replace(year=2999))
    _sweep()

    assert _releases(scene) == 1


def test_another_agent_than_the_one_that_was_asked_is_told_nothing(scene: Scene) -> None:
    _blocked_at_a_dialog(scene)
    with scene.host() as host:
        answer(host, host.worker(scene.worker_id), Choice.DISMISS, who="alex")
    scene.stage.stop()
    scene.stage.start(handoff="good")
    scene.stage.wait_ready()

    _sweep()

    assert _releases(scene) == 0


def test_a_release_that_was_typed_when_its_run_was_killed_is_not_typed_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.configure(policy={"release_on_block": False})
    scene.stage.behave(handoff="partial")
    assert scene.renew(asked_by="sweep").name == "Blocked"
    scene.configure()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with scene.host() as host:
        worker, renewal = host.worker(scene.worker_id), scene.renewal
        with monkeypatch.context() as fault:
            fault.setattr(Ledger, "put", killed)
            with pytest.raises(KeyboardInterrupt):
                release(host, worker, renewal)
        scene.stage.wait_ready()

        assert release_late(host, worker)

    assert (_releases(scene), scene.renewal.released) == (1, True)
