"""`/api/swarm-lifecycle` on loopback over a real ledger: what it answers, and what it refuses."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from deployments.http import fleet
from deployments.http.acts import run_key
from lifecycle.errors import HandoffTimeout
from lifecycle.host import Host
from lifecycle.lock import held
from lifecycle.renewal import Phase, Renewal, block_of, new_renewal_id
from tests.deployments.api import PATH, Api, serving, with_ports
from tests.deployments.conftest import Operator

REFERENCE = {
    "workerId": str, "profilePath": str, "sessionId": str, "model": str, "inputTokens": int, "outputTokens": int,
    "cacheReadTokens": int, "cacheWriteTokens": int, "reasoningTokens": int, "messageTokens": int, "totalTokens": int,
    "contextState": str, "recommendedAction": str, "policy": dict, "handoffPath": str, "handoffExists": bool,
}  # fmt: skip
"""The reference system's SwarmLifecycleStatus, without what may be null: title and lastHandoffAt."""


@pytest.fixture
def api(afresh: Operator) -> Iterator[Api]:
    """The service of a home whose worker swarm1 does not run."""
    with_ports(afresh)
    with serving() as api:
        yield api


@pytest.fixture
def live(running: Operator) -> Iterator[Api]:
    """The service of a home whose worker swarm1 shows its input line."""
    with_ports(running)
    with serving() as api:
        yield api


def blocked(host: Host, phase: Phase = Phase.REQUESTED) -> Renewal:
    """A renewal of swarm1 that waits for a human."""
    now = datetime.now(UTC)
    renewal = Renewal(
        renewal_id=new_renewal_id(now), worker_id="swarm1", generation=1, phase=phase, opened_at=now, updated_at=now
    )
    error = HandoffTimeout("no answer in 20 minutes", worker_id="swarm1", evidence="the last line of its pane")
    renewal = renewal.model_copy(update={"block": block_of(error, renewal, now)})
    host.ledger.open(renewal)
    return renewal


def test_a_row_has_every_field_of_the_reference_system(running: Operator) -> None:
    running.stage.fill(70_000)
    with_ports(running)
    with serving() as api:
        answer = api.get()

        document = answer.json()
        (row,) = document["workers"]
        assert (answer.status_code, document["ok"], type(document["checkedAt"])) == (200, True, int)
        assert {name: type(row[name]) for name in REFERENCE} == REFERENCE
        assert row.keys() >= {"title", "lastHandoffAt"}
        assert row["policy"] == {"softTokens": 30_000, "handoffTokens": 60_000, "hardTokens": 90_000}
        assert row["profilePath"] == str(running.stage.profile)
        assert (row["tokens"], row["contextState"]) == (70_000, "handoff_required")
        counters = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
        assert row["totalTokens"] == sum(row[name] for name in counters) == row["sessionTotal"] > row["tokens"]


def test_the_rows_are_those_of_the_status_command(running: Operator) -> None:
    with_ports(running)
    with serving() as api:
        (ours,) = running("status", "--json").json
        row = api.row()

    same = ("tokens", "generation", "state", "automatic", "why", "error", "managed")
    assert {name: row[name] for name in same} == {name: ours[name] for name in same}
    assert row["lifecycleState"] == ours["lifecycle_state"]


@pytest.mark.parametrize("worker_id", ["../etc", "", "swarm1;", "a" * 65, "swarm1 swarm2"])
@pytest.mark.parametrize("compat", [False, True])
def test_w31_an_invalid_worker_id_is_refused_and_never_means_the_whole_fleet(
    api: Api, worker_id: str, compat: bool
) -> None:
    for answer in (api.get(workerId=worker_id, compat=int(compat)), api.post("auto-sweep", worker_id, compat)):
        assert answer.status_code == 400
        assert answer.json()["reason"] == "invalid_worker_id"
        assert not {"workers", "sweep"} & answer.json().keys()


def test_an_unknown_worker_is_not_found_and_the_managed_ones_are_named(api: Api) -> None:
    for answer in (api.get(workerId="nobody"), api.post("hold", "nobody"), api.get(f"{PATH}/workers/nobody")):
        assert answer.status_code == 404
        assert answer.json()["error"] == "worker nobody is unknown; managed workers: swarm1"


def test_compat_answers_200_wherever_the_reference_system_does_and_says_no_in_the_body(api: Api) -> None:
    assert api.get(workerId="nobody", compat=1).status_code == 200
    refused = api.post("notify-handoff-written", "swarm1", compat=True)
    assert (refused.status_code, refused.json()["ok"]) == (200, False)
    assert (refused.json()["workerId"], refused.json()["action"]) == ("swarm1", "notify-handoff-written")
    assert api.post("fly", "swarm1", compat=True).status_code == 400


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"{", "Invalid JSON body: Expecting property name enclosed in double quotes at character 2"),
        (b"[1]", "Invalid JSON body: not an object"),
        (b"\xff", "Invalid JSON body"),
        (b"[" * 100_000, "Invalid JSON body"),
        (b"{}", "Unsupported action"),
        (b'{"action": "fly", "workerId": "swarm1"}', "Unsupported action"),
        (b'{"action": "renew"}', "workerId required"),
        (b'{"action": "answer", "workerId": "swarm1"}', "answer takes a choice, and no other action does"),
        (b'{"action": "answer", "workerId": "swarm1", "choice": "use-text"}', "use-text takes a text"),
        (b'{"action": "hold", "workerId": 7}', "workerId: Input should be a valid string"),
    ],
    ids=range(10),
)
def test_what_cannot_be_understood_is_refused_in_one_line(api: Api, body: bytes, error: str) -> None:
    answer = api.client.post(PATH, content=body)

    assert answer.status_code == 400
    assert answer.json()["error"].startswith(error)
    assert "\n" not in answer.json()["error"]


def test_a_misspelt_key_never_becomes_an_act_on_the_whole_fleet(api: Api) -> None:
    answer = api.post("auto-sweep", worker="swarm1")

    assert answer.status_code == 400
    assert answer.json()["error"].startswith("unknown key 'worker'; known are action, workerId")


def test_hold_and_automatic_are_remembered_with_who_and_why(api: Api, afresh: Operator) -> None:
    held_now = api.post("hold", "swarm1", actor="ann", why="I work in it")
    assert (held_now.status_code, held_now.json()["change"]) == (200, "held")
    assert api.row()["lifecycleState"] == "held"
    assert api.post("hold", "swarm1").json()["change"] == "none"
    assert api.post("release", "swarm1").json()["change"] == "released"
    assert api.post("enable", "swarm1").json()["message"] == "automatic renewal of swarm1 is on"
    assert api.row()["automatic"] is True
    assert api.post("disable", "swarm1").json()["change"] == "off"

    with afresh.host() as host:
        events = {event.kind: event.detail for event in host.ledger.events("swarm1", limit=2)}
        first = host.ledger.events("swarm1")[0]
    assert (first.kind, first.detail) == ("held", {"who": "ann over HTTP", "why": "I work in it"})
    assert events["automatic"]["on"] is False


def test_a_held_or_blocked_worker_is_not_renewed_and_the_refusal_says_what_to_do(api: Api, afresh: Operator) -> None:
    api.post("hold", "swarm1", why="mine")
    answer = api.post("renew", "swarm1")
    assert (answer.status_code, answer.json()["error"]) == (409, "swarm1 is held (mine): release it first")

    api.post("release", "swarm1")
    with afresh.host() as host:
        blocked(host)
    answer = api.post("renew", "swarm1")
    assert (answer.status_code, answer.json()["error"]) == (
        409,
        "swarm1 is blocked (handoff_timeout): answer its block",
    )


def test_an_answer_that_does_not_fit_is_refused_before_anything_begins(api: Api, afresh: Operator) -> None:
    answer = api.post("answer", "swarm1", choice="retry")
    assert (answer.status_code, answer.json()["error"]) == (409, "swarm1 has no block that waits for an answer")

    with afresh.host() as host:
        blocked(host, Phase.PARSED)
    answer = api.post("answer", "swarm1", choice="synthesize")
    assert answer.status_code == 409
    assert "given already" in answer.json()["error"]


def test_a_worker_that_a_process_works_on_is_left_to_it(api: Api, afresh: Operator) -> None:
    with held(afresh.stage.paths.lock, worker_id="swarm1"):
        answers = [api.post(action, "swarm1") for action in ("renew", "request-handoff", "reset")]

    assert {(answer.status_code, answer.json()["reason"]) for answer in answers} == {(409, "renewal_in_progress")}


def test_a_block_is_shown_with_its_evidence_its_remedy_and_its_answers(api: Api, afresh: Operator) -> None:
    with afresh.host() as host:
        renewal = blocked(host)

    found = api.row()
    assert (found["state"], found["renewalId"]) == ("blocked", renewal.renewal_id)
    assert found["block"]["evidence"] == "the last line of its pane"
    assert found["block"]["reason"] == "handoff_timeout"
    assert found["block"]["remedy"]
    assert "retry" in found["block"]["choices"]
    assert api.get(f"{PATH}/workers/swarm1").json()["waiting"]["block"]["reason"] == "handoff_timeout"


def test_hermes_workspace_462_reset_frees_a_worker_that_is_stuck_in_the_records(live: Api, running: Operator) -> None:
    runtime = running.stage.paths.runtime_json
    runtime.write_text(json.dumps({"state": "executing", "phase": "dispatched", "currentMissionId": "m1"}))
    with running.host() as host:
        renewal = blocked(host, Phase.OPENED)

    done = live.post("reset", "swarm1", actor="ann")

    assert (done.status_code, done.json()["change"]) == (200, "reset")
    with running.host() as host:
        assert not host.ledger.renewal(renewal.renewal_id).is_open
    told = json.loads(runtime.read_text())
    assert (told["state"], told["phase"], told["currentMissionId"]) == ("idle", "reset", "m1")
    assert live.post("reset", "swarm1").json()["message"] == "swarm1: nothing was stuck"
    assert live.row()["lifecycleState"] == "idle"


def test_reset_leaves_a_worker_that_is_truly_busy_and_stops_nothing(live: Api, running: Operator) -> None:
    stage = running.stage
    stage.behave(turn_seconds=60)
    stage.say("work for a minute")
    stage.wait_busy()
    stage.paths.runtime_json.write_text(json.dumps({"state": "executing"}))
    agent = stage.pane_pid

    assert live.post("reset", "swarm1").json()["change"] == "none"

    assert json.loads(stage.paths.runtime_json.read_text())["state"] == "executing"
    assert stage.pane_pid == agent


def test_reset_refuses_a_worker_that_its_renewal_has_stopped(api: Api, afresh: Operator) -> None:
    with afresh.host() as host:
        blocked(host, Phase.STOPPED)

    answer = api.post("reset", "swarm1")

    assert answer.status_code == 409
    assert "answer retry, dismiss or hold" in answer.json()["error"]


def test_w32_a_handoff_is_noted_only_where_a_file_bears_it_out(api: Api, afresh: Operator) -> None:
    refused = api.post("notify-handoff-written", "swarm1")
    assert refused.status_code == 409
    assert "does not exist; nothing was noted" in refused.json()["error"]

    shared = afresh.stage.paths.shared_latest
    shared.parent.mkdir(parents=True)
    shared.write_text("# Handoff\n")
    noted = api.post("notify-handoff-written", "swarm1", actor="the orchestrator")

    expected = {"ok": True, "action": "notify-handoff-written", "workerId": "swarm1", "handoffPath": str(shared)}
    assert (noted.status_code, noted.json()) == (200, expected)
    (day,) = (afresh.stage.paths.memory / "episodes").iterdir()
    assert "handoff-written" in day.read_text()
    assert "says the orchestrator over HTTP" in day.read_text()


def test_what_takes_a_prefect_server_says_so_where_none_answers(api: Api) -> None:
    answer = api.post("renew", "swarm1")

    assert answer.status_code == 503
    assert answer.json()["reason"] == "server"
    assert "`afresh serve`" in answer.json()["error"]


def test_a_configuration_that_cannot_be_used_is_said_and_nobody_is_called_healthy(api: Api, afresh: Operator) -> None:
    afresh.write("colour = 3\n")

    def answered() -> Any:
        found = api.get()
        return found if found.status_code == 503 else None

    answer = afresh.stage.wait(answered, 60, "the new configuration")
    assert answer.json() == {
        "ok": False,
        "workers": [],
        "error": f"{afresh.toml}: unknown key 'colour'",
        "reason": "configuration",
    }
    assert api.get(compat=1).json()["ok"] is False


def test_readers_at_the_same_time_share_one_reading(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    # A second on a machine of one's own; on a busy one the last of ten may come later.
    monkeypatch.setattr(fleet, "FRESH_FOR", timedelta(minutes=5))
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: api.get(), range(10)))

    assert len({answer.json()["checkedAt"] for answer in answers}) == 1


def test_a_reading_that_takes_long_keeps_no_other_request_waiting(
    afresh: Operator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun, may_end, program = tmp_path / "begun", tmp_path / "may-end", tmp_path / "tmux"
    program.write_text(f"#!/bin/sh\ntouch {begun}\nuntil [ -e {may_end} ]; do sleep 0.05; done\nexit 1\n")
    program.chmod(0o755)
    with_ports(afresh)
    with serving() as api, ThreadPoolExecutor(1) as pool:
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        reading = pool.submit(api.get)
        try:
            afresh.stage.wait(begun.exists, 60, "the reading")
            for _ in range(5):
                assert api.stranger.get("/health").json() == {"ok": True}
            assert not reading.done()
        finally:
            may_end.touch()
        assert len(reading.result().json()["workers"]) == 1


def test_the_description_names_every_action_and_nothing_outside(api: Api) -> None:
    document = api.get("/openapi.json").json()

    schema = document["paths"][PATH]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(schema["properties"]["action"]["enum"]) == {
        "auto-sweep", "request-handoff", "renew", "notify-handoff-written", "answer", "hold", "release", "enable",
        "disable", "reset",
    }  # fmt: skip
    assert schema["properties"]["choice"]["anyOf"][0]["enum"] == [
        "retry", "force", "synthesize", "use-text", "dismiss", "hold",
    ]  # fmt: skip
    assert document["paths"].keys() == {
        PATH, f"{PATH}/events", f"{PATH}/workers/{{worker_id}}", f"{PATH}/runs/{{flow_run_id}}",
    }  # fmt: skip
    assert "$ref" not in json.dumps(document)


def test_one_key_is_one_act_and_not_that_of_another_worker() -> None:
    given = {"worker_id": "swarm1", "force": False, "why": "w", "asked_at": "1"}
    first = run_key("renew", given, "friday")
    assert run_key("renew", {**given, "asked_at": "2"}, "friday") == first
    others = [{**given, "worker_id": "swarm2"}, {**given, "force": True}]
    assert len({first, *(run_key("renew", other, "friday") for other in others)}) == 3
