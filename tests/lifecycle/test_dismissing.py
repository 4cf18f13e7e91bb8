"""A block that a human closed stays closed, although the facts that led to it last."""

from __future__ import annotations

import pytest

from lifecycle.answering import answer
from lifecycle.choice import Choice
from lifecycle.decision import Action
from lifecycle.ending import block_outright
from lifecycle.host import Host
from lifecycle.survey import Finding, examine
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of


def _found(host: Host) -> Finding:
    return examine(host, host.worker("swarm1"))


@pytest.mark.parametrize("reason", ["no_progress", "baseline_too_large"])
@pytest.mark.parametrize("choice", [Choice.DISMISS, Choice.HOLD])
def test_what_a_human_closed_is_not_blocked_again_when_the_cooldown_is_over(
    stage: Stage, reason: str, choice: Choice
) -> None:
    stage.fill(70_000)
    with host_of(stage, automatic=True) as host:
        session = _found(host).reading.session_id
        lasting = {"no_progress": {"idle_repeats": 3}, "baseline_too_large": {"baseline": 40_000}}
        host.ledger.remember("swarm1", baseline_session=session, **lasting[reason])
        found = _found(host)
        assert found.decision.block == reason
        block_outright(host, found.worker, found.decision, found.reading)

        answer(host, found.worker, choice, who="alex")
        host.ledger.remember("swarm1", cooldown_until=None, held_since=None)

        assert _found(host).decision.action is Action.RENEW
