from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deployments.server import Running, recorded_as, stop
from lifecycle.settings import load_settings
from tests.deployments.conftest import Done, Operator
from tests.ports import free_port

SOUND = """
model: {default: scripted-model, context_length: 200000}
compression: {abort_on_summary_failure: true}
display: {busy_input_mode: queue}
paste_collapse_threshold: 0
paste_collapse_char_threshold: 0
max_concurrent_sessions: 1
"""

LIMITS = "[workers.swarm1.policy]\nsoft = 100_000\nhandoff = 150_000\nhard = 190_000\n"


def of(done: Done, about: str) -> list[dict[str, str]]:
    return [remark for remark in done.json if remark["about"] == about]


def config(afresh: Operator, text: str = SOUND) -> Path:
    path = afresh.stage.profile / "config.yaml"
    path.write_text(text)
    return path


def test_a_sound_worker_is_fine_and_everything_else_is_named(running: Operator) -> None:
    config(running)
    running.configure("[notify]\nwebhook = 'http://127.0.0.1:9/'", automatic=True)

    done = running("doctor", "--json")

    assert done.code == 0
    assert of(done, "swarm1") == [
        {"about": "swarm1", "verdict": "ok", "says": "everything to renew it is there", "fix": ""}
    ]
    assert {remark["about"] for remark in done.json} >= {
        "configuration", "state folder", "shared memory", "disk", "token counting", "tmux", "ledger", "Prefect server",
        f"tmux socket {running.stage.ground.socket}",
    }  # fmt: skip
    assert [remark["about"] for remark in done.json if remark["verdict"] != "ok"] == ["Prefect server"]


def test_a_notification_that_would_reach_nobody_is_a_trouble_told_without_its_address(running: Operator) -> None:
    running.configure(
        """[notify]
command = ["no-such-program"]
webhook = "hooks.example.org/hunter2"
apprise = ["json://127.0.0.1", "hunter2"]"""
    )
    done = running("doctor", "--json")
    told = [(remark["verdict"], remark["says"].partition(":")[0]) for remark in of(done, "notifications")]
    assert told == [("trouble", "command"), ("trouble", "webhook"), ("trouble", "apprise 2")]
    assert "hunter2" not in done.out


def test_people_read_what_is_wrong_last_with_its_remedy_and_a_count(running: Operator) -> None:
    config(running, "display: {busy_input_mode: interrupt}")
    running.stage.cwd.rmdir()

    done = running("doctor")

    lines = done.out.splitlines()
    assert done.code == 1
    assert lines[0].startswith("ok       configuration: ")
    last = next(line for line in reversed(lines) if line.startswith("TROUBLE"))
    assert last == f"TROUBLE  swarm1: the folder to start in is missing: {running.stage.cwd}"
    assert lines[lines.index(last) + 1] == "         bring it back, or correct the worker's table in afresh.toml"
    assert lines[-1].endswith("1 to mend")


@pytest.mark.parametrize(
    ("changed", "says", "key"),
    [
        ("display: {busy_input_mode: interrupt}", "not queued (busy mode: interrupt)", "busy_input_mode: queue"),
        ("display: {}", "not queued (busy mode: the default", "busy_input_mode: queue"),
        ("paste_collapse_threshold: 5", "loses its text", "paste_collapse_threshold: 0"),
        ("compression: {in_place: false}", "moves it to a new session id", "in_place: true"),
        ("compression: {enabled: off}", "never compacts", "enabled: true"),
        ("compression: {abort_on_summary_failure: false}", "fallback text", "abort_on_summary_failure: true"),
        ("max_concurrent_sessions: 2", "second agent", "max_concurrent_sessions: 1"),
        ("approvals: {mode: manual}", "asks a human", "mode: smart"),
        ("model: scripted-model", "window", "context_length"),
    ],
)
def test_each_setting_that_hurts_a_renewal_is_named_with_its_key(
    running: Operator, changed: str, says: str, key: str
) -> None:
    path = config(running, SOUND + changed)

    found = [remark for remark in of(running("doctor", "swarm1", "--json"), "swarm1") if says in remark["says"]]

    assert [remark["verdict"] for remark in found] == ["advice"]
    assert key in found[0]["fix"]
    assert str(path) in found[0]["fix"]


def test_limits_that_the_compaction_point_caps_are_told_with_the_figures_in_force(running: Operator) -> None:
    config(running)
    running.configure(LIMITS)

    (found,) = [remark for remark in of(running("doctor", "--json"), "swarm1") if "capped" in remark["says"]]

    assert found["says"] == (
        "it compacts at 150,000 tokens, so its limits are capped at 90,000 / 120,000 / 142,500; 150,000 was asked for"
    )


def test_uncapped_limits_that_a_compaction_comes_before_are_a_trouble(running: Operator) -> None:
    config(running)
    running.configure(f"{LIMITS}uncapped = true")

    found = [remark for remark in of(running("doctor", "--json"), "swarm1") if remark["verdict"] == "trouble"]

    assert [remark["says"] for remark in found] == [
        "it compacts at 150,000 tokens, before the uncapped handoff limit of 150,000 is reached"
    ]


def _no_profile(afresh: Operator) -> str:
    (afresh.stage.profile / "config.yaml").unlink()
    return "setup wizard"


def _no_program(afresh: Operator) -> str:
    afresh.configure(command=["/nowhere/hermes", "chat"])
    return "/nowhere/hermes is missing or cannot be run"


def _resuming_command(afresh: Operator) -> str:
    afresh.configure(command=[*afresh.stage.command, "--continue"])
    return "resumes an old conversation"


def _no_archive_folder(afresh: Operator) -> str:
    (afresh.stage.ground.home / "archive").write_text("in the way")
    return "archive/swarm1 cannot be written"


@pytest.mark.parametrize("break_it", [_no_profile, _no_program, _resuming_command, _no_archive_folder])
def test_what_would_end_a_renewal_in_a_block_is_a_trouble_of_the_worker(
    running: Operator, break_it: Callable[[Operator], str]
) -> None:
    config(running)
    says = break_it(running)

    done = running("doctor", "swarm1", "--json")

    assert done.code == 1
    assert [says in remark["says"] for remark in of(done, "swarm1") if remark["verdict"] == "trouble"] == [True]


def test_an_open_state_folder_is_a_trouble(running: Operator) -> None:
    running.stage.ground.home.chmod(0o755)

    found = [remark for remark in of(running("doctor", "--json"), "state folder") if remark["verdict"] == "trouble"]

    assert [remark["fix"] for remark in found] == [f"chmod 700 {running.stage.ground.home}"]


def test_a_missing_tmux_is_a_trouble_with_the_command_that_installs_it(
    running: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    (found,) = of(running("doctor", "--json"), "tmux")

    assert (found["verdict"], "apt-get install tmux" in found["fix"]) == ("trouble", True)


def test_an_old_tmux_is_a_trouble(running: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "tmux"
    old.write_text(f'#!/bin/sh\n[ "$2" = -V ] && echo tmux 2.9a || exec {shutil.which("tmux")} "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    (found,) = of(running("doctor", "--json"), "tmux")

    assert (found["verdict"], found["says"]) == ("trouble", "tmux 2.9 is too old")


def test_a_served_home_whose_server_is_gone_is_a_trouble(running: Operator) -> None:
    with recorded_as(load_settings(), Running(url="http://127.0.0.1:9")):
        (found,) = of(running("doctor", "--json"), "Prefect server")

    assert (found["verdict"], found["fix"]) == ("trouble", "start `afresh serve` again")


def test_a_server_that_runs_is_fine(running: Operator, prefect_api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)

    assert [found["verdict"] for found in of(running("doctor", "--json"), "Prefect server")] == ["ok"]


def test_settings_of_a_server_that_hurt_are_named_with_the_harm(
    running: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that somebody else started, with Prefect's own defaults."""
    port = free_port("127.0.0.1")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PREFECT_HOME": str(tmp_path),
        "DO_NOT_TRACK": "1",
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{port}/api")
        running.stage.wait(Running(url=f"http://127.0.0.1:{port}").is_healthy, 120, "the server")
        found = of(running("doctor", "--json"), "Prefect server")
    finally:
        stop(server)

    assert [remark["verdict"] for remark in found] == ["ok", *["advice"] * (len(found) - 1)]
    named = {remark["says"].partition(" ")[0] for remark in found[1:]}
    assert named >= {
        "prefect_server_database_timeout",
        "prefect_server_concurrency_lease_storage",
        "prefect_server_services_db_vacuum_enabled",
        "prefect_server_api_csrf_protection_enabled",
    }


def test_a_worker_that_does_not_run_is_told_how_to_start(afresh: Operator) -> None:
    assert "afresh start swarm1" in " ".join(remark["fix"] for remark in of(afresh("doctor", "--json"), "swarm1"))


def test_nobody_managed_is_told_of_adopt(afresh: Operator) -> None:
    afresh.toml.unlink()
    afresh.stage.profile.rename(afresh.stage.profile.with_name("personal"))

    assert (
        "afresh adopt"
        in of(afresh("doctor", "--json"), "workers")[0]["says"] + of(afresh("doctor", "--json"), "workers")[0]["fix"]
    )


def test_an_unknown_worker_is_refused(afresh: Operator) -> None:
    assert afresh("doctor", "swarm99").code == 2


def test_looking_changes_nothing(running: Operator) -> None:
    running("doctor")
    before = sorted((path, path.stat().st_mtime_ns) for path in running.stage.root.rglob("*") if path.is_file())

    running("doctor")

    after = sorted((path, path.stat().st_mtime_ns) for path in running.stage.root.rglob("*") if path.is_file())
    assert [path for path, _ in after if "ledger" not in path.name] == [
        path for path, _ in before if "ledger" not in path.name
    ]
