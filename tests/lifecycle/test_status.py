from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest

from deployments.commands.status import page
from lifecycle.blocked import waiting
from lifecycle.decision import Action, Decision
from lifecycle.ending import block_outright
from lifecycle.host import Host
from lifecycle.planning import plans
from lifecycle.record import WorkerRecord
from lifecycle.status import WorkerStatus, lifecycle_state, status_of, statuses
from lifecycle.survey import Finding, examine, survey
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of


@pytest.fixture
def host(stage: Stage) -> Iterator[Host]:
    with host_of(stage) as host:
        yield host


@pytest.fixture
def finding(host: Host) -> Finding:
    """An idle worker that nothing hinders."""
    return examine(host, host.worker("swarm1"))


def row(host: Host) -> WorkerStatus:
    return status_of(host, host.worker("swarm1"))


def told(record: WorkerRecord, finding: Finding) -> str:
    return lifecycle_state(record, finding.model_copy(update={"record": record}))


def blocked(host: Host) -> None:
    worker = host.worker("swarm1")
    decision = Decision(action=Action.BLOCK, block="crash_loop", reason="3 deaths in 15 minutes")
    block_outright(host, worker, decision, host.read(worker, host.process(worker)))


def test_a_worker_that_runs_and_waits_is_idle(host: Host, finding: Finding) -> None:
    assert lifecycle_state(finding.record, finding) == "idle"
    assert row(host).lifecycle_state == "idle"


def test_a_worker_without_a_pane_is_absent(empty_stage: Stage) -> None:
    with host_of(empty_stage) as host:
        assert row(host).lifecycle_state == "absent"


def test_another_program_in_the_pane_leaves_the_worker_absent(empty_stage: Stage) -> None:
    empty_stage.ground.tmux("new-session", "-d", "-s", empty_stage.session, "sleep", "600")
    with host_of(empty_stage) as host:
        found = row(host)
    assert (found.lifecycle_state, found.pane_state) == ("absent", "not_an_agent")


def test_the_most_urgent_of_several_states_is_told(host: Host, finding: Finding) -> None:
    now = finding.at
    parked = finding.record.model_copy(update={"parked_until": now + timedelta(minutes=1)})
    held = parked.model_copy(update={"held_since": now})
    blocked(host)
    stuck = host.ledger.record("swarm1")
    assert stuck.open_renewal is not None
    renewing = stuck.model_copy(update={"open_renewal": stuck.open_renewal.model_copy(update={"block": None})})
    everything = {"parked_until": held.parked_until, "held_since": now}

    assert told(renewing, finding) == "renewing"
    assert told(parked, finding) == "parked"
    assert told(renewing.model_copy(update={"parked_until": parked.parked_until}), finding) == "parked"
    assert told(held, finding) == "held"
    assert told(renewing.model_copy(update=everything), finding) == "held"
    assert told(stuck.model_copy(update=everything), finding) == "blocked"


def test_a_time_that_has_passed_parks_nobody(finding: Finding) -> None:
    over = finding.record.model_copy(update={"parked_until": finding.at - timedelta(seconds=1)})

    assert told(over, finding) == "idle"


@pytest.mark.parametrize(
    ("tokens", "state", "accepts"),
    [
        (10_000, "healthy", True),
        (30_000, "watch", True),
        (60_000, "handoff_required", False),
        (90_000, "renew_required", False),
    ],
)
def test_the_context_decides_the_state_of_an_idle_worker(
    host: Host, stage: Stage, tokens: int, state: str, accepts: bool
) -> None:
    stage.fill(tokens)

    found = row(host)

    assert (found.tokens, found.context_state, found.state, found.accepting_work) == (tokens, state, state, accepts)
    assert found.session_id == stage.rows()[-1].session_id
    assert found.model == "scripted-model"
    assert found.last_activity_at is not None


def test_a_blocked_worker_is_blocked_whatever_its_context(host: Host) -> None:
    blocked(host)

    found = row(host)

    assert (found.state, found.lifecycle_state, found.accepting_work) == ("blocked", "blocked", False)
    assert found.block is not None
    assert (found.block.reason, found.block.phase, found.block.worker_down) == ("crash_loop", "opened", False)
    assert found.phase == "opened"


def test_a_profile_is_not_watched_where_it_is_not_managed(stage: Stage) -> None:
    stage.another("alice")
    with host_of(stage) as host:
        found = {one.worker_id: one for one in statuses(host, host.workers())}

    assert (found["alice"].managed, found["alice"].automatic, found["alice"].pane_state) == (False, False, "unknown")
    assert found["swarm1"].managed


def test_the_shared_handoff_is_named_and_said_to_exist_only_where_it_does(host: Host, stage: Stage) -> None:
    assert (row(host).handoff_path, row(host).handoff_exists) == (stage.paths.shared_latest, False)
    stage.paths.shared_latest.parent.mkdir(parents=True)
    stage.paths.shared_latest.write_text("# Handoff\n")
    assert row(host).handoff_exists


def test_blocks_wait_oldest_first(stage: Stage) -> None:
    with host_of(stage, workers={"swarm1": {}, "alice": {}, "bob": {}}) as several:
        for name in ("bob", "swarm1", "alice"):
            worker = several.worker(name)
            decision = Decision(action=Action.BLOCK, block="crash_loop", reason="3 deaths")
            block_outright(several, worker, decision, several.read(worker, None))
        assert [entry.worker_id for entry in waiting(several)] == ["bob", "swarm1", "alice"]


def test_a_pane_that_tmux_cannot_show_is_told_with_tmuxs_own_words(
    host: Host, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(stage.root))
    idle = row(host)
    assert idle.pane_state == "unknown"
    assert "its pane cannot be seen: " in idle.why
    assert "tmux" in idle.why.partition("cannot be seen: ")[2]
    host.ledger.remember("swarm1", held_since=host.now())
    assert "its pane cannot be seen: " in row(host).why


def test_a_context_that_cannot_be_read_is_shown_by_its_last_good_figure_and_its_age(host: Host, stage: Stage) -> None:
    stage.fill(70_000)
    survey(host, [host.worker("swarm1")])
    assert row(host).last_good is None
    for name in ("state.db-wal", "state.db-shm"):
        (stage.profile / name).unlink(missing_ok=True)
    (stage.profile / "state.db").write_bytes(b"no database at all" * 300)

    found = row(host)

    assert (found.tokens, found.context_state) == (None, "unknown")
    assert found.last_good is not None
    assert found.last_good.tokens == 70_000
    assert found.last_good.read_at < found.read_at
    line = next(line for line in page(host, [found], None) if line.startswith("swarm1"))
    assert "70,000" in line
    assert " ago" in line


def test_a_worker_of_which_nothing_can_be_said_costs_no_other_one_its_row(stage: Stage) -> None:
    stage.fill(40_000)
    stage.another("swarm3")
    clash = {"*": {"soft": 45_000}}
    workers = {
        "swarm1": {"policy": {"handoff": 44_000}},
        "swarm2": {"cwd": stage.cwd, "command": stage.command},
        "swarm3": {"cwd": stage.cwd, "command": stage.command},
    }
    with host_of(stage, models=clash, workers=workers) as host:
        host.ledger.remember("swarm2", generation=2)
        with closing(sqlite3.connect(host.ledger.path)) as db, db:
            db.execute("update workers set doc = '{' where worker_id = 'swarm2'")

        rows = {one.worker_id: one for one in statuses(host, host.workers())}
        planned = {one.worker_id: one for one in plans(host, host.workers())}

    assert "policy of worker swarm1: limits must rise" in (rows["swarm1"].error or "")
    assert "the stored WorkerRecord swarm2 cannot be read" in (rows["swarm2"].error or "")
    for name in ("swarm1", "swarm2"):
        assert (rows[name].context_state, rows[name].accepting_work) == ("unknown", False)
        assert rows[name].why == rows[name].error == planned[name].error
    assert (rows["swarm3"].error, planned["swarm3"].error) == (None, "")
