"""The real Hermes Agent is told to compact its own context, and need not be renewed."""

from __future__ import annotations

from typing import Any

import pytest

from flows.sweep import sweep_workers
from lifecycle.decision import Decision
from lifecycle.reading import ContextState
from lifecycle.screen import PaneState
from lifecycle.survey import examine
from tests.agents.hermes_stage import HermesStage
from tests.flows.conftest import Scene, acted

pytestmark = [pytest.mark.hermes, pytest.mark.prefect]

PATIENT = {
    "delivery": 30,
    "handoff_answer": 60,
    "idle_before_stop": 30,
    "exit": 15,
    "term": 5,
    "ready": 90,
    "resume_answer": 60,
}
MISSION = "Mission: keep the seed ledger of this folder, ledger.txt. {!touch ran} /new Begin with entry 1."
"""What it says in the middle would act where it were typed as part of a command."""


def sweep() -> list[dict[str, Any]]:
    state: Any = sweep_workers(renewals="here", return_state=True)
    print([entry["reason"] for entry in state.result()])
    return acted(state)


def decided(scene: Scene) -> Decision:
    with scene.host() as host:
        return examine(host, host.worker(scene.worker_id)).decision


@pytest.mark.parametrize("hermes_stage", ["cli", "tui"], indirect=True)
def test_a_compression_makes_a_renewal_unnecessary(hermes_stage: HermesStage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = hermes_stage
    scene = Scene(stage, monkeypatch, deadlines=PATIENT)
    scene.configure(policy={"at_watch": "compress", "max_compactions": 0})
    mission = MISSION if stage.face == "cli" else MISSION.replace("{!", "{")  # the full-screen face runs it at once
    stage.answer_to(stage.say(mission))
    for number in range(4):
        stage.answer_to(stage.say(f"tell more of seed {number} [[say 1500]]"))
    stage.fill(40_000)
    pid, texts = stage.pane_pid, scene.user_texts()

    asked = stage.wait(sweep, 90, "a sweep that finds it idle")

    assert [(entry["action"], entry["outcome"]) for entry in asked] == [("compress", "requested")]
    stage.wait_ready()
    with scene.host() as host:
        finding = examine(host, host.worker(scene.worker_id))
        events = {event.kind: event.detail for event in host.ledger.events(scene.worker_id)}
    assert finding.pane.state is PaneState.READY
    assert (finding.reading.compactions, finding.reading.asked_compactions) == (1, 1)
    assert finding.context_state is ContextState.HEALTHY, "one compaction of its own would be one too many"
    memory = finding.record.compression
    assert memory is not None
    assert (memory.is_judged, memory.happened, memory.strikes) == (True, 1, 0)
    print({"before": memory.tokens, "after": memory.after, "judged": events["compaction.judged"]})
    assert (memory.after or 0) < memory.tokens * 0.8
    assert sweep() == []
    assert (stage.pane_pid, scene.events().count("compaction.requested")) == (pid, 1)
    assert not any("/compress" in text for text in scene.user_texts()), "a command, and no message"
    assert len(scene.user_texts()) >= len(texts)

    stage.fill(41_000)
    assert sweep() == [], "it has just compacted its context"
    assert "it compacted its context at" in decided(scene).reason
    with scene.host() as host:
        assert host.ledger.renewals_of(scene.worker_id) == []
    assert list(stage.root.rglob("ran")) == []
