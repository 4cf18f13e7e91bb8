"""What every step's task has in common: its name carries the worker, and only passing faults are tried again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun

from lifecycle.errors import PassingFault
from lifecycle.host import Host
from lifecycle.worker import Worker
from tasks.events import show_events
from tasks.waits import wait_shown

RETRIES = 2
RETRY_DELAYS = [1.0, 5.0]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def is_passing(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether the failure was a passing fault."""
    failure = state.result(raise_on_failure=False)
    return isinstance(failure, PassingFault)


def step(
    name: str, *, waits_for: str | None = None
) -> Callable[[Callable[Concatenate[Host, Worker, _P], _R]], Task[Concatenate[Host, Worker, _P], _R]]:
    """Make a task of one step of a renewal; *name* is that of its runs, with `{worker.worker_id}` filled in.

    *waits_for* names the deadline of the step's long wait, which is shown. What the step wrote into the journal is
    told as events when it ends, however it ends.
    """

    def decorated(
        function: Callable[Concatenate[Host, Worker, _P], _R],
    ) -> Task[Concatenate[Host, Worker, _P], _R]:
        @wraps(function)
        def run(host: Host, worker: Worker, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            try:
                with wait_of(host, worker, waits_for):
                    return function(host, worker, *args, **kwargs)
            finally:
                show_events(host)

        made = task(
            task_run_name=name,
            retries=RETRIES,
            retry_delay_seconds=RETRY_DELAYS,
            retry_condition_fn=is_passing,
            cache_policy=NO_CACHE,
        )
        return made(run)

    return decorated


def wait_of(host: Host, worker: Worker, deadline: str | None) -> AbstractContextManager[None]:
    """The step's wait, shown against that deadline of the settings."""
    if deadline is None:
        return nullcontext()
    return wait_shown(host, f"afresh-wait-{worker.worker_id.lower()}", getattr(host.settings.deadlines, deadline))
