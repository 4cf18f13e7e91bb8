"""A policy that is given for a model is in force in every step of a renewal, as it is in the decision."""

from __future__ import annotations

from datetime import timedelta

from lifecycle.answering import answer
from lifecycle.choice import Choice
from tests.flows.conftest import Scene


def _for_the_model(scene: Scene, lines: str) -> None:
    path = scene.stage.ground.home / "afresh.toml"
    path.write_text(f'{path.read_text()}\n[models."scripted-*"]\n{lines}\n')


def test_a_fresh_session_is_weighed_by_the_limits_of_its_model(scene: Scene) -> None:
    scene.configure(policy={"soft": 10_000})  # a fresh session has 15,000
    _for_the_model(scene, "soft = 30_000")

    assert scene.renew(asked_by="sweep").name == "Renewed"


def test_how_a_renewed_worker_goes_on_follows_its_model(scene: Scene) -> None:
    _for_the_model(scene, 'after_resume = "wait"\ncooldown = 7200')

    assert scene.renew(asked_by="sweep").name == "Renewed"

    with scene.host() as host:
        until = host.ledger.record(scene.worker_id).cooldown_until
        assert until is not None
        assert until - host.now() > timedelta(minutes=110)
    assert not any(text.startswith("CONTINUE") for text in scene.user_texts())


def test_how_a_blocked_and_dismissed_worker_is_left_follows_its_model(scene: Scene) -> None:
    _for_the_model(scene, "release_on_block = false\ncooldown = 7200")
    scene.stage.behave(handoff="partial")

    assert scene.renew(asked_by="sweep").name == "Blocked"
    with scene.host() as host:
        answer(host, host.worker(scene.worker_id), Choice.DISMISS, who="alex")
        until = host.ledger.record(scene.worker_id).cooldown_until
        assert until is not None
        assert until - host.now() > timedelta(minutes=110)

    assert not any(text.startswith("RENEWAL_CANCELLED") for text in scene.user_texts())


def test_the_request_names_the_limit_of_the_model(scene: Scene) -> None:
    _for_the_model(scene, "handoff = 66_000")

    scene.renew(asked_by="sweep")

    request = next(text for text in scene.user_texts() if text.startswith("CONTEXT_HANDOFF_REQUIRED"))
    assert "66,000" in request
