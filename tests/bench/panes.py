"""A thousand panes: one look at all, the sweep's memory of them, and how both grow with history."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lifecycle import tmux
from lifecycle.agents.hermes.reading import ContextReader
from lifecycle.host import Host
from lifecycle.panorama import panes_of
from lifecycle.reading import ContextReading
from lifecycle.renewal import End, Phase
from lifecycle.screen import PaneState
from lifecycle.survey import survey
from tests.bench.crew import Crew, crew_of
from tests.bench.fleet import make_fleet
from tests.bench.measure import Figure, seconds, timed, worked
from tests.bench.readings import read_all, settled
from tests.lifecycle.test_renewal import advanced_to

HISTORY = 100_000
GENERATIONS = 20


class _Counted(tmux.BoundedCommand):
    """Calls of tmux."""

    calls = 0

    def __init__(self, *args: Any, **options: Any) -> None:
        type(self).calls += 1
        super().__init__(*args, **options)


def look(root: Path, workers: int = 1_000) -> Iterator[Figure]:
    """Contexts of the whole fleet and the states of as many panes, as a sweep in a process of its own finds them."""
    with crew_of(workers) as crew, crew.host() as host:
        fleet = make_fleet(root, workers)
        settled(fleet)
        known = host.workers()
        readings, panes, used = [], [], []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tmux, "BoundedCommand", _Counted)
            shown = panes_of(host, known)
        assert all(pane.state is PaneState.READY for pane, _ in shown.values())
        for _ in range(5):
            reader = ContextReader()
            readings.append(timed(lambda reader=reader: read_all(reader, fleet)))  # type: ignore[misc]
            panes.append(timed(lambda: used.append(worked(lambda: panes_of(host, known)))))
        yield Figure(
            name=f"{workers:,} workers, cold, and {workers:,} panes",
            value=statistics.median(map(sum, zip(readings, panes, strict=True))), unit="s", target=5, better="less",
            detail={"contexts, s": statistics.median(readings), "panes, s": statistics.median(panes),
                    "panes, s of our processor": statistics.median(used), "calls of tmux": _Counted.calls},
        )  # fmt: skip
        yield from history(crew, host)


def history(crew: Crew, host: Host) -> Iterator[Figure]:
    """The same survey with a short past and with a long one: readings, and generations of each worker."""
    workers = host.workers()
    for _ in range(2):
        survey(host, workers)
    short = _survey_seconds(host)
    first = host.now() - timedelta(days=2)
    host.ledger.add_readings(
        ContextReading(worker_id=f"swarm{number % 1_000 + 1}", at=first + timedelta(seconds=number), tokens=number)
        for number in range(HISTORY)
    )
    long = _survey_seconds(host)
    yield Figure(
        name=f"survey with {HISTORY:,} readings in the ledger", value=long / short, unit="of the time without",
        target=1.25, better="less", detail={"without, s": short, "with, s": long},
    )  # fmt: skip
    ended = advanced_to(Phase.PROVED)
    with host.ledger.transaction():
        for name in crew.names:
            for number in range(GENERATIONS):
                given = {"renewal_id": f"{name}-{number}", "worker_id": name, "generation": number + 1}
                host.ledger.open(ended.model_copy(update={**given, "end": None}))
                host.ledger.put(ended.model_copy(update={**given, "end": End.RENEWED}))
    grown = _survey_seconds(host)
    yield Figure(
        name=f"survey of workers in generation {GENERATIONS}", value=grown / long, unit="of the time in the first",
        target=1.25, better="less", detail={"first, s": long, f"after {GENERATIONS}, s": grown},
    )  # fmt: skip


def _survey_seconds(host: Host) -> float:
    workers = host.workers()
    survey(host, workers)
    return seconds(lambda: survey(host, workers))
