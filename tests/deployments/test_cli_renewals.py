"""afresh renew, sweep, handoff request and the answers that go on: real commands on one shared Prefect server."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from lifecycle.renewal import Phase
from tests.deployments.conftest import COMMAND, REPOSITORY, Done, Operator, table
from tests.ports import free_port

FIELDS = {
    "worker_id", "action", "outcome", "reason", "renewal_id", "generation", "seconds", "phases", "handoff_path",
    "resumed", "preview",
}  # fmt: skip
PHASES = ["opened", "requested", "parsed", "saved", "stopping", "stopped", "respawned", "resumed", "proved"]


@pytest.fixture
def full(running: Operator) -> Operator:
    """A worker over its handoff limit."""
    running.stage.fill(70_000)
    return running


def phase(operator: Operator) -> Phase | None:
    with operator.host() as host:
        renewal = host.ledger.record("swarm1").open_renewal
        return renewal.phase if renewal else None


@pytest.mark.prefect
def test_renew_blocks_and_a_retry_renews(full: Operator, prefect_api: str) -> None:
    full.stage.behave(handoff="partial")

    blocked = full.process("renew", "swarm1", "--json", PREFECT_API_URL=prefect_api)

    assert blocked.code == 1, blocked
    assert blocked.json.keys() == FIELDS
    assert (blocked.json["worker_id"], blocked.json["action"], blocked.json["outcome"]) == (
        "swarm1",
        "renew",
        "blocked",
    )
    assert blocked.json["reason"].startswith("checkpoint_incomplete: ")
    assert list(blocked.json["phases"]) == ["opened", "requested"]
    assert f"run: {prefect_api.removesuffix('/api')}/runs/flow-run/" in blocked.err

    full.stage.behave(handoff="good")
    answered = full.process("answer", "swarm1", "retry", "--json", PREFECT_API_URL=prefect_api)

    assert answered.code == 0, answered
    assert (answered.json["outcome"], answered.json["renewal_id"]) == ("renewed", blocked.json["renewal_id"])
    assert (list(answered.json["phases"]), answered.json["generation"]) == (PHASES, 2)
    assert (answered.json["resumed"], answered.json["preview"]) == ("proved", None)
    assert answered.json["seconds"] >= max(answered.json["phases"].values())
    assert full("handoff", "show", "swarm1").out == Path(answered.json["handoff_path"]).read_text()
    assert len(full.stage.starts()) == 2
    told = [line.partition(" s  ")[2].removeprefix("swarm1: ") for line in answered.err.splitlines()]
    assert [words for words in told if words in PHASES] == PHASES[2:]


@pytest.mark.prefect
def test_a_sweep_tells_of_every_worker_and_renews_the_one_that_needs_it(full: Operator, prefect_api: str) -> None:
    full.configure(table("workers.alice", {}), automatic=True)

    done = full.process("sweep", "--json", PREFECT_API_URL=prefect_api)

    assert done.code == 0, done
    swarm1, alice = done.json
    assert swarm1.keys() == alice.keys() == FIELDS
    assert (swarm1["worker_id"], swarm1["action"], swarm1["outcome"]) == ("swarm1", "renew", "renewed")
    assert (alice["worker_id"], alice["action"], alice["outcome"]) == ("alice", "none", "none")
    assert (alice["renewal_id"], alice["phases"], alice["handoff_path"]) == (None, {}, None)
    assert "its pane is gone" in alice["reason"]


@pytest.mark.prefect
def test_a_requested_handoff_is_stored_and_the_worker_works_on(full: Operator, prefect_api: str) -> None:
    pid = full.stage.pane_pid

    done = full.process("handoff", "request", "swarm1", "--json", PREFECT_API_URL=prefect_api)

    assert done.code == 0, done
    assert (done.json["action"], done.json["outcome"]) == ("handoff", "requested")
    assert Path(done.json["handoff_path"]).exists()
    assert full.stage.pane_pid == pid
    full("hold", "swarm1")
    spared = full.process("renew", "swarm1", PREFECT_API_URL=prefect_api)
    assert (spared.code, spared.out[:20]) == (0, "swarm1: spared: held")


@pytest.mark.prefect
def test_an_interrupted_renewal_stays_open_and_its_worker_untouched(full: Operator, prefect_api: str) -> None:
    full.stage.behave(handoff_seconds=600)
    process = subprocess.Popen(
        [*COMMAND, "renew", "swarm1", "--json"],
        cwd=REPOSITORY,
        env=full.environment(PREFECT_API_URL=prefect_api),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    full.stage.wait(lambda: phase(full) is Phase.REQUESTED, 60, "the request")

    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)

    done = Done(process.returncode, out, err)
    assert (done.code, done.out) == (130, ""), done
    assert done.err.splitlines()[-1] == "afresh: interrupted"
    assert len(full.stage.starts()) == 1
    plan = full("renew", "swarm1", "--dry-run", "--json").json
    assert plan["action"] == "renew"
    assert "goes on from requested" in plan["reason"]


def test_a_server_that_does_not_answer_is_one_line(full: Operator) -> None:
    nowhere = f"http://127.0.0.1:{free_port('127.0.0.1')}/api"

    done = full.process("renew", "swarm1", "--json", PREFECT_API_URL=nowhere)

    assert (done.code, done.out) == (1, "")
    (line,) = done.err.splitlines()
    assert nowhere.removesuffix("/api") in line
    assert phase(full) is None


def test_a_dry_run_says_what_a_renewal_and_a_sweep_would_do(full: Operator) -> None:
    by_hand = full("renew", "swarm1", "--dry-run", "--json").json
    (swept,) = full("sweep", "--dry-run", "--json").json

    assert by_hand.keys() == swept.keys() == FIELDS
    assert (by_hand["action"], by_hand["outcome"], by_hand["renewal_id"]) == ("renew", "none", None)
    assert by_hand["reason"].startswith("asked for by hand; 70,000 tokens")
    assert (swept["action"], swept["outcome"]) == ("none", "none")
    assert swept["reason"].startswith("automatic renewal is off, else it would be renewed")
    full("enable", "swarm1")
    assert full("sweep", "--dry-run").out.startswith("swarm1  renew  70,000 tokens")


def hashes(folder: Path) -> dict[str, str]:
    """Every file by its hash, but the shared memory of SQLite, whose locks a reader takes."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.endswith("-shm"))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_dry_run_shows_reading_gate_and_pack_and_leaves_every_tree_as_it_was(full: Operator) -> None:
    git = ("git", "-C", str(full.stage.cwd))
    for step in (("init", "-q"), ("add", "."), ("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "first")):
        subprocess.run([*git, *step], check=True, capture_output=True)
    (full.stage.cwd / "ledger.txt").write_text("changed after the commit")
    (full.stage.cwd / "new.txt").write_text("untracked")
    full.stage.say("Never touch /srv/seeds/drawer-9.csv. Count the packets of /srv/seeds/drawer-3.csv next.")
    full.stage.wait_ready()
    full("status")
    before, screen = hashes(full.stage.root), full.stage.screen()

    found = full("renew", "swarm1", "--dry-run", "--json").json["preview"]
    page = full("renew", "swarm1", "--dry-run").out

    assert hashes(full.stage.root) == before
    assert full.stage.screen() == screen
    assert found["error"] == ""
    assert (found["tokens_source"], found["limits"]["handoff"]) == ("api_log", 60_000)
    assert set(found["gate"]["must_survive"]) >= {"/srv/seeds/drawer-3.csv", "/srv/seeds/drawer-9.csv"}
    assert found["rules"] == 1
    assert 0 < found["pack"]["tokens"] <= found["pack"]["budget"] == 6_000
    assert {section["name"] for section in found["pack"]["sections"]} >= {"Mission and rules", "Handoff"}
    assert "Never touch /srv/seeds/drawer-9.csv." in found["pack"]["text"]
    assert "new.txt" in found["pack"]["text"], "git was asked"
    assert "  pack     " in page
    assert "must hold " in page


def test_a_dry_run_says_what_is_missing(full: Operator) -> None:
    full.configure(command=["/nowhere/hermes", "chat", "--cli"])

    reason = full("renew", "swarm1", "--dry-run", "--json").json["reason"]

    assert "it would block at once: " in reason
    assert "/nowhere/hermes" in reason


def test_a_forced_dry_run_of_a_busy_worker_says_that_its_turn_would_end(full: Operator) -> None:
    full.stage.say("carry on [[slow 600]]")

    waits = full("renew", "swarm1", "--dry-run", "--json").json
    forced = full("renew", "swarm1", "--force", "--dry-run", "--json").json

    assert forced["action"] == "renew"
    assert "its turn is ended once a synthesized handoff is saved" in forced["reason"]
    assert "its turn is ended" not in waits["reason"]
