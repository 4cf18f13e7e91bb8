"""What opens a renewal, and what ends before one is opened."""

from __future__ import annotations

import pytest

from lifecycle.errors import NotNow
from lifecycle.renewal import OpenedRenewal, Spared
from lifecycle.screen import PaneState
from lifecycle.steps.detecting import detect_context_pressure
from lifecycle.steps.requesting import request_handoff
from tests.agents.deadlines import DEADLINES
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of


def test_force_on_a_frame_that_is_not_drawn_whole_is_spared_with_the_reason_and_works_on_a_whole_one(
    stage: Stage,
) -> None:
    stage.fill(70_000)
    stage.paste("a long turn [[slow 60]]")
    stage.press("Enter")
    stage.wait_busy()
    rows = stage.rows()
    window = f"={stage.session}:"
    with host_of(stage) as host:
        worker = host.worker("swarm1")
        # Until the face draws anew, its rules are not as wide as its pane.
        stage.ground.tmux("resize-window", "-t", window, "-x", "150")
        assert host.look(worker).state is not PaneState.BUSY

        spared = detect_context_pressure(host, worker, by_hand=True, forced=True)

        assert isinstance(spared, Spared)
        assert "try again" in spared.reason
        assert host.ledger.record("swarm1").open_renewal is None
        assert stage.rows() == rows
        stage.ground.tmux("resize-window", "-t", window, "-x", "200")
        stage.wait(lambda: host.look(worker).state is PaneState.BUSY, 60, "BUSY")
        assert isinstance(detect_context_pressure(host, worker, by_hand=True, forced=True), OpenedRenewal)


def test_force_that_found_a_free_line_and_then_a_turn_is_spared_and_queues_nothing_behind_it(stage: Stage) -> None:
    stage.fill(70_000)
    policy = {"soft": 30_000, "handoff": 60_000, "hard": 90_000, "busy_block": 2}
    with host_of(stage, policy=policy, deadlines={**DEADLINES, "delivery": 3}) as host:
        worker = host.worker("swarm1")
        opened = detect_context_pressure(host, worker, by_hand=True, forced=True)
        assert isinstance(opened, OpenedRenewal)
        stage.paste("a long turn [[slow 60]]")
        stage.press("Enter")
        stage.wait_busy()

        with pytest.raises(NotNow, match="nothing was typed"):
            request_handoff(host, worker, opened)

    assert "CONTEXT_HANDOFF" not in stage.screen()
