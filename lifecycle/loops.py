"""Renewing that does not help: workers that a further renewal would only take round the same circle."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from lifecycle.case import Case

DEATHS = 3
DEATHS_WITHIN = timedelta(minutes=15)
RENEWALS = 3
RENEWALS_WITHIN = timedelta(hours=1)
REPEATS = 3


class Loop(NamedTuple):
    """The stable reason of the block, and the sentence for a human."""

    kind: str
    words: str


def find_loop(case: Case) -> Loop | None:
    """The first sign that the worker goes round in circles."""
    return _crashes(case) or _renewals(case) or _heavy_start(case) or _standstill(case)


def _crashes(case: Case) -> Loop | None:
    deaths = _within(case.record.deaths, DEATHS_WITHIN, case.now)
    return Loop("crash_loop", f"the agent died {deaths} times in 15 minutes") if deaths >= DEATHS else None


def _renewals(case: Case) -> Loop | None:
    renewals = _within(case.record.renewals, RENEWALS_WITHIN, case.now)
    return Loop("renewal_loop", f"{renewals} renewals in an hour") if renewals > RENEWALS else None


def _heavy_start(case: Case) -> Loop | None:
    baseline, soft = case.record.baseline, case.reading.limits(case.policy).soft
    if baseline is None or baseline < soft or case.record.baseline_session != case.reading.session_id:
        return None
    fresh = f"a fresh session begins with {baseline:,} tokens, over the soft limit of {soft:,}"
    return Loop("baseline_too_large", f"{fresh}: renewing would not help; raise the limits or lighten the start")


def _standstill(case: Case) -> Loop | None:
    same = case.record.idle_repeats
    if same < REPEATS:
        return None
    words = f"{same} generations with the same next action, no new file and no tool call: {case.record.next_action}"
    return Loop("no_progress", words)


def _within(times: Sequence[datetime], span: timedelta, now: datetime) -> int:
    return sum(now - at < span for at in times)
