"""What the eight tasks have in common."""

from __future__ import annotations

import pytest
from prefect import Task

import tasks.handoff
import tasks.session
from tasks.retrying import RETRIES, RETRY_DELAYS, is_passing

STEPS = [found for room in (tasks.handoff, tasks.session) for found in vars(room).values() if isinstance(found, Task)]


def test_there_are_eight_steps() -> None:
    assert len({step.task_run_name for step in STEPS}) == 8


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_every_step_is_tried_again_for_passing_faults_alone_and_cached_nowhere(step: Task[..., object]) -> None:
    assert (step.retries, step.retry_delay_seconds) == (RETRIES, RETRY_DELAYS)
    assert step.retry_condition_fn is is_passing
    assert not step.persist_result
    assert "{worker.worker_id}" in str(step.task_run_name)
