"""Which failures a task may be tried again for."""

from __future__ import annotations

from typing import Any

from prefect import Task
from prefect.client.schemas.objects import State, TaskRun

from lifecycle.errors import PassingFault

RETRIES = 2
RETRY_DELAYS = [1.0, 5.0]


def is_passing(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether the failure was a passing fault."""
    failure = state.result(raise_on_failure=False)
    return isinstance(failure, PassingFault)
