"""The systemd units: what they run, for whom, and what a restart leaves alive."""

from __future__ import annotations

import configparser
import os
import pwd
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from lifecycle.waiting import SystemClock, wait_until
from tests.deployments.conftest import Operator, table


def test_units_are_printed_and_nothing_is_written(
    afresh: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    done = afresh("install-units", "--user", "--dry-run")
    assert done.code == 0
    assert "KillMode=process" in done.out
    assert "systemctl --user enable --now" in done.err
    assert "loginctl enable-linger" in done.err
    assert list(tmp_path.iterdir()) == []


def test_units_keep_agents_alive_name_this_home_and_hold_no_secret(
    afresh: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "afresh:hunter2")
    assert afresh("install-units", "--user").code == 0
    folder = tmp_path / "systemd" / "user"
    assert {path.name for path in folder.iterdir()} == {
        "afresh-http.service",
        "afresh-server.service",
        "afresh-tmux.service",
        "afresh-watch.service",
        "afresh-watch.timer",
        "afresh-worker.service",
    }
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    assert _read(texts["afresh-worker.service"])["Service"]["KillMode"] == "process"
    assert "KillMode" not in texts["afresh-server.service"]
    tmux = _read(texts["afresh-tmux.service"])["Service"]
    assert tmux["ExecStart"] == f"/usr/bin/env tmux -S {afresh.stage.ground.socket} -D"
    assert "AFRESH_HOME" not in texts["afresh-tmux.service"]
    assert f'Environment="AFRESH_HOME={afresh.stage.ground.home}"' in texts["afresh-worker.service"]
    assert not any("hunter2" in text for text in texts.values())


def test_a_host_whose_server_is_elsewhere_gets_no_unit_for_one(afresh: Operator) -> None:
    afresh.configure(table("server", {"url": "http://10.0.0.5:4200"}))
    assert "afresh-server.service" not in afresh("install-units", "--system", "--dry-run", "--json").json["units"]


def test_where_no_page_is_wanted_no_unit_serves_one(afresh: Operator) -> None:
    afresh.configure(table("http", {"enabled": False}))
    assert "afresh-http.service" not in afresh("install-units", "--user", "--dry-run", "--json").json["units"]


@pytest.mark.parametrize("words", [(), ("--user", "--system"), ("--user", "--account", "agents")])
def test_it_must_be_said_whose_units_they_are(afresh: Operator, words: tuple[str, ...]) -> None:
    assert "--user" in afresh("install-units", *words, "--dry-run").refusal


def test_units_of_an_account_name_its_own_home(afresh: Operator) -> None:
    assert "no such account" in afresh("install-units", "--system", "--account", "nobody-here", "--dry-run").refusal
    stranger = next(entry for entry in pwd.getpwall() if entry.pw_uid != os.getuid())
    refused = afresh("install-units", "--system", "--account", stranger.pw_name, "--dry-run").refusal
    assert f"AFRESH_HOME={stranger.pw_dir}" in refused


def test_units_find_the_same_tmux_as_the_one_who_made_them(
    afresh: Operator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    units = afresh("install-units", "--user", "--dry-run", "--json").json["units"]
    for name in ("afresh-tmux.service", "afresh-worker.service", "afresh-http.service"):
        assert f'Environment="TMUX_TMPDIR={tmp_path}"' in units[name]


def test_tmux_stays_without_a_session_as_its_unit_runs_it(afresh: Operator) -> None:
    socket = afresh.stage.ground.socket
    server = subprocess.Popen(
        ["tmux", "-S", socket, "-f", "/dev/null", "-D"],
        env={name: afresh.stage.ground.environment[name] for name in ("PATH", "HOME", "LANG")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(Path(socket).exists, timedelta(seconds=60), SystemClock())
        afresh.stage.start()
        afresh.stage.wait_ready()
        afresh.stage.stop()
        assert afresh.stage.ground.tmux("list-sessions") == ""
        assert server.poll() is None
    finally:
        server.terminate()
        server.wait(60)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_finds_no_fault_in_the_units(afresh: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFRESH_HOME", str(afresh.stage.ground.home / 'a folder with 100% "odd" signs'))
    monkeypatch.setenv("AFRESH_TMUX_SOCKET", "/run/a folder's 100% $odd/socket")
    me = pwd.getpwuid(os.getuid()).pw_name
    units = afresh("install-units", "--system", "--account", me, "--dry-run", "--json").json["units"]
    for name, text in units.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / name) for name in units)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "afresh" not in done.stderr


def _read(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser
