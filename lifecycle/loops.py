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
    """The first sign that the worker goes round in circles, and that no human has waved aside."""
    return _crashes(case) or _renewals(case) or _heavy_start(case) or _standstill(case)


def _crashes(case: Case) -> Loop | None:
    deaths = _within(case, "crash_loop", case.record.deaths, DEATHS_WITHIN)
    return Loop("crash_loop", f"the agent died {deaths} times in 15 minutes") if deaths >= DEATHS else None


def _renewals(case: Case) -> Loop | None:
    renewals = _within(case, "renewal_loop", case.record.renewals, RENEWALS_WITHIN)
    return Loop("renewal_loop", f"{renewals} renewals in an hour") if renewals > RENEWALS else None


def _heavy_start(case: Case) -> Loop | None:
    baseline, soft = case.record.baseline, case.reading.limits(case.policy).soft
    if baseline is None or baseline < soft or case.record.baseline_session != case.reading.session_id:
        return None
    dismissed = case.record.dismissal("baseline_too_large") or case.record.dismissal("limits_below_floor")
    if dismissed is not None and dismissed.session_id == case.reading.session_id:
        return None
    fresh = f"a fresh session begins with {baseline:,} tokens, over the soft limit of {soft:,}"
    return Loop("baseline_too_large", f"{fresh}: renewing would not help; raise the limits or lighten the start")


def _standstill(case: Case) -> Loop | None:
    same = case.record.idle_repeats
    dismissed = case.record.dismissal("no_progress")
    if same < REPEATS or (dismissed is not None and dismissed.generation == case.record.generation):
        return None
    words = f"{same} generations with the same next action, no new file and no tool call: {case.record.next_action}"
    return Loop("no_progress", words)


def _within(case: Case, reason: str, times: Sequence[datetime], span: timedelta) -> int:
    """How often in the last *span*, counted anew after a human closed the block of it."""
    dismissed = case.record.dismissal(reason)
    return sum(case.now - at < span and (dismissed is None or at > dismissed.at) for at in times)
