"""Telling a worker to compact its context, with a scripted agent, which has no such command and just answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lifecycle.compression import APART
from lifecycle.decision import Action
from lifecycle.errors import NothingTyped
from lifecycle.host import Host
from lifecycle.steps.compressing import compress
from lifecycle.steps.watching import ask_for_checkpoint
from lifecycle.survey import examine, survey
from tests.agents.deadlines import DEADLINES
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of

POLICY = {"soft": 30_000, "handoff": 60_000, "hard": 90_000, "at_watch": "compress"}
SETTINGS: dict[str, Any] = {"automatic": True, "policy": POLICY, "deadlines": {**DEADLINES, "delivery": 2}}


def told(host: Host) -> bool:
    return ask_for_checkpoint(host, host.worker("swarm1"), by_hand=False).sent


def let_time_pass(host: Host) -> None:
    memory = host.ledger.record("swarm1").compression
    assert memory is not None
    earlier = memory.model_copy(update={"asked_at": memory.asked_at - APART - timedelta(minutes=1), "after": 20_000})
    host.ledger.remember("swarm1", compression=earlier)


def test_an_agent_that_compacts_nothing_is_told_twice_and_then_renewed(stage: Stage) -> None:
    stage.fill(40_000)
    with host_of(stage, **SETTINGS) as host:
        assert told(host)
        memory = host.ledger.record("swarm1").compression
        assert memory is not None
        assert (memory.is_judged, memory.happened, memory.strikes) == (True, 0, 1)
        stage.wait_ready()
        assert not told(host), "half an hour apart"
        let_time_pass(host)
        stage.wait_ready()
        assert told(host)
        stage.wait_ready()
        (finding,) = survey(host, [host.worker("swarm1")]).findings
        assert finding.record.compression is not None
        assert finding.record.compression.strikes == 2
        assert (finding.decision.action, "were of no use" in finding.decision.reason) == (Action.RENEW, True)
        typed = [row.content for row in stage.rows() if row.content.startswith("/compress")]
    assert len(typed) == 2
    assert set(typed) == {typed[0]}
    assert typed[0].startswith("/compress keep what is needed for the objective: standing rules, decisions")


def test_a_command_that_could_not_be_typed_is_no_strike_and_may_be_given_again(stage: Stage) -> None:
    stage.fill(40_000)
    with host_of(stage, **SETTINGS) as host:
        worker = host.worker("swarm1")
        finding = examine(host, worker)
        assert finding.decision.action is Action.COMPRESS
        stage.paste("half a sentence")
        stage.wait(lambda: host.look(worker).typed, 60, "the typed text")

        with pytest.raises(NothingTyped):
            compress(host, finding)
        assert host.ledger.record("swarm1").compression is None
        assert host.look(worker).typed == "half a sentence"
