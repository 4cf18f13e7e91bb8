"""What crosses a renewal of the real Hermes Agent: corrected, after a death in a tool, over three generations."""

from __future__ import annotations

import threading

import psutil
import pytest

from lifecycle.answering import answer
from lifecycle.choice import Choice
from lifecycle.renewal import Quality, Renewal
from lifecycle.resumption import LAST_WORDS, Resumption
from tests.agents.hermes_stage import HermesStage
from tests.flows.test_hermes import MISSION, PATIENT, RULES, HermesScene

pytestmark = [pytest.mark.hermes, pytest.mark.prefect]

SAID = tuple(line.partition(". ")[2] for line in RULES.splitlines())
"""The rules of the mission, as they were said in the first session alone."""


@pytest.fixture
def scene(hermes_stage: HermesStage, monkeypatch: pytest.MonkeyPatch) -> HermesScene:
    """A worker that has begun its mission."""
    scene = HermesScene(hermes_stage, monkeypatch, deadlines=PATIENT)
    hermes_stage.answer_to(hermes_stage.say(MISSION, 60), 60)
    hermes_stage.wait_ready()
    return scene


def pack(scene: HermesScene) -> str:
    resume = scene.renewal.resume
    assert resume is not None
    assert resume.pack is not None
    assert f"PACK: {resume.pack}" in resume.text
    return resume.pack.read_text()


def kill_once_queued(scene: HermesScene) -> None:
    """Kill the agent and all that it runs as soon as the request for its handoff waits behind its tool."""
    scene.stage.wait(lambda: "queued for the next turn" in scene.stage.screen().lower(), 90, "the queued request")
    root = psutil.Process(scene.stage.pane_pid)
    for process in (*root.children(recursive=True), root):
        process.kill()


def test_a_bad_handoff_is_corrected_and_the_worker_renewed(scene: HermesScene) -> None:
    scene.stage.model.change(first_handoff="partial")

    assert scene.renew().name == "Renewed"

    renewal = scene.renewal
    assert renewal.correction is not None
    assert "BLOCKER" in renewal.correction.text
    assert renewal.saved is not None
    assert renewal.saved.quality is Quality.WRITTEN
    assert [text for text in scene.user_texts() if text == renewal.correction.text] == [renewal.correction.text]
    assert all(rule in pack(scene) for rule in SAID)


def test_killed_in_a_tool_it_comes_back_with_a_handoff_that_nobody_wrote(scene: HermesScene) -> None:
    scene.begin_tool(95_000, "sleep 60 && touch done")
    killing = threading.Thread(target=kill_once_queued, args=(scene,))
    killing.start()
    try:
        assert scene.sweep() == ["blocked"]
    finally:
        killing.join(100)
    with scene.host() as host:
        answer(host, host.worker(scene.worker_id), Choice.SYNTHESIZE, who="a person")

    assert scene.renew().name == "Renewed"

    renewal = scene.renewal
    assert renewal.saved is not None
    assert renewal.saved.quality is Quality.SYNTHESIZED
    text = pack(scene)
    unknown = text.partition("Effect unknown, because no result was written.")[2]
    assert "sleep 60 && touch done" in unknown, "and nobody repeats it unseen"
    assert all(rule in text for rule in SAID)
    assert "ledger.txt" in text
    assert text.splitlines()[-1] == f"NEXT_ACTION: {LAST_WORDS[Resumption.REGROUND]}"
    assert not any(asked.startswith("CONTINUE ") for asked in scene.user_texts()), "it waits for orders"
    assert not (scene.stage.cwd / "done").exists()


def test_the_third_generation_has_the_rules_that_the_first_was_told(scene: HermesScene) -> None:
    scene.configure(policy={"cooldown": 0})
    done: list[Renewal] = []
    for entry in (2, 3, 4):
        scene.stage.fill(70_000)
        assert scene.sweep() == ["renewed"]
        scene.wait_for_work(entry)
        done.append(scene.renewal)
        assert all(rule in pack(scene) for rule in SAID), f"generation {entry}"

    assert [renewal.generation for renewal in done] == [1, 2, 3]
    sessions = {renewal.acknowledgement.session_id for renewal in done if renewal.acknowledgement}
    assert len(sessions) == 3
    said = [row.content for row in scene.stage.rows() if row.role == "user" and row.session_id in sessions]
    assert not any(rule in text for text in said for rule in SAID), "nobody said them again"
    assert scene.stage.ledger() == ["entry 1", "entry 2", "entry 3", "entry 4"]
