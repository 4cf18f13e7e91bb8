"""What every step's task has in common: its name carries the worker, and only passing faults are tried again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun

from lifecycle.errors import PassingFault

RETRIES = 2
RETRY_DELAYS = [1.0, 5.0]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def is_passing(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether the failure was a passing fault."""
    failure = state.result(raise_on_failure=False)
    return isinstance(failure, PassingFault)


def step(name: str) -> Callable[[Callable[_P, _R]], Task[_P, _R]]:
    """Make a task of one step of a renewal; *name* is that of its runs, with `{worker.worker_id}` filled in."""

    def decorated(function: Callable[_P, _R]) -> Task[_P, _R]:
        made = task(
            task_run_name=name,
            retries=RETRIES,
            retry_delay_seconds=RETRY_DELAYS,
            retry_condition_fn=is_passing,
            cache_policy=NO_CACHE,
        )
        return made(function)

    return decorated
