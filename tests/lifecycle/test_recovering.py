"""Which renewals go on in a new run, and which are left to someone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from lifecycle.checkpoint import Checkpoint, State
from lifecycle.host import Host
from lifecycle.launch import LaunchSpec
from lifecycle.ledger import StoredHandoff
from lifecycle.lock import held
from lifecycle.reboot import VERIFY_FIRST, LastHandoff, banner
from lifecycle.record import WorkerRecord
from lifecycle.recovering import interrupted
from lifecycle.renewal import Block, End, Phase, Quality, Renewal
from lifecycle.transcript import Digest, ToolCall
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


@pytest.fixture
def host(empty_stage: Stage) -> Iterator[Host]:
    with host_of(empty_stage) as host:
        yield host


def renewal(worker_id: str = "swarm1", **changes: object) -> Renewal:
    found = Renewal(renewal_id=f"r-{worker_id}", worker_id=worker_id, generation=1, opened_at=NOW, updated_at=NOW)
    return found.model_copy(update={"taken_up_by": ("run-1", "run-2"), **changes})


def test_an_open_renewal_whose_lock_is_free_goes_on_from_its_phase(host: Host) -> None:
    host.ledger.open(renewal(phase=Phase.STOPPED))

    (found,) = interrupted(host)

    assert (found.worker_id, found.phase, found.goes_on) == ("swarm1", Phase.STOPPED, True)
    assert (found.next_step, found.flow_run_id) == ("start the worker", "run-2")


def test_a_renewal_whose_lock_is_held_is_left_to_the_process_that_holds_it(host: Host) -> None:
    host.ledger.open(renewal())

    with held(host.paths(host.worker("swarm1")).lock):
        assert interrupted(host) == []
    assert len(interrupted(host)) == 1


def test_what_is_blocked_or_ended_is_not_interrupted(host: Host) -> None:
    placed = Block(reason="not_ready", detail="it waits", phase=Phase.STOPPED, at=NOW)
    host.ledger.open(renewal(block=placed))
    assert interrupted(host) == []

    host.ledger.put(renewal(end=End.DISMISSED))
    assert interrupted(host) == []


@pytest.mark.parametrize(
    ("memory", "says"),
    [
        ({"held_since": NOW, "held_why": "mine"}, "held"),
        ({"parked_until": datetime.now(UTC) + timedelta(hours=1), "parked_why": "rate limit"}, "parked until"),
    ],
    ids=["held", "parked"],
)
def test_a_worker_that_is_held_or_parked_is_told_of_and_left_alone(
    host: Host, memory: dict[str, object], says: str
) -> None:
    host.ledger.open(renewal())
    host.ledger.remember("swarm1", **memory)

    (found,) = interrupted(host)

    assert not found.goes_on
    assert says in found.why


def test_a_renewal_of_a_worker_that_nobody_declares_any_more_is_told_of(host: Host) -> None:
    host.ledger.open(renewal("gone"))

    (found,) = interrupted(host)

    assert (found.worker_id, found.goes_on) == ("gone", False)
    assert "no longer declared" in found.why


def test_only_the_workers_that_are_named_are_looked_at_and_the_longest_resting_comes_first(host: Host) -> None:
    host.ledger.open(renewal("zulu", updated_at=NOW - timedelta(hours=1)))
    host.ledger.open(renewal())

    assert [one.worker_id for one in interrupted(host)] == ["zulu", "swarm1"]
    assert [one.worker_id for one in interrupted(host, ["swarm1"])] == ["swarm1"]


@pytest.mark.parametrize(
    ("memory", "cut_off"),
    [
        ({"last_boot": "a", "was_alive": True}, True),
        ({"last_boot": "b", "was_alive": True}, False),
        ({"last_boot": "a", "was_alive": False}, False),
        ({"last_boot": None, "was_alive": True}, False),
    ],
    ids=str,
)
def test_a_worker_was_cut_off_if_it_was_alive_in_an_earlier_boot(memory: dict[str, object], *, cut_off: bool) -> None:
    record = WorkerRecord.model_validate({"worker_id": "swarm1", **memory})
    assert record.was_cut_off_before("b") is cut_off


# The banner


def test_the_banner_names_what_was_running_what_is_gone_and_what_came_after_the_handoff(empty_stage: Stage) -> None:
    found = Digest(
        session_id="s2",
        requests=("before", "CONTEXT_HANDOFF_REQUIRED\nx", "weigh drawer nine"),
        last_words="half of it is weighed",
        calls=(
            ToolCall(name="terminal", arguments='{"command": "rm -r old"}'),
            ToolCall(name="terminal", arguments='{"command": "serve", "background": true}', outcome="started"),
        ),
    )
    launch = LaunchSpec(command=("hermes",), cwd=empty_stage.cwd, source="configured")

    told = banner(renewal(launch=launch), last(empty_stage), found, "")

    running, _, rest = told.partition("Started in the background and gone:")
    assert "effect is unknown" in running
    assert "rm -r old" in running
    assert '"command": "serve"' not in running
    assert '"command": "serve"' in rest
    assert "weigh drawer nine" in rest
    assert "before" not in rest
    assert "half of it is weighed" in rest
    assert str(empty_stage.cwd) in told
    assert "r-last" in told


def test_a_banner_without_a_transcript_says_so(empty_stage: Stage) -> None:
    told = banner(renewal(), last(empty_stage), Digest(), "Its transcript cannot be read (malformed).")

    assert "cannot be read" in told
    assert "Its last words" not in told


def last(stage: Stage) -> LastHandoff:
    stored = StoredHandoff(
        renewal_id="r-last",
        worker_id="swarm1",
        generation=1,
        archive=stage.root / "archive.md",
        sha256="0" * 64,
        quality=Quality.WRITTEN,
        mission_id=None,
        created_at=NOW,
    )
    checkpoint = Checkpoint(
        state=State.HANDOFF,
        files_changed="none",
        commands_run="none",
        result="done",
        blocker="none",
        next_action=f"{VERIFY_FIRST}count",
    )
    return LastHandoff(stored=stored, text="", checkpoint=checkpoint, session_id="s1", asks_human=False)
