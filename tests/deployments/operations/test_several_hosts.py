"""One Prefect server on PostgreSQL and two hosts, each with a home, a tmux server and a Prefect worker of its own.

Each is in a network namespace of its own where one can be made; the run's summary says whether.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import psutil
import pytest
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateName,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from deployments.server import Running
from lifecycle.ledger import Ledger
from lifecycle.settings import load_settings
from tests.agents.ground import Ground
from tests.agents.stage import Stage
from tests.deployments.operations.hook import Hook, hook
from tests.deployments.operations.network import Network, network
from tests.deployments.operations.postgres import Postgres, postgres
from tests.deployments.operations.stand import Program, Stand, awaited
from tests.ports import free_port

pytestmark = [pytest.mark.operations, pytest.mark.prefect, pytest.mark.timeout(900)]

PASSWORD = "a-word-that-stands-nowhere-else"


class Site(NamedTuple):
    network: Network
    url: str
    database: Postgres
    server: Program
    a: Stand
    b: Stand
    hook: Hook

    @contextmanager
    def client(self) -> Iterator[SyncPrefectClient]:
        settings = {PREFECT_API_URL: f"{self.url}/api", PREFECT_API_AUTH_STRING: f"afresh:{PASSWORD}"}
        with temporary_settings(settings), get_client(sync_client=True) as client:
            yield client

    def run(self, flow_run_id: str) -> tuple[str, str, str]:
        """Deployment, pool and state of a run."""
        with self.client() as client:
            run = client.read_flow_run(UUID(flow_run_id))
            assert run.deployment_id is not None
            return client.read_deployment(run.deployment_id).name, run.work_pool_name or "", run.state_name or ""

    def names(self) -> tuple[list[str], list[str], list[str]]:
        """What stands on the server: work pools, deployments, automations."""
        with self.client() as client:
            return (
                sorted(pool.name for pool in client.read_work_pools()),
                sorted(deployment.name for deployment in client.read_deployments()),
                sorted(automation.name for automation in client.read_automations()),
            )

    def runs(self, stand: Stand) -> list[tuple[str, str]]:
        """Name and state of every run in the pool of a host that is more than scheduled."""
        due = FlowRunFilter(state=FlowRunFilterState(name=FlowRunFilterStateName(not_any_=["Scheduled"])))
        with self.client() as client:
            found = client.read_flow_runs(flow_run_filter=due, limit=200)
        return [(run.name, run.state_name or "") for run in found if run.work_pool_name == stand.name]

    def overdue(self, stand: Stand) -> list[str]:
        """The runs in the pool of a host that should have begun and wait: only sweeps are on a schedule.

        Prefect calls them Late some seconds later, by a service of its own that may itself be late.
        """
        past = datetime.now(UTC) - timedelta(seconds=20)
        waits = FlowRunFilter(
            expected_start_time=FlowRunFilterExpectedStartTime(before_=past),
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])),
        )
        with self.client() as client:
            found = client.read_flow_runs(flow_run_filter=waits, limit=200)
        return [f"{run.name}: {run.state_name}" for run in found if run.work_pool_name == stand.name]


@pytest.fixture
def apart(record_property: Callable[[str, object], None], monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    # What is set for the developer's network has no way to these addresses.
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("no_proxy", "*")
    with network("server", "host-a", "host-b") as made:
        record_property("hosts", made.told)
        yield made


@pytest.fixture
def stages(apart: Network) -> Iterator[tuple[Stage, Stage, Stage]]:
    placed = {"host-a": "swarm1", "host-b": "swarm2", "server": "server"}
    grounds = {host: Ground(apart.inside[host]) for host in placed}
    one, two, server = (Stage(worker_id, ground=grounds[host]) for host, worker_id in placed.items())
    made = (one, two, server)
    try:
        for stage in made[:2]:
            stage.start()
            stage.wait_ready()
            stage.fill(20_000)
        yield made
    finally:
        for stage in made:
            stage.ground.clear()


@pytest.fixture
def site(apart: Network, stages: tuple[Stage, Stage, Stage]) -> Iterator[Site]:
    one, two, third = stages
    port = free_port("127.0.0.1")
    secret = third.root / "secret"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    with postgres(apart.test) as database, hook(apart.test) as hooked:
        _configure_server(third, f'host = "{apart.server}"\nport = {port}', secret, database)
        server = Program(third, "server")
        try:
            url = f"http://{apart.server}:{port}"
            awaited(Running(url=url).is_healthy, 180, "the server", server.log)
            reached = f'url = "{url}", password_file = "{secret}"'
            http = f"http = {{ port = {free_port('127.0.0.1')} }}\n"
            more = f'{http}notify = {{ webhook = "{hooked.url("sink")}", blocks = ["custom-webhook/operators"] }}'
            a, b = Stand("host-a", one, reached, more=more), Stand("host-b", two, reached, more=more)
            yield Site(apart, url, database, server, a, b, hooked)
        finally:
            server.end()


def _configure_server(stage: Stage, bound: str, secret: Path, database: Postgres) -> None:
    configuration = stage.ground.home / "afresh.toml"
    configuration.write_text(f'[server]\n{bound}\npassword_file = "{secret}"\ndatabase = "{database.url}"\n')
    configuration.chmod(0o600)


def test_two_hosts_sweep_and_renew_each_their_own_and_one_without_its_prefect_worker_waits_alone(site: Site) -> None:
    a, b = site.a, site.b
    with site.client():
        CustomWebhookNotificationBlock(
            name="operators", url=site.hook.url("block"), json_data={"subject": "{{subject}}", "body": "{{body}}"}
        ).save("operators")
    for stand in (a, b):
        deployed = stand.json("deploy", "--wait", "120")
        assert deployed["pool"] == stand.name
        assert len(deployed["deployments"]) == 5
    once = site.names()
    assert once[0] == ["host-a", "host-b"]
    assert len(once[1]) == 10
    for stand in (a, b):
        stand.json("deploy")
    assert site.names() == once, "deployed again it is the same"

    workers = {stand.name: Program(stand.stage, "worker") for stand in (a, b)}
    try:
        for stand in (a, b):
            stand.stage.fill(70_000)
        for stand in (a, b):
            log = workers[stand.name].log
            awaited(lambda stand=stand: stand.generation() == 2, 300, f"the renewal on {stand.name}", log)  # type: ignore[misc]
            awaited(lambda stand=stand: ("sweep", "Completed") in site.runs(stand), 60, "the end of its sweep", log)  # type: ignore[misc]
            # Its generation is the next before its run has ended, and the sweep that ended may be an earlier one.
            renewed = (f"renew {stand.stage.worker_id}", "Renewed")
            awaited(lambda stand=stand, renewed=renewed: renewed in site.runs(stand), 60, "the end of its renewal", log)  # type: ignore[misc]

        fleets = {fleet["host"]: fleet for fleet in b.json("status", "--all-hosts")}
        assert {name: [worker["worker_id"] for worker in fleet["workers"]] for name, fleet in fleets.items()} == {
            "host-a": ["swarm1"],
            "host-b": ["swarm2"],
        }
        with Ledger(b.home / "ledger.db") as ledger:
            assert {event.worker_id for event in ledger.events(limit=1000)} <= {"swarm2", "-"}, "ledgers stay local"

        _no_secret_is_told(site, workers)
        _an_order_over_http_is_a_run_of_that_host_alone(site)
        if site.network.is_apart:
            _each_host_is_in_a_network_of_its_own(site, workers)

        agent = a.stage.pane_pid
        workers["host-a"].end()
        assert psutil.pid_exists(agent), "agents outlive the Prefect worker"
        stopped, swept = a.swept_at(), b.swept_at()
        # On a slow machine the first sweep may come later than three intervals after the deployment.
        missed = "no sweep on host-a"
        before = len(site.hook.at("block", missed))
        awaited(lambda: site.overdue(a), 150, "a sweep of host-a that waits", site.server.log)
        awaited(lambda: b.swept_at() > swept, 150, "a sweep of host-b", workers["host-b"].log)
        assert a.swept_at() == stopped
        awaited(lambda: len(site.hook.at("block", missed)) > before, 200, "word of it by the server", site.server.log)
        awaited(lambda: a.json("watch")["answers"] and site.hook.at("sink", missed), 120, "word of it by the watch")
        a.json("watch")
        assert len(site.hook.at("sink", missed)) == 1

        workers["host-a"] = Program(a.stage, "worker")
        awaited(lambda: a.swept_at() > stopped, 180, "host-a's sweep", workers["host-a"].log)
    finally:
        for program in workers.values():
            program.end()


def _an_order_over_http_is_a_run_of_that_host_alone(site: Site) -> None:
    a, before = site.a, (site.a.generation(), site.b.generation())
    port = load_settings(a.home / "afresh.toml").http_port
    service = Program(a.stage, "http")
    try:
        awaited(lambda: "page and HTTP API" in service.log.read_text(), 120, "the HTTP service", service.log)
        order = {"action": "renew", "workerId": a.stage.worker_id, "force": True, "why": "to see it"}
        status, answer = awaited(lambda: a.post(port, "/api/swarm-lifecycle", order), 120, "an answer", service.log)
        assert status == 202, answer
        run = answer["flowRunId"]
        assert site.run(run)[:2] == ("renew-host-a", "host-a")
        awaited(lambda: site.run(run)[2] == "Renewed", 300, "the renewal that was ordered", service.log)
        assert (a.generation(), site.b.generation()) == (before[0] + 1, before[1])
    finally:
        service.end()


def _each_host_is_in_a_network_of_its_own(site: Site, workers: dict[str, Program]) -> None:
    def of(pid: int) -> str:
        return str(Path(f"/proc/{pid}/ns/net").readlink())

    for stand in (site.a, site.b):
        assert of(stand.stage.pane_pid) == of(workers[stand.name].process.pid), "agents run where their host is"
    hosts = [site.server.process.pid, *(program.process.pid for program in workers.values()), os.getpid()]
    assert len({of(pid) for pid in hosts}) == 4


def _no_secret_is_told(site: Site, workers: dict[str, Program]) -> None:
    secrets = (PASSWORD, site.database.password)
    arguments = ""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            arguments += " ".join(process.cmdline())
    logs = "".join(program.log.read_text() for program in (site.server, *workers.values()))
    with site.client() as client:
        runs: list[Any] = client.read_flow_runs(limit=200)
        parameters = str([run.parameters for run in runs])
        artifacts = str([artifact.data for artifact in client.read_artifacts()])
    assert "deployments.cli" in arguments or "prefect" in arguments
    for secret in secrets:
        for told in (arguments, logs, parameters, artifacts):
            assert secret not in told
