"""docs/api.md is true, and the reference system's sweep script works with another address and another token."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lifecycle.settings import Settings
from tests.deployments.operations.fleet_page import Fleet, wait_served
from tests.deployments.operations.stand import Program
from tests.ports import free_port

pytestmark = [pytest.mark.operations, pytest.mark.timeout(900)]

DOCUMENT = (Path(__file__).parents[3] / "docs" / "api.md").read_text()

SWEEP_SCRIPT = r"""#!/usr/bin/env bash
# Every ten minutes from cron: one sweep, one line in the day's log.
set -euo pipefail
base=${SWARM_BASE_URL:-http://localhost:3000}
folder=${SWARM_LIFECYCLE_LOG_DIR:-$HOME/.hermes/memory/swarm/lifecycle-logs}
mkdir -p "$folder"
body=$(curl -fsS -X POST "$base/api/swarm-lifecycle" -H 'Content-Type: application/json' \
  -H "Cookie: claude-auth=$SWARM_AUTH_TOKEN" --data '{"action":"auto-sweep"}')
printf '{"at":"%s","response":%s}\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$body" >>"$folder/$(date -u +%F).jsonl"
"""
"""What cron runs for the reference system: written from the description of what it sends and logs."""


class Step(NamedTuple):
    """A command of the document, and the answer that it shows, where it shows one."""

    command: str
    shown: dict[str, Any] | None


def steps() -> list[Step]:
    blocks = re.findall(r"```(sh|json)\n(.*?)```", DOCUMENT, re.DOTALL)
    found = []
    for place, (language, text) in enumerate(blocks):
        after = blocks[place + 1] if place + 1 < len(blocks) else ("", "")
        if language == "sh":
            found.append(Step(text, json.loads(after[1]) if after[0] == "json" else None))
    return found


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    fleet = Fleet()
    try:
        wait_served(fleet)
        (fleet.stage.root / "home" / ".afresh").symlink_to(fleet.stage.ground.home)
        yield fleet
    finally:
        fleet.end()


def shell(fleet: Fleet, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euc", text],
        env={**fleet.stage.ground.environment, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_every_command_of_the_document_does_what_it_says(fleet: Fleet) -> None:
    setting_up, *others = steps()
    assert len(others) >= 9
    setup = setting_up.command.replace("4201", str(fleet.port))

    for step in others:
        done = shell(fleet, setup + step.command)
        assert done.returncode == 0, (step.command, done.stdout, done.stderr)
        assert fleet.token not in step.command
        if step.shown is not None:
            assert shape(json.loads(done.stdout), step.shown) == step.shown, step.command
    with fleet.ledger() as ledger:
        assert ledger.record("swarm1").generation == 2, "the two orders with one key were one renewal"


def shape(answer: Any, shown: Any) -> Any:
    """The answer as far as the document shows it; what differs from run to run counts as shown."""
    if isinstance(shown, dict):
        missing = shown.keys() - answer.keys()
        assert not missing, f"{missing} not in {answer}"
        return {name: shape(answer[name], value) for name, value in shown.items()}
    if isinstance(shown, list):
        return [shape(one, value) for one, value in zip(answer, shown, strict=False)]
    return shown if shown == "…" or (isinstance(shown, int) and shown > 1) else answer


def test_the_configuration_that_the_document_shows_is_valid(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", DOCUMENT, re.DOTALL)

    folders = {"home": tmp_path, "hermes_root": tmp_path, "memory_root": tmp_path}
    settings = Settings.model_validate({**folders, **tomllib.loads(block)})

    assert settings.http_port == Settings.model_validate(folders).http_port == 4201


def test_the_reference_systems_sweep_script_works_with_another_address_and_token(fleet: Fleet) -> None:
    logs = fleet.stage.root / "logs"
    changed = {"SWARM_BASE_URL": fleet.url, "SWARM_AUTH_TOKEN": fleet.token, "SWARM_LIFECYCLE_LOG_DIR": str(logs)}

    for _ in range(2):
        done = shell(fleet, SWEEP_SCRIPT, **changed)
        assert (done.returncode, done.stderr) == (0, "")

    (log,) = logs.iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d\.jsonl", log.name)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(lines) == 2
    for line in lines:
        answer = line["response"]
        assert (answer["ok"], answer["action"]) == (True, "auto-sweep")
        entries = {entry["workerId"]: entry for entry in answer["sweep"]}
        assert entries.keys() == {"swarm1", "swarm2"}
        assert {entry["action"] for entry in entries.values()} <= {"none", "request-handoff", "renew"}
        assert entries["swarm1"]["status"]["contextState"] == "healthy"
        assert answer["flowRunId"]


def test_a_sweep_that_a_scheduler_asks_for_is_counted(fleet: Fleet) -> None:
    order = '{"action": "auto-sweep", "responseMode": "scheduler_ack"}'
    done = shell(fleet, steps()[0].command.replace("4201", str(fleet.port)) + f"ask -i \"$API\" -d '{order}'")

    head, body = done.stdout.split("\n\n", 1) if "\n\n" in done.stdout else done.stdout.split("\r\n\r\n", 1)
    answer = json.loads(body)
    assert " 202 " in head.splitlines()[0]
    assert f"/api/swarm-lifecycle/runs/{answer['flowRunId']}" in head
    assert (answer["processed"], answer["actions"], answer["failed"]) == (2, {"none": 2}, 0)


def test_the_service_alone_gives_its_orders_to_the_server_that_serves_the_home(fleet: Fleet) -> None:
    home, port = fleet.stage.ground.home, free_port("127.0.0.1")
    other = home / "other.toml"
    other.write_text(
        (home / "afresh.toml").read_text().replace(f"http = {{ port = {fleet.port}", f"http = {{ port = {port}")
    )
    other.chmod(0o600)
    alone = Program(fleet.stage, "--config", str(other), "http")
    try:
        setup = steps()[0].command.replace("4201", str(port))
        order = '{"action": "request-handoff", "workerId": "swarm1"}'
        wait = f"until curl -fsS http://127.0.0.1:{port}/health; do sleep 1; done >/dev/null 2>&1; "
        done = shell(fleet, f"{setup}{wait}ask \"$API\" -d '{order}'")
        run = json.loads(done.stdout)["flowRunId"]
        ended = shell(fleet, f'{setup}until ask "$API/runs/{run}" | grep \'"isFinal":true\'; do sleep 2; done')
        assert json.loads(ended.stdout)["state"] == "Stored"
    finally:
        alone.end()


def test_a_wrong_token_ends_the_script_with_an_error_and_no_line(fleet: Fleet) -> None:
    logs = fleet.stage.root / "no-logs"
    wrong = {"SWARM_BASE_URL": fleet.url, "SWARM_AUTH_TOKEN": "wrong", "SWARM_LIFECYCLE_LOG_DIR": str(logs)}

    done = shell(fleet, SWEEP_SCRIPT, **wrong)

    assert done.returncode == 22
    assert list(logs.iterdir()) == []


def test_a_given_handoff_is_answered_in_a_run_that_shows_none_of_its_secrets(fleet: Fleet) -> None:
    secret = "sk-ant-" + "a1B2" * 12
    order = {"action": "answer", "workerId": "swarm2", "choice": "use-text", "text": f"Go on. API_KEY={secret}"}

    done = shell(fleet, steps()[0].command.replace("4201", str(fleet.port)) + f"ask \"$API\" -d '{json.dumps(order)}'")

    run = fleet.served.ask(f"flow_runs/{json.loads(done.stdout)['flowRunId']}", password=fleet.served.password())
    assert (run["parameters"]["worker_id"], run["parameters"]["answer"]) == ("swarm2", "use-text")
    assert run["parameters"]["text"].startswith("Go on.")
    assert run["parameters"]["who"] == "HTTP"
    assert secret not in json.dumps(run)
