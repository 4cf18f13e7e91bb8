"""`afresh serve`: server, schedule and runner as one command, with the scripted agent in a real pane."""

from __future__ import annotations

import json
import urllib.error
from collections.abc import Iterator

import psutil
import pytest

from tests.agents.stage import Stage
from tests.deployments.served import Served

pytestmark = pytest.mark.prefect


@pytest.fixture
def served(stage: Stage) -> Iterator[Served]:
    stage.fill(20_000)
    running = Served(stage)
    try:
        stage.wait(running.is_up, 90, "the server")
        yield running
    finally:
        if running.process.poll() is None:
            running.end()


@pytest.mark.timeout(700)
def test_serve_sweeps_by_itself_answers_only_with_the_password_and_leaves_agents_alone(served: Served) -> None:
    stage, password = served.stage, served.password()
    home = stage.ground.home

    with pytest.raises(urllib.error.HTTPError, match="401"):
        served.ask("admin/version")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        served.ask("flows/filter", {}, password=password)  # no CSRF token
    assert (home / "server.password").stat().st_mode & 0o777 == 0o600
    assert (home / "server.json").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    listening = {c.laddr.ip for c in psutil.net_connections("tcp") if c.laddr and c.laddr.port == served.port}
    assert listening == {"127.0.0.1"}

    second = served.afresh("serve")
    assert second.returncode == 2
    assert "served already" in second.stderr

    stage.fill(70_000)
    served.wait_renewed(generation=2)
    assert served.status()["context_state"] == "healthy"

    by_hand = served.afresh("renew", stage.worker_id, "--json")
    assert by_hand.returncode == 0, by_hand.stderr
    outcome = json.loads(by_hand.stdout)
    assert (outcome["outcome"], outcome["generation"]) == ("renewed", 3)
    assert f":{served.port}/" in by_hand.stderr, "the served server was used"
    assert "embedded" not in by_hand.stderr

    agent = stage.pane_pid
    served.end()
    assert psutil.pid_exists(agent), "agents outlive the server"
    assert not (home / "server.json").exists()
