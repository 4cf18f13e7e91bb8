"""What undoing takes back, with a scripted agent and the steps themselves, and what it says of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from lifecycle.errors import LifecycleError, Misuse
from lifecycle.history import history
from lifecycle.host import Host
from lifecycle.lock import held
from lifecycle.renewal import End, OpenedRenewal
from lifecycle.steps.detecting import detect_context_pressure
from lifecycle.steps.parsing import parse_handoff
from lifecycle.steps.persisting import persist_handoff
from lifecycle.steps.proving import mark_healthy
from lifecycle.steps.requesting import request_handoff
from lifecycle.steps.respawning import respawn_worker
from lifecycle.steps.resuming import send_resume_prompt
from lifecycle.steps.stopping import stop_worker
from lifecycle.undoing import Undo, plan_undo, undo
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of


@pytest.fixture
def host(stage: Stage) -> Iterator[Host]:
    stage.fill(70_000)
    with host_of(stage) as host:
        yield host


def opened(host: Host) -> OpenedRenewal:
    found = detect_context_pressure(host, host.worker("swarm1"), by_hand=True)
    assert isinstance(found, OpenedRenewal), found
    return found


def renew(host: Host) -> str:
    """One whole renewal; its id."""
    worker, begun = host.worker("swarm1"), opened(host)
    saved = persist_handoff(host, worker, parse_handoff(host, worker, request_handoff(host, worker, begun)))
    running = respawn_worker(host, worker, stop_worker(host, worker, saved))
    mark_healthy(host, worker, send_resume_prompt(host, worker, running, saved))
    return begun.renewal_id


def taken_back(host: Host) -> Undo:
    worker = host.worker("swarm1")
    with held(host.paths(worker).lock, worker_id="swarm1"):
        return undo(host, worker, who="alex", why="too early")


def last_event(host: Host, kind: str) -> dict[str, object]:
    return dict([event for event in host.ledger.events("swarm1") if event.kind == kind][-1].detail)


def test_a_request_that_is_not_answered_is_cancelled_and_the_worker_is_told(stage: Stage, host: Host) -> None:
    stage.behave(handoff="ignore")
    begun = opened(host)
    request_handoff(host, host.worker("swarm1"), begun)
    stage.wait_ready()
    before = stage.rows()

    planned = plan_undo(host, host.worker("swarm1"))
    assert (planned.act, planned.renewal_id, planned.done) == ("cancel_request", begun.renewal_id, False)
    assert planned.cannot == ("that the worker has read the request",)
    assert stage.rows() == before, "a plan types nothing"

    done = taken_back(host)

    assert done.done
    assert "was told to carry on" in done.words
    renewal = host.ledger.renewal(begun.renewal_id)
    assert (renewal.end, renewal.released) == (End.DISMISSED, True)
    users = [row.content for row in stage.rows() if row.role == "user"]
    assert users[-1] == f"RENEWAL_CANCELLED {begun.renewal_id}: carry on with your task"
    assert last_event(host, "undone") == {"act": "cancel_request", "who": "alex", "why": "too early"}
    (chapter, *_) = history(host, "swarm1", host.paths(host.worker("swarm1")))
    assert (chapter.outcome, chapter.quality, chapter.proof, chapter.asked_by) == ("dismissed", None, None, "operator")


def test_a_process_that_is_at_the_renewal_is_not_worked_against(host: Host) -> None:
    worker = host.worker("swarm1")
    opened(host)
    with held(host.paths(worker).lock, worker_id="swarm1"):
        planned = plan_undo(host, worker)
    assert planned.act is None
    assert "a process is at renewal" in planned.words


def test_latest_goes_back_one_good_handoff_at_a_time_and_the_rest_is_named(stage: Stage, host: Host) -> None:
    worker = host.worker("swarm1")
    first = renew(host)
    stage.fill(70_000)
    second = renew(host)
    paths = host.paths(worker)
    texts = {one.renewal_id: one.archive.read_bytes() for one in host.ledger.handoffs_of("swarm1")}
    assert paths.shared_latest.read_bytes() == texts[second]

    planned = plan_undo(host, worker)
    assert (planned.act, planned.renewal_id) == ("restore_latest", first)
    assert len(planned.cannot) == 2
    assert "was ended" in planned.cannot[0]
    assert "has read" in planned.cannot[1]
    done = taken_back(host)

    assert done.done
    assert paths.shared_latest.read_bytes() == paths.latest.read_bytes() == texts[first]
    assert {one.renewal_id: one.archive.read_bytes() for one in host.ledger.handoffs_of("swarm1")} == texts
    assert last_event(host, "undone")["instead_of"] == second
    told = {one.renewal_id: (one.is_latest, one.quality, one.proof) for one in history(host, "swarm1", paths)}
    assert told == {first: (True, "written", "proved"), second: (False, "written", "proved")}
    assert plan_undo(host, worker).act is None
    with pytest.raises(Misuse, match="no handoff is older"):
        taken_back(host)


def test_a_spoilt_handoff_is_passed_over_and_what_someone_else_wrote_is_kept(host: Host) -> None:
    worker = host.worker("swarm1")
    renew(host)
    paths = host.paths(worker)
    (newest,) = host.ledger.handoffs_of("swarm1")
    older = {"renewal_id": "r0", "sha256": "0" * 64, "created_at": newest.created_at - timedelta(hours=1)}
    host.ledger.add_handoff(newest.model_copy(update=older))
    assert "no earlier handoff is left as it was stored" in plan_undo(host, worker).words

    paths.shared_latest.write_text("mine")
    planned = plan_undo(host, worker)
    assert (planned.act, "someone else wrote it" in planned.words) == (None, True)
    with pytest.raises(LifecycleError):
        taken_back(host)
    assert paths.shared_latest.read_text() == "mine"


def test_a_worker_that_is_stopped_already_is_not_undone(host: Host) -> None:
    worker, begun = host.worker("swarm1"), opened(host)
    saved = persist_handoff(host, worker, parse_handoff(host, worker, request_handoff(host, worker, begun)))
    stop_worker(host, worker, saved)

    planned = plan_undo(host, worker)

    assert planned.act is None
    assert "cannot be taken back" in planned.words
    assert "was ended" in planned.cannot[0]
