"""Runs of this host that crashed, told by the sinks: the automations tell only Prefect's own blocks."""

from __future__ import annotations

from datetime import datetime, timedelta

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterEndTime,
    FlowRunFilterState,
    FlowRunFilterStateName,
)
from prefect.client.schemas.objects import FlowRun

from deployments.automations import FLOWS
from deployments.server import answering
from lifecycle.host import Host
from lifecycle.notifying import notify_host

LOOKED_BACK = timedelta(hours=1)
"""Longer than any pause between two looks; what was told is not told again."""


def heed_crashes(host: Host, url: str, *, up_since: datetime) -> bool:
    """Tell each crashed run of this host once. Says whether one was told now.

    Raises:
        ServerError: the server does not answer any more, or refuses.
    """
    after = max(up_since, host.now() - LOOKED_BACK)
    with answering(url), get_client(sync_client=True) as client:
        found = client.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=FLOWS)),
            flow_run_filter=FlowRunFilter(
                state=FlowRunFilterState(name=FlowRunFilterStateName(any_=["Crashed"])),
                end_time=FlowRunFilterEndTime(after_=after),
            ),
        )
        ours = [(client.read_flow(run.flow_id).name, run) for run in found if _is_of(host, run)]
    told = [_tell(host, url, flow, run) for flow, run in ours]
    return any(told)


def _is_of(host: Host, run: FlowRun) -> bool:
    """A run by hand has its person before it; one of another pool has its own host."""
    return run.deployment_id is not None and run.work_pool_name in (None, host.settings.host_name)


def _tell(host: Host, url: str, flow: str, run: FlowRun) -> bool:
    # A run that died early has no name of its own yet.
    what = f"{flow} {run.parameters.get('worker_id', '')}".rstrip()
    host.link = f"{url}/runs/flow-run/{run.id}"
    words = run.state.message if run.state and run.state.message else "it ended without a word"
    remedy = "The next sweep goes on with what was cut off; `afresh recover` does it now."
    return notify_host(host, f"crashed:{run.id}", f"crashed: {what}", words, remedy=remedy)
