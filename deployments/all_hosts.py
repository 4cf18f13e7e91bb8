"""`afresh status --all-hosts`: what every host's last sweep left in the Prefect server. Ledgers stay on their hosts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from deployments.commands.status import table
from deployments.deploying import point_at_server
from deployments.output import ago, page_width, print_json, say, stamp
from deployments.server import answering
from lifecycle.settings import load_settings

if TYPE_CHECKING:
    from flows.artifacts import FleetStatus

_PATIENCE = timedelta(seconds=5)


def show_all(*, as_json: bool) -> None:
    """Print every host, oldest knowledge included: each says how old it is.

    Raises:
        ServerError: the server does not answer or refuses.
    """
    found = _read(point_at_server(load_settings(), patience=_PATIENCE))
    if as_json:
        print_json(found)
        return
    now = datetime.now(UTC)
    for fleet in found:
        age = ago((now - fleet.at).total_seconds())
        say(f"{fleet.host}, swept {age} ago ({stamp(fleet.at)})")
        for line in table(list(fleet.workers), now, page_width()) if fleet.workers else ["no managed workers"]:
            say(f"  {line}")
        for one in fleet.unexamined:
            say(f"  {one.worker_id}: cannot be looked after: {one.detail}")
        say()
    if not found:
        say("no host has swept with this server yet")


def _read(url: str) -> list[FleetStatus]:
    from flows.artifacts import fleets  # noqa: PLC0415 - with Prefect, once its server is known

    with answering(url):
        return fleets()
