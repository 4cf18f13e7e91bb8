"""The real Hermes Agent with the scripted model: what the slow tests stand on."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from deployments.demo.script import Kind
from lifecycle import prompts
from tests.agents.hermes_stage import HermesStage

pytestmark = pytest.mark.hermes


@pytest.mark.parametrize("hermes_stage", ["cli", "tui"], indirect=True)
def test_the_real_agent_works_hands_off_and_resumes_with_the_scripted_model(hermes_stage: HermesStage) -> None:
    stage = hermes_stage
    stage.fill(100_000)
    log = stage.paths.agent_log.read_text()
    assert int(re.findall(r"API call #\d+: .*? in=(\d+)", log)[-1]) == pytest.approx(100_000, abs=500)
    row = stage.say("write the first entry")
    assert "Entry 1" in stage.answer_to(row).content
    assert stage.ledger() == ["entry 1"]

    draft = stage.paths.draft("r-1a2b")
    request = prompts.handoff_request(
        worker_id="swarm1",
        mission_id="mission-seeds",
        renewal_id="r-1a2b",
        draft=draft,
        full="100,000 tokens long",
        now=datetime.now(UTC),
    )
    stage.wait_ready()
    answer = stage.answer_to(stage.say(request)).content
    assert answer.startswith("STATE: HANDOFF")
    assert draft.read_text().count("\n## ") == 9

    resume = prompts.resume(
        worker_id="swarm1",
        renewal_id="r-1a2b",
        mission_id="mission-seeds",
        assignment_id=None,
        archive=draft,
        sha256="0" * 64,
        summary="one entry so far",
        next_action="append entry 2 to the ledger",
        own_words=False,
    )
    stage.wait_ready()
    answer = stage.answer_to(stage.say(resume)).content
    assert "STATE: IN_PROGRESS" in answer
    assert "NEXT_ACTION: append entry 2" in answer
    stage.wait_ready()
    go_on = prompts.carry_on(renewal_id="r-1a2b", next_action="append entry 2 to the ledger", own_words=False)
    stage.answer_to(stage.say(go_on))
    assert stage.ledger() == ["entry 1", "entry 2"]
    kinds = [prompt.kind for prompt in stage.model.requests if prompt.kind is not Kind.AUXILIARY]
    assert list(dict.fromkeys(kinds)) == [Kind.MISSION, Kind.HANDOFF, Kind.RESUME, Kind.CONTINUE]
