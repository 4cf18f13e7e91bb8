"""afresh status: what people and programs are told of the workers."""

from __future__ import annotations

import json
import os
import pty
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime

import pytest

from deployments.output import aligned
from tests.deployments.conftest import COMMAND, REPOSITORY, Operator, table

FIELDS = {
    "worker_id", "managed", "automatic", "agent", "session_id", "model", "context_window", "compaction_point", "tokens",
    "tokens_source", "session_total", "compactions", "context_state", "lifecycle_state", "state", "recommended_action",
    "accepting_work", "policy", "last_activity_at", "last_handoff_at", "handoff_path", "handoff_exists", "pane_state",
    "block", "phase", "renewal_id", "generation", "read_at", "error",
}  # fmt: skip


def test_an_empty_home_has_no_workers_and_says_where_it_looked(afresh: Operator) -> None:
    afresh.toml.unlink()
    afresh.stage.profile.rename(afresh.stage.root / "elsewhere")

    assert afresh("status", "--json").json == []
    done = afresh("status")
    assert done.code == 0
    assert f"no workers: {afresh.stage.ground.hermes_root}/profiles has no profile" in done.out
    assert "configuration: none (defaults)" in done.out


def test_a_worker_over_its_limit_is_told_with_figures_and_what_comes_next(running: Operator) -> None:
    running.stage.fill(70_000)

    (row,) = running("status", "--json").json

    assert row.keys() >= FIELDS
    assert (row["worker_id"], row["tokens"], row["tokens_source"]) == ("swarm1", 70_000, "api_log")
    assert (row["context_state"], row["lifecycle_state"], row["state"]) == (
        "handoff_required",
        "idle",
        "handoff_required",
    )
    assert row["policy"] == {"soft": 30_000, "handoff": 60_000, "hard": 90_000}
    assert row["recommended_action"] == "Request durable handoff before assigning more work."
    assert (row["managed"], row["automatic"], row["accepting_work"]) == (True, False, False)
    assert (row["pane_state"], row["error"], row["block"], row["handoff_exists"]) == ("ready", None, None, False)
    assert row["why"].startswith("automatic renewal is off, else it would be renewed: 70,000 ")
    assert datetime.fromisoformat(row["read_at"]) <= datetime.now(UTC)


def test_people_read_a_line_a_worker_with_the_reason_last(running: Operator) -> None:
    running.stage.fill(70_000)

    lines = running("status").out.splitlines()

    assert lines[0] == f"configuration: {running.toml}"
    heading, line = lines[3:5]
    assert " ".join(heading.split()) == "WORKER STATE TOKENS OF HANDOFF SOURCE PANE AUTO HANDOFF WHY"
    assert line.startswith(
        "swarm1  handoff_required     70,000  117% of 60k  api_log  ready  off   never    automatic "
    )
    assert heading.index("WHY") == line.index("automatic")


def test_status_as_a_process_prints_the_document_and_nothing_else(running: Operator) -> None:
    done = running.process("status", "--json")

    assert (done.code, done.err) == (0, "")
    assert [row["worker_id"] for row in done.json] == ["swarm1"]


def test_profiles_that_nobody_declared_are_shown_as_unmanaged(afresh: Operator) -> None:
    for name in ("workspace", "default"):
        (afresh.stage.ground.hermes_root / "profiles" / name).mkdir()

    rows = {row["worker_id"]: row for row in afresh("status", "--json").json}

    assert {name: row["managed"] for name, row in rows.items()} == {
        "swarm1": True,
        "default": False,
        "workspace": False,
    }
    assert (rows["workspace"]["automatic"], rows["workspace"]["pane_state"]) == (False, "unknown")
    assert afresh("status").out.splitlines()[-1] == "unmanaged, never touched: default, workspace"
    assert [row["worker_id"] for row in afresh("status", "workspace", "--json").json] == ["workspace"]


def test_a_worker_that_does_not_run_is_absent_and_told_how_to_start(afresh: Operator) -> None:
    (row,) = afresh("status", "--json").json

    assert (row["context_state"], row["lifecycle_state"], row["pane_state"]) == ("no_session", "absent", "absent")
    assert "afresh start swarm1" in row["why"]


def test_a_fresh_agent_has_no_session_and_no_alarm(running: Operator) -> None:
    (row,) = running("status", "--json").json

    assert (row["context_state"], row["tokens"], row["error"]) == ("no_session", None, None)
    assert row["accepting_work"] is True


def test_an_unreadable_database_is_unknown_with_the_reason_and_takes_no_work(running: Operator) -> None:
    running.stage.fill(10_000)
    for file in running.stage.profile.glob("state.db*"):
        file.unlink()
    (running.stage.profile / "state.db").write_bytes(b"no database" * 1000)

    done = running("status", "--json")

    (row,) = done.json
    assert done.code == 0
    assert (row["context_state"], row["state"], row["tokens"], row["accepting_work"]) == (
        "unknown",
        "unknown",
        None,
        False,
    )
    assert row["error"]
    assert row["error"] in row["why"]


def test_a_held_worker_is_held(running: Operator) -> None:
    running("hold", "swarm1", "--why", "moving house")

    (row,) = running("status", "--json").json

    assert (row["lifecycle_state"], row["accepting_work"]) == ("held", False)
    assert "moving house" in row["why"]


def test_named_workers_come_in_the_order_they_were_named(afresh: Operator) -> None:
    afresh.configure("\n".join(table(f"workers.{name}", {}) for name in ("alice", "bob", "carol")))

    assert [row["worker_id"] for row in afresh("status", "carol", "alice", "--json").json] == ["carol", "alice"]


def test_ten_workers_are_read_by_one_command(running: Operator) -> None:
    stages = [running.stage.another(f"swarm{number}") for number in range(2, 11)]
    for stage in stages:
        stage.start()
    for stage in stages:
        stage.wait_ready()
        stage.answer_to(stage.say(f"carry on [[tokens {int(stage.worker_id[5:])}1000]]"))

    rows = running("status", "--json").json

    assert [row["worker_id"] for row in rows] == [f"swarm{number}" for number in range(1, 11)]
    assert [row["tokens"] for row in rows[1:]] == [number * 10_000 + 1000 for number in range(2, 10)] + [101_000]


def test_looking_changes_nothing(running: Operator) -> None:
    running.stage.fill(70_000)
    running("status")
    before = snapshot(running)

    for arguments in (["status"], ["status", "--json"], ["sweep", "--dry-run"], ["renew", "swarm1", "--dry-run"],
                      ["renew", "swarm1", "--force", "--dry-run"], ["blocked"], ["events"], ["adopt"]):  # fmt: skip
        assert running(*arguments).code == 0
        assert snapshot(running) == before, arguments


def snapshot(operator: Operator) -> tuple[object, ...]:
    """All that a command could have changed: the ledger's rows, the files of swarm and profile, the screen."""
    with closing(sqlite3.connect(operator.stage.ground.home / "ledger.db")) as ledger:
        tables = [name for (name,) in ledger.execute("select name from sqlite_master where type = 'table'")]
        rows = {name: ledger.execute(f"select * from [{name}]").fetchall() for name in tables}  # noqa: S608
    roots = (operator.stage.profile, operator.stage.ground.memory_root, operator.stage.ground.home, operator.stage.cwd)
    files = {
        str(path): path.read_bytes()
        for root in roots
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith(("state.db", "ledger.db"))
    }
    return rows, files, operator.stage.screen(), operator.stage.rows()


def test_on_a_terminal_the_reason_wraps_under_itself(running: Operator) -> None:
    running.stage.fill(70_000)

    text = on_a_terminal(running, "status", columns=120)

    lines = text.splitlines()
    assert max(map(len, lines[2:])) <= 120
    start = next(line.index("WHY") for line in lines if line.startswith("WORKER"))
    reason = lines[lines.index(next(line for line in lines if line.startswith("swarm1"))) + 1]
    assert reason[:start].strip() == ""
    assert reason[start] != " "


def on_a_terminal(operator: Operator, *arguments: str, columns: int) -> str:
    """What the command prints where it stands before a person."""
    ours, its = pty.openpty()
    with os.fdopen(ours, "rb") as screen:
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=REPOSITORY,
            env=operator.environment(COLUMNS=str(columns)),
            stdout=its,
            stderr=subprocess.STDOUT,
        )
        os.close(its)
        shown = b""
        try:
            while chunk := screen.read1(4096):
                shown += chunk
        except OSError:
            pass  # a terminal whose last program ended
        assert process.wait(timeout=120) == 0
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (None, ["a   first", "bb  a long reason in many words"]),
        (34, ["a   first", "bb  a long reason in many words"]),
        (30, ["a   first", "bb", "  a long reason in many words"]),
    ],
)
def test_the_last_column_is_wrapped_where_it_does_not_fit(width: int | None, lines: list[str]) -> None:
    assert aligned([("a", "first"), ("bb", "a long reason in many words")], width) == lines


def test_a_path_is_never_broken() -> None:
    path = "/a-long-path/to-a-handoff/that-is/20260801T120000Z-r260801120000-abc123.md"

    assert aligned([("bb", path)], 40) == ["bb", f"  {path}"]


def test_a_wrapped_reason_stands_under_itself() -> None:
    reason = "a long reason in many words, and some more of them"

    assert aligned([("bb", reason)], 38) == ["bb  a long reason in many words, and", "    some more of them"]


def test_text_and_document_tell_the_same_block(running: Operator) -> None:
    assert json.loads(running("blocked", "--json").out) == []
    assert running("blocked").out == "nothing is blocked\n"
