"""A survey of real profiles: what it takes up from the ledger, and what it tells."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from lifecycle.agents.hermes.agent import HermesAgent
from lifecycle.agents.hermes.unchanged import FILES, SETTLED
from lifecycle.agents.kinds import KINDS
from lifecycle.notifying import notify
from lifecycle.survey import survey
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of

SAMPLE = Path(__file__).parents[1] / "data" / "hermes" / "live_15turns.db"


def test_what_no_sink_took_is_told_by_the_next_survey(stage: Stage, tmp_path: Path) -> None:
    with host_of(stage, notify={"command": ("/nowhere/call",)}) as host:
        notify(host, host.worker("swarm1"), "blocked:1", "blocked", "look at drawer three")

    out = tmp_path / "told"
    command = (sys.executable, "-c", f"import sys; open({str(out)!r}, 'a').write(sys.stdin.read() + '\\n')")
    with host_of(stage, notify={"command": command}) as host:
        survey(host, host.workers())
        survey(host, host.workers())

    assert [json.loads(line)["body"] for line in out.read_text().splitlines()] == ["look at drawer three"]


def test_another_process_reads_nothing_that_has_not_changed(
    empty_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = empty_stage.profile
    shutil.copy(SAMPLE, profile / "state.db")
    at = time.time_ns() - 10 * SETTLED
    for name in FILES:
        if (profile / name).exists():
            os.utime(profile / name, ns=(at, at))
    with host_of(empty_stage) as host:
        (first,) = survey(host, host.workers()).findings
    assert first.reading.mark

    # Had it been opened again it would be no database: only its stamp is as it was.
    size = (profile / "state.db").stat().st_size
    with (profile / "state.db").open("r+b") as database:
        database.write(b"\0" * size)
    os.utime(profile / "state.db", ns=(at, at))
    monkeypatch.setitem(KINDS, "hermes", HermesAgent())
    with host_of(empty_stage) as host:
        (second,) = survey(host, host.workers()).findings

    assert second.reading == first.reading.model_copy(update={"at": second.reading.at})
