"""After a renewal the archive holds what the machine collected: the worker's own words are not needed for it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
from contextlib import closing
from typing import Any

import pytest

from lifecycle import artifacts
from lifecycle.collected import Collected
from lifecycle.collected_text import read_collected
from tests.flows.conftest import Scene
from tests.lifecycle.repositories import Tree


def call(scene: Scene, tool: str, result: dict[str, Any] | None, **given: Any) -> None:
    """A tool call of the running session, as the agent would have written it."""
    with closing(sqlite3.connect(scene.stage.paths.state_db, isolation_level=None, timeout=10)) as rows:
        (session_id,) = rows.execute("SELECT id FROM sessions ORDER BY started_at DESC").fetchone()
        its_id = f"call_{time.time_ns()}"
        entry = {"id": its_id, "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
        insert = (
            "INSERT INTO messages (session_id, role, content, timestamp, finish_reason, tool_calls, tool_name, "
            "tool_call_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        now = time.time()
        rows.execute(insert, (session_id, "assistant", "", now, "tool_calls", json.dumps([entry]), None, None))
        if result is not None:
            rows.execute(insert, (session_id, "tool", json.dumps(result), now, None, None, tool, its_id))


@pytest.fixture
def worked(scene: Scene) -> Scene:
    """The worker has worked in a git folder: everything that can be collected is there."""
    tree = Tree(scene.stage.cwd, commits=False)
    tree.write("rows.py", "rows = 1\n")
    tree.commit()
    tree.write("rows.py", "rows = 2\n")
    tree.write("notes/new.md", "a note\n")
    call(scene, "read_file", {"content": "1|rows = 1"}, path=str(scene.stage.cwd / "rows.py"))
    call(scene, "patch", {"success": True, "files_modified": [str(scene.stage.cwd / "rows.py")]}, path="rows.py")
    call(scene, "terminal", {"output": "1 failed", "exit_code": 1, "error": None}, command="pytest -q")
    log = "\n".join(f"packet {number}: counted" for number in range(400)) + "\nValueError: packet 400 is empty"
    call(scene, "terminal", {"output": log, "exit_code": 3, "error": None}, command="make count")
    call(scene, "todo", {"todos": [{"id": "1", "content": "count drawer three", "status": "in_progress"}]}, todos=[])
    call(scene, "terminal", None, command="make deploy")
    return scene


def collected(scene: Scene) -> Collected:
    saved = scene.renewal.saved
    assert saved is not None
    found = read_collected(saved.archive.read_text())
    assert found is not None
    return found


def test_the_archive_holds_all_that_the_machine_collected(worked: Scene) -> None:
    old_session = worked.stage.rows()[-1].session_id
    tree = Tree.__new__(Tree)
    tree.root = worked.stage.cwd
    before = tree.marks()

    assert worked.renew().name == "Renewed"

    found = collected(worked)
    assert found.troubles == ()
    assert found.cwd == worked.stage.cwd
    assert found.git is not None
    assert (found.git.branch, found.git.head) == ("main", tree.git("rev-parse", "HEAD").strip())
    assert found.git.dirty == (".M rows.py",)
    assert "notes/new.md" in found.git.untracked
    assert found.git.snapshot == "refs/afresh/swarm1/1"
    assert tree.in_commit("refs/afresh/swarm1/1")["rows.py"] == "rows = 2\n"
    commands = {command.command: command.exit_code for command in found.commands}
    assert (commands["pytest -q"], commands["make count"]) == (1, 3)
    acts = {file.path: file.acts for file in found.files}
    assert acts[str(worked.stage.cwd / "rows.py")] == ("read", "patched")
    assert [(todo.text, todo.status) for todo in found.todos] == [("count drawer three", "in_progress")]
    assert [(open_.tool, open_.told) for open_ in found.interrupted] == [("terminal", "make deploy")]
    assert found.sessions == (old_session,)
    assert not any("draft-" in path for path in acts), "the handoff's own draft is no work"
    after = tree.marks()
    assert {name: after[name] for name in before if name not in {"ledger.txt", "status"}} == {
        name: mark for name, mark in before.items() if name not in {"ledger.txt", "status"}
    }


def test_a_large_result_is_printed_by_the_very_command_that_the_handoff_names(worked: Scene) -> None:
    assert worked.renew().name == "Renewed"
    (kept,) = collected(worked).results
    assert kept.summary == "ran `make count` -> exit 3, 403 lines; line 402: ValueError: packet 400 is empty"
    assert "packet 17: counted" in artifacts.read(worked.stage.ground.home / "artifacts", kept.handle)

    saved = worked.renewal.saved
    assert saved is not None
    title = next(line for line in saved.archive.read_text().splitlines() if line.startswith("### Large results"))
    command = title.partition("`")[2].partition("`")[0].partition(" HANDLE")[0]
    shown = subprocess.run(
        ["sh", "-c", f"{command} {kept.handle} --grep 'Error|packet 17:'"],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (shown.stderr, shown.returncode) == ("", 0)
    assert shown.stdout == "19:packet 17: counted\n402:ValueError: packet 400 is empty\n"


def test_what_cannot_be_collected_is_one_line_and_the_worker_is_renewed_all_the_same(worked: Scene) -> None:
    (worked.stage.cwd / ".git" / "config").write_text("[broken\n")
    (worked.stage.ground.home / "artifacts").write_text("a file where the folder would be")

    assert worked.renew().name == "Renewed"

    found = collected(worked)
    assert found.git is None
    assert [trouble.partition(":")[0] for trouble in found.troubles] == ["large tool results", "git"]
    assert {command.command for command in found.commands} >= {"pytest -q"}
