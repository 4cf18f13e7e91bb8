"""A host is run by `afresh serve` or by its Prefect worker: what the other way left would wait for ever."""

from __future__ import annotations

from prefect.client.orchestration import get_client

from deployments.automations import FLOWS


def retire(pool: str | None) -> list[str]:
    """Delete our deployments in the work pool *pool*, or with None those of `afresh serve`, which have none.

    Without them their schedules make no runs that nobody takes. Runs that were stay. Returns their names.
    """
    with get_client(sync_client=True) as client:
        flows = {flow.id: flow.name for flow in client.read_flows()}
        left = [
            one
            for one in client.read_deployments()
            if one.work_pool_name == pool
            and (name := flows.get(one.flow_id)) in FLOWS
            and one.name == (f"{name}-{pool}" if pool else name)
        ]
        for one in left:
            client.delete_deployment(one.id)
    return sorted(one.name for one in left)
