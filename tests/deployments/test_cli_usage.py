"""What every command has in common: help, general options, and one line for what is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from deployments.cli import general_options_first
from tests.deployments.conftest import COMMAND, REPOSITORY, Operator

COMMANDS = [
    "status", "renew", "sweep", "recover", "history", "undo", "blocked", "answer", "enable", "disable", "hold",
    "release", "start", "adopt", "events", "serve", "http", "server", "worker", "deploy", "install-units", "watch",
    "doctor", "demo", "handoff", "archive", "files", "artifact", "checkpoint",
]  # fmt: skip


def test_help_names_every_command_and_the_exit_codes(afresh: Operator) -> None:
    done = afresh("--help")

    assert done.code == 0
    listed = [line.split()[0] for line in done.out.partition("Commands:")[2].splitlines() if line.startswith("  ")]
    assert listed[: len(COMMANDS)] == COMMANDS
    assert "Exit codes: 0 done; 1 " in done.out


def test_a_call_without_a_command_shows_the_help(afresh: Operator) -> None:
    assert afresh() == afresh("-h") == afresh("--help")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does(afresh: Operator, command: str) -> None:
    done = afresh(command, "--help")

    assert done.code == 0
    assert done.out.startswith(f"Usage: afresh {command} ")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["statuss"], "Did you mean 'status'"),
        (["status", "--frobnicate"], "No such option: --frobnicate (`afresh status --help` shows how)"),
        (["handoff"], "Missing command. (`afresh handoff --help` shows how)"),
        (["answer", "swarm1"], "Missing argument 'CHOICE'"),
        (["answer", "swarm1", "perhaps"], "'perhaps' is not one of 'retry', 'force'"),
        (["events", "--limit", "0"], "Invalid value for '--limit'"),
        (["enable"], "name workers, or say --all"),
        (["disable", "swarm1", "--all"], "name workers, or say --all"),
        (["status", "--watch", "--json"], "--watch shows again and again, --json prints one document: choose one"),
        (["answer", "swarm1", "use-text"], "use-text takes a file"),
        (["answer", "swarm1", "retry", "notes.md"], "use-text takes a file"),
    ],
)
def test_wrong_usage_is_one_line_that_shows_the_way(afresh: Operator, arguments: list[str], complaint: str) -> None:
    assert complaint in afresh(*arguments).refusal


BAD_IDS = ["../x", "swarm1;rm", "a" * 65, "", "swarm1 ", "-", "swarm1/../swarm2", "=swarm1"]
NAMING = [
    ["status"], ["sweep", "--dry-run"], ["renew"], ["renew", "--dry-run"], ["handoff", "list"], ["handoff", "show"],
    ["handoff", "request"],
    ["hold"], ["release"], ["enable"], ["start"], ["events"], ["checkpoint", "parse", "--worker"],
]  # fmt: skip


@pytest.mark.parametrize("words", NAMING, ids=" ".join)
def test_what_is_no_worker_id_is_refused_by_every_command(afresh: Operator, words: list[str]) -> None:
    for bad in BAD_IDS:
        refusal = afresh(*words, *([] if words[-1].startswith("--") else ["--"]), bad).refusal
        assert "is not a worker id" in refusal
        assert repr(bad[:80]) in refusal


@pytest.mark.parametrize("words", [words for words in NAMING if words[0] != "checkpoint"], ids=" ".join)
def test_an_unknown_worker_is_refused_with_the_names_of_the_known_ones(afresh: Operator, words: list[str]) -> None:
    assert afresh(*words, "swarm2").refusal == "worker swarm2 is unknown; managed workers: swarm1"


def test_a_configuration_that_others_can_write_is_refused(afresh: Operator) -> None:
    afresh.toml.chmod(0o620)

    refusal = afresh("status").refusal

    assert str(afresh.toml) in refusal
    assert "chmod go-w" in refusal


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[policy\n", "not valid TOML"),
        ("[worker.swarm1]\n", "unknown key 'worker'"),
        ("[policy]\nhandof = 3\n", "unknown key 'policy.handof'"),
        ("[workers.swarm1]\nprofil = '/x'\n", "unknown key 'workers.swarm1.profil'"),
        ("[policy]\nsoft = 9\nhandoff = 8\nhard = 7\n", "limits must rise"),
        ("[workers.'../x']\n", "is not a worker id"),
        ("sweep_interval = 'soon'\n", "sweep_interval"),
        ("[workers.swarm1]\nagent = 'hal9000'\n", "hal9000"),
    ],
)
def test_a_broken_configuration_is_refused_with_file_and_key(afresh: Operator, text: str, complaint: str) -> None:
    afresh.toml.write_text(text)

    refusal = afresh("status").refusal

    assert str(afresh.toml) in refusal
    assert complaint in refusal


def test_a_named_configuration_must_be_there(afresh: Operator) -> None:
    missing = afresh.stage.root / "missing.toml"

    assert afresh("--config", str(missing), "status").refusal == f"{missing}: no such configuration file"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("workers: [", "not valid YAML"),
        ("workers: 7", "workers must be a list"),
        ("workers: [{id: swarm1}, {id: swarm1}]", "swarm1 is listed twice"),
        ("workers: [{id: '../x'}]", "worker 1: id: '../x' is not a worker id"),
    ],
)
def test_a_broken_roster_is_refused_with_file_and_entry(afresh: Operator, text: str, complaint: str) -> None:
    roster = afresh.stage.ground.memory_root / "swarm.yaml"
    roster.write_text(text)

    refusal = afresh("status").refusal

    assert str(roster) in refusal
    assert complaint in refusal


def test_a_state_folder_that_cannot_be_made_is_refused(afresh: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    (afresh.stage.root / "file").write_text("")
    monkeypatch.setenv("AFRESH_HOME", str(afresh.stage.root / "file" / "home"))

    assert "set AFRESH_HOME" in afresh("status").refusal


def test_a_ledger_that_cannot_be_read_is_one_line_and_a_failure(afresh: Operator) -> None:
    ledger = afresh.stage.ground.home / "ledger.db"
    ledger.write_text("this is no database, and long enough that SQLite reads a header from it" * 20)

    done = afresh("status")

    assert (done.code, done.out) == (1, "")
    assert done.err == f"afresh: {ledger}: file is not a database\n"


def test_a_traceback_is_shown_only_with_debug(afresh: Operator) -> None:
    assert "Traceback" not in afresh.process("status", "swarm2").err
    for arguments in (["--debug", "status", "swarm2"], ["status", "swarm2", "--debug"]):
        done = afresh.process(*arguments)
        assert done.code == 1, "Python's own code for an uncaught exception"
        assert "Traceback" in done.err
        assert "UnknownWorker: worker swarm2 is unknown" in done.err


@pytest.mark.parametrize("position", ["before", "after", "after, joined"])
def test_the_configuration_may_be_named_before_and_after_the_command(afresh: Operator, position: str) -> None:
    other = afresh.stage.root / "other.toml"
    other.write_text("[workers.alice]\n")
    other.chmod(0o600)
    calls = {
        "before": ["--config", str(other), "status", "--json"],
        "after": ["status", "--json", "--config", str(other)],
        "after, joined": ["status", f"--config={other}", "--json"],
    }

    rows = afresh(*calls[position]).json

    assert next(row["worker_id"] for row in rows if row["managed"]) == "alice"


def test_what_follows_two_dashes_is_left_where_it_is() -> None:
    given = ["checkpoint", "parse", "--debug", "--", "--config", "x"]

    assert general_options_first(given) == ["--debug", "checkpoint", "parse", "--", "--config", "x"]


def test_a_reader_that_goes_away_is_no_error_worth_a_word(afresh: Operator) -> None:
    with afresh.host() as host:
        for number in range(3_000):
            host.event("tick", afresh.stage.worker(), number=number)
    for options in (["--limit", "3000"], ["--limit", "3000", "--json"], ["--limit", "1"]):
        reading, writing = os.pipe()
        os.close(reading)
        process = subprocess.Popen(
            [*COMMAND, "events", *options],
            cwd=REPOSITORY,
            env=afresh.environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
        )
        os.close(writing)
        assert process.stderr is not None
        with process.stderr as errors:
            assert errors.read() == b""
        assert process.wait(timeout=120) == 1


def test_an_interrupt_ends_a_command_with_130(afresh: Operator) -> None:
    process = subprocess.Popen(
        [*COMMAND, "status", "--watch"],
        cwd=REPOSITORY,
        env=afresh.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("configuration: ")
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (130, "afresh: interrupted\n")


LOADED = """
import runpy, sys
sys.argv = ["afresh", *sys.argv[1:]]
try:
    runpy.run_module("deployments.cli", run_name="__main__")
except SystemExit:
    print("loaded:", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments",
    ["--help", "checkpoint parse", "status", "status --json", "events", "blocked", "adopt", "renew swarm1 --dry-run",
     "sweep --dry-run", "hold swarm1", "enable --all", "handoff list swarm1", "handoff show swarm1"],
)  # fmt: skip
def test_a_command_that_runs_no_flow_loads_no_prefect(running: Operator, arguments: str) -> None:
    words = arguments.split()
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words],
        cwd=REPOSITORY,
        env=running.environment(),
        input="",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    loaded = set(done.stderr.splitlines()[-1].split())
    assert {"loaded:", "typer", "lifecycle"} <= loaded, done.stderr
    assert "prefect" not in loaded
    if words[0] in ("--help", "checkpoint"):
        assert {"libtmux", "sqlite_utils", "psutil", "ruamel", "tiktoken", "rich", "asyncio"} & loaded == set()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("afresh reco", ["recover"]),
        ("afresh renew sw", ["swarm1"]),
        ("afresh doctor sw", ["swarm1"]),
        ("afresh renew --fo", ["--force"]),
        ("afresh renew x", []),
    ],
)
def test_bash_completes_commands_options_and_workers(afresh: Operator, typed: str, offered: list[str]) -> None:
    script = afresh.process("--show-completion", "bash").out
    words = typed.split()
    asked = f"{script}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _afresh_completion afresh\n"
    asked += "echo ${COMPREPLY[*]}"
    program = afresh.stage.root / "bin" / "afresh"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\ncd {REPOSITORY} && exec {" ".join(COMMAND)} "$@"\n')
    program.chmod(0o755)

    done = subprocess.run(
        ["bash", "-c", asked],
        env=afresh.environment(PATH=f"{program.parent}:{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert done.stdout.split() == offered, done.stderr


def test_a_broken_configuration_completes_no_worker_and_prints_nothing_else(afresh: Operator) -> None:
    afresh.toml.write_text("not toml [")

    done = afresh.process(_AFRESH_COMPLETE="complete_bash", COMP_WORDS="afresh renew s", COMP_CWORD="2")

    assert (done.out.strip(), done.err) == ("", "")


def test_progress_that_nobody_reads_any_more_ends_nothing() -> None:
    told = "from deployments.output import tell; tell('stopped'); tell('starts it'); print('went on')"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", told], cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=writing, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stdout) == (0, "went on\n"), "`afresh renew NAME 2>&1 | head` would leave it down"
