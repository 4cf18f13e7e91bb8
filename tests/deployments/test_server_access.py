"""Who can reach the Prefect server: loopback and a password, unless the operator says otherwise and how."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from deployments.address import access_environment, password_of
from deployments.prefect_environment import server_environment
from deployments.server import Running, served_alone, server_for
from lifecycle.errors import ConfigurationError
from lifecycle.settings import Settings, load_settings
from tests.deployments.conftest import Operator, table
from tests.deployments.refusing_server import refusing_server


def test_an_address_that_others_reach_is_refused_without_a_chosen_password(afresh: Operator) -> None:
    afresh.configure(table("server", {"host": "0.0.0.0"}))  # noqa: S104 - refused
    for command in ("serve", "server"):
        done = afresh.process(command)
        assert "server.host 0.0.0.0" in done.refusal
        assert "server.password_file" in done.refusal


def test_every_address_needs_a_name_under_which_others_find_it(afresh: Operator, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a-word")
    secret.chmod(0o600)
    afresh.configure(table("server", {"host": "0.0.0.0", "password_file": str(secret)}))  # noqa: S104 - refused
    assert "set server.url" in afresh.process("server").refusal


def test_of_two_that_begin_to_serve_a_home_at_once_the_second_is_refused(afresh: Operator) -> None:
    with served_alone(load_settings()):
        for command in ("serve", "server"):
            assert "this home is served already" in afresh.process(command).refusal


def test_a_port_that_another_server_has_is_named_before_it_can_answer_for_ours(afresh: Operator) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        afresh.configure(table("server", {"port": other.getsockname()[1]}))
        for command in ("serve", "server"):
            assert "server.port" in afresh.process(command).refusal


@pytest.mark.parametrize("command", ["deploy", "worker", "status --all-hosts", "sweep", "renew swarm1"])
def test_a_server_that_refuses_the_password_is_one_line_that_says_where_it_goes(afresh: Operator, command: str) -> None:
    with refusing_server() as url:
        afresh.configure(table("server", {"url": url}))
        refusal = afresh.process(*command.split()).refusal
    assert url in refusal
    assert "server.password_file" in refusal


def test_doctor_finds_a_server_that_refuses_the_password(afresh: Operator) -> None:
    with refusing_server() as url:
        afresh.configure(table("server", {"url": url}))
        done = afresh("doctor", "--json")
    assert done.code == 1
    assert [remark["verdict"] for remark in done.json if "with this password" in remark["says"]] == ["trouble"]


@pytest.mark.prefect
def test_the_watch_says_in_a_line_that_it_may_not_look_for_crashes(afresh: Operator) -> None:
    with refusing_server() as url:
        afresh.configure(table("server", {"url": url}))
        done = afresh.process("watch")
    assert (done.code, done.err) == (1, f"afresh: the Prefect server at {url} refuses with status 401\n")


@pytest.mark.parametrize(("mode", "text"), [(0o644, "a-word"), (0o600, ""), (0o600, "two words")])
def test_a_password_that_others_can_read_or_that_is_none_is_refused(tmp_path: Path, mode: int, text: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(text)
    secret.chmod(mode)
    with pytest.raises(ConfigurationError, match="password_file"):
        password_of(_settings(tmp_path, password_file=secret))


def test_the_password_file_of_another_home_can_be_copied_as_it_is(tmp_path: Path) -> None:
    made = password_of(_settings(tmp_path))
    assert (tmp_path / "server.password").stat().st_mode & 0o777 == 0o600
    assert password_of(_settings(tmp_path / "elsewhere", password_file=tmp_path / "server.password")) == made


def test_a_database_in_a_configuration_that_others_can_read_is_refused_without_telling_it(afresh: Operator) -> None:
    afresh.configure(table("server", {"database": "postgresql+asyncpg://prefect:hunter2@127.0.0.1/prefect"}))
    afresh.toml.chmod(0o644)
    refusal = afresh("status").refusal
    assert "server.database" in refusal
    assert "hunter2" not in refusal
    afresh.toml.chmod(0o600)
    assert "hunter2" not in repr(load_settings())


@pytest.mark.parametrize("database", ["mysql://u:hunter2@h/d", "postgresql://u:hunter2@h/d"])
def test_another_database_is_refused_without_telling_it(afresh: Operator, database: str) -> None:
    afresh.configure(table("server", {"database": database}))
    assert "hunter2" not in afresh("status").refusal


def test_the_password_of_this_home_is_not_given_to_another_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _settings(tmp_path)
    password = password_of(settings)
    monkeypatch.delenv("PREFECT_API_AUTH_STRING", raising=False)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    assert access_environment(settings)["PREFECT_API_AUTH_STRING"] == f"afresh:{password}"
    monkeypatch.setenv("PREFECT_API_URL", "http://somewhere.else:4200/api")
    assert "PREFECT_API_AUTH_STRING" not in access_environment(settings)


@pytest.mark.prefect
def test_the_server_of_one_command_is_on_loopback_with_a_password_that_no_argument_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING"):
        monkeypatch.setenv(name, "")  # so that what the command sets is undone
    before = set(os.environ)
    try:
        with server_for(_settings(tmp_path, port=4299)) as url:
            password = os.environ["PREFECT_API_AUTH_STRING"].removeprefix("afresh:")
            assert len(password) > 20
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"{url}/api/admin/version", timeout=10)
            port = int(url.rpartition(":")[2])
            assert port != 4299
            assert {c.laddr.ip for c in psutil.net_connections("tcp") if c.laddr and c.laddr.port == port} == {
                "127.0.0.1"
            }
            assert password not in _arguments()
            assert not (tmp_path / "server.json").exists(), "no other command uses it"
            assert os.environ["PREFECT_UI_URL"] == "http://127.0.0.1:4299", "its links outlive it"
        assert not Running(url=url).is_healthy()
    finally:
        for name in set(os.environ) - before:
            del os.environ[name]
    assert (tmp_path / "prefect").stat().st_mode & 0o777 == 0o700
    assert password not in (tmp_path / "server.log").read_text()


def _arguments() -> str:
    told = ""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            told += " ".join(process.cmdline())
    return told


def test_prefect_understands_every_setting_that_is_given_to_it(tmp_path: Path) -> None:
    script = """
import json
from prefect.settings import get_current_settings
s = get_current_settings()
print(json.dumps([
    s.server.concurrency.lease_storage.rpartition(".")[2], s.server.database.timeout,
    s.server.database.connection_timeout, s.server.log_retryable_errors,
    sorted(s.server.services.db_vacuum.enabled_vacuum_types), s.server.services.db_vacuum.retention_period.days,
    s.server.ui.v2_enabled, s.server.ui.show_promotional_content, s.server.analytics_enabled,
    s.server.ephemeral.enabled, s.server.api.csrf_protection_enabled, s.server.api.cors_allowed_origins,
    s.server.api.auth_string.get_secret_value(), s.flows.heartbeat_frequency, s.client.max_retries,
    s.results.persist_by_default, s.worker.webserver.host, s.ui_url, s.server.ui.api_url,
]))
"""
    given = server_environment(_settings(tmp_path, url="http://10.0.0.5:4200"), port=4200, password="hunter2")
    kept = {name: os.environ[name] for name in ("PATH", "HOME")}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**kept, **given}, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    origins = "http://10.0.0.5:4200,http://localhost:4200"
    assert json.loads(done.stdout) == [
        *("filesystem", 60, 60, True, ["events", "flow_runs", "orphans"], 30),
        *(False, False, False, False, True, origins, "afresh:hunter2", 30, 10, False, "127.0.0.1"),
        *("http://10.0.0.5:4200", "http://10.0.0.5:4200/api"),
    ]


def _settings(home: Path, **given: object) -> Settings:
    home.mkdir(exist_ok=True)
    return Settings.model_validate({"home": home, "hermes_root": home, "memory_root": home, "server": given})
