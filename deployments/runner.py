"""The runner of `afresh serve`: recovery, then a sweep on an interval, never two at once; the rest for the UI."""

from __future__ import annotations

import os

from deployments.output import tell
from deployments.prefect_environment import client_environment
from deployments.server import Running, point_at
from lifecycle.settings import Settings

RUNS_AT_ONCE = 6
"""Processes of about 100 MB each: the renewals of a host, a sweep, and room for those that wait for a place."""


def run(settings: Settings, server: Running) -> None:
    """Serve the deployments until INT or TERM. Runs are child processes; agents are never among them."""
    os.environ.update(client_environment(settings))
    point_at(server)
    from prefect import serve  # noqa: PLC0415 - reads its settings when it is imported
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy  # noqa: PLC0415
    from prefect.deployments import run_deployment  # noqa: PLC0415
    from prefect.deployments.runner import RunnerDeployment  # noqa: PLC0415
    from prefect.types.entrypoint import EntrypointType  # noqa: PLC0415

    from deployments.automations import TAG, apply  # noqa: PLC0415
    from deployments.retiring import retire  # noqa: PLC0415
    from flows.answering import answer_worker  # noqa: PLC0415
    from flows.asking import request_handoff_only  # noqa: PLC0415
    from flows.recovery import recover_renewals  # noqa: PLC0415
    from flows.renewal import renew_worker  # noqa: PLC0415
    from flows.sweep import sweep_workers  # noqa: PLC0415

    retire(settings.host_name)
    missing: list[str] = []
    apply(settings, missing)
    for name in missing:
        tell(f"afresh: {settings.path}: notify.blocks: {name}: not on the server; make it there under Blocks")
    one_sweep = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW)
    recovery = RunnerDeployment.from_flow(
        recover_renewals, "recover", tags=[TAG], entrypoint_type=EntrypointType.MODULE_PATH
    )
    # Waits in the server until the runner takes it, before any sweep that the schedule begins.
    recovery.apply()
    run_deployment("recover/recover", timeout=0, as_subflow=False)
    serve(
        recovery,
        RunnerDeployment.from_flow(
            sweep_workers,
            "sweep",
            interval=settings.sweep_interval,
            concurrency_limit=one_sweep,
            tags=[TAG],
            entrypoint_type=EntrypointType.MODULE_PATH,
        ),
        *(
            RunnerDeployment.from_flow(flow, name, tags=[TAG], entrypoint_type=EntrypointType.MODULE_PATH)
            for flow, name in (
                (renew_worker, "renew"),
                (request_handoff_only, "request-handoff"),
                (answer_worker, "answer"),
            )
        ),
        limit=RUNS_AT_ONCE,
        # The default pauses the schedules at every stop of the runner.
        pause_on_shutdown=False,
    )
