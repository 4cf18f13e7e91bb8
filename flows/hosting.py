"""The host of a flow run: refused where the run is meant for another, and linked with what Prefect shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from prefect.events import emit_event
from prefect.runtime import flow_run
from prefect.settings import PREFECT_UI_URL

from lifecycle.host import Host
from lifecycle.settings import load_settings
from tasks.events import show_events

Notice = Mapping[str, str]

SWEPT = "afresh.sweep.ended"
"""The event after each sweep of a host."""

NOTICED_ON = "afresh.host"
"""The label of a notice's resource that names its host."""


def sweeps_of(host_name: str) -> dict[str, str]:
    """Name the resource of the events about a host's sweeps."""
    return {"prefect.resource.id": f"afresh.sweeps.{host_name}", "prefect.resource.name": host_name}


@contextmanager
def host_of_run() -> Iterator[Host]:
    """Open the host for the run that calls. What it tells people also goes out as an event, with a link to the run."""
    with Host.opened(load_settings()) as host:
        base = PREFECT_UI_URL.value()
        if base and flow_run.id:
            host.link = f"{base}/runs/flow-run/{flow_run.id}"
        host.announce = lambda notice: announce(host.settings.host_name, notice)
        try:
            yield host
        finally:
            show_events(host)


def announce(host_name: str, notice: Notice) -> None:
    """Emit `afresh.notice.KIND` for the automations: the ledger has seen to it that this occurrence is told once."""
    kind = notice["key"].partition(":")[0]
    emit_event(
        f"afresh.notice.{kind}",
        resource={
            "prefect.resource.id": f"afresh.notices.{host_name}.{notice['worker_id']}",
            "prefect.resource.name": notice["worker_id"],
            NOTICED_ON: host_name,
        },
        payload={**notice, "host": host_name, "link": notice.get("link", "")},
    )
