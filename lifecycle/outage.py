"""What the server cannot tell of itself: that it does not answer, and that no sweep ends any more. By the sinks."""

from __future__ import annotations

from datetime import datetime

from lifecycle.host import Host
from lifecycle.notifying import HOST, notify_host

SWEPT = "swept"
WATCHED = "watched"
"""Since when sweeps are waited for, where none has ended yet."""

INTERVALS = 3
"""So many intervals without the end of a sweep are told."""


def heed_server(host: Host, url: str, *, answers: bool, remedy: str) -> bool:
    """Tell that the server at *url* does not answer, once until it answers again. Says whether it was told now."""
    if answers:
        host.ledger.forget_notices(HOST, passing=("server_down",))
        return False
    body = f"{url} does not answer from {host.settings.host_name}: no sweep begins, no run is shown, agents work on"
    return notify_host(host, "server_down:", "the Prefect server is down", body, remedy=remedy)


def heed_sweeps(host: Host, *, up_since: datetime) -> bool:
    """Tell that no sweep has ended for three intervals, once for each sweep that was the last.

    The time before *up_since*, when nothing could sweep because the host was down, does not count.
    """
    last = host.ledger.stamped(SWEPT)
    since = last or _watched_since(host)
    if host.now() - max(since, up_since) < INTERVALS * host.settings.sweep_interval:
        return False
    when = f"the last one ended at {last:%Y-%m-%d %H:%M} UTC" if last else f"none since {since:%Y-%m-%d %H:%M} UTC"
    every = host.settings.sweep_interval.total_seconds() / 60
    return notify_host(
        host,
        f"unswept:{since.isoformat()}",
        f"no sweep on {host.settings.host_name}",
        f"no sweep has ended for {INTERVALS} intervals of {every:g} min: {when}; nobody looks after the workers",
        remedy=f"Is the Prefect worker of pool {host.settings.host_name} (or `afresh serve`) running? `afresh sweep` "
        "does one by hand, the runs of `sweep` in the Prefect UI say what holds them up.",
    )


def _watched_since(host: Host) -> datetime:
    since = host.ledger.stamped(WATCHED)
    if since is None:
        since = host.now()
        host.ledger.stamp(WATCHED, at=since)
    return since
