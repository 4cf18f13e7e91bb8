"""recover_renewals: renewals whose flow run died go on in new ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.hosting import host_of_run
from flows.runs import Due, Swept, renew_all
from lifecycle.decision import Action
from lifecycle.errors import OtherHost
from lifecycle.host import Host
from lifecycle.recovering import interrupted
from lifecycle.releasing import release_late
from lifecycle.shield import signals_heard
from lifecycle.worker import Worker


@flow(
    name="recover",
    flow_run_name="recover",
    description="Go on with the renewals whose flow run died; tell workers of those that were cancelled.",
    persist_result=False,
)
def recover_renewals(
    worker_ids: list[str] | None = None, renewals: Literal["runs", "here"] = "runs", host: str = ""
) -> State[Any]:
    """Go on with each interrupted renewal from its phase. *renewals*: as runs of the `renew` deployment, or `here`.

    Workers that were asked, and could not be told yet that their renewal is cancelled, are told.

    *host* must be this one, where it is named.
    """
    with host_of_run() as this, signals_heard():
        try:
            this.must_be(host)
        except OtherHost as error:
            return Failed(name="Refused", message=error.detail)
        found = go_on(this, worker_ids, here=renewals == "here", host_name=host)
        taken_up = {entry.worker_id for entry in found}
        chosen = this.workers() if worker_ids is None else [this.worker(worker_id) for worker_id in worker_ids]
        found += tell_cancelled(this, [worker for worker in chosen if worker.worker_id not in taken_up])
    words = ", ".join(f"{entry.worker_id}: {entry.outcome}" for entry in found) or "nothing was interrupted"
    return Completed(message=words, data=[entry.model_dump() for entry in found])


def go_on(host: Host, worker_ids: list[str] | None, *, here: bool, host_name: str = "") -> list[Swept]:
    """Take up every interrupted renewal that may go on. Called twice it begins nothing twice."""
    due = [
        Due(
            worker_id=one.worker_id,
            action=Action.RENEW,
            reason=f"renewal {one.renewal_id} goes on from {one.phase}: {one.why}",
            occasion=f"{one.renewal_id}:{one.phase}:{one.since:%H%M%S}",
        )
        for one in interrupted(host, worker_ids)
        if one.goes_on
    ]
    return renew_all(host, due, here=here, host_name=host_name)


def tell_cancelled(host: Host, workers: Iterable[Worker]) -> list[Swept]:
    """Those of *workers* that could now be told to carry on, because nothing comes of their last renewal."""
    told = [worker for worker in workers if worker.managed and release_late(host, worker)]
    return [
        Swept(
            worker_id=worker.worker_id,
            action=Action.NONE,
            outcome="spared",
            reason="its renewal is cancelled, and it was told to carry on with its task",
        )
        for worker in told
    ]
