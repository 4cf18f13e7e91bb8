"""Collecting by itself, with rows as the agent writes them and real repositories; no agent runs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lifecycle.collect_settings import CollectSettings
from lifecycle.collected import Collected
from lifecycle.collecting import LONGEST, MOST_COMMANDS, MOST_FILES, collect, forget_old_results
from lifecycle.host import Host
from lifecycle.renewal import Renewal
from lifecycle.settings import Settings
from lifecycle.worker import Worker
from tests.lifecycle.hermes.hermes_profile import EPOCH, MAIN, Profile
from tests.lifecycle.repositories import Tree

BEGAN = datetime.fromtimestamp(EPOCH, UTC)
RENEWAL = Renewal(
    renewal_id="r261130120000-abc123", worker_id="builder", generation=4, opened_at=BEGAN, updated_at=BEGAN
)
SECRET = "ghp_" + "a1B2" * 9


class Room:
    """A worker that is down, with the rows that its agent left and the folder in which it worked."""

    def __init__(self, root: Path, host: Host) -> None:
        self.root, self.host = root, host
        self.rows = Profile(root / "profile")
        self.rows.session(cwd=str(root / "repo"))
        self.worker = Worker(
            worker_id="builder", profile=root / "profile", session="swarm-builder", socket=str(root / "tmux")
        )
        self._at = 0.0

    def call(self, tool: str, result: dict[str, object] | None, **given: object) -> None:
        self._at += 2
        entry = {"id": f"call_{self._at:.0f}_9f86d081", "function": {"name": tool, "arguments": json.dumps(given)}}
        self.rows.say("assistant", "", self._at, tool_calls=json.dumps([entry]), finish_reason="tool_calls")
        if result is not None:
            self.rows.say("tool", json.dumps(result), self._at + 1, tool_call_id=entry["id"], tool_name=tool)

    def ran(self, command: str, output: str = "", code: int = 0) -> None:
        self.call("terminal", {"output": output, "exit_code": code, "error": None}, command=command)

    def collect(self, **rules: object) -> Collected:
        settings = self.host.settings.model_copy(update={"collect": CollectSettings.model_validate(rules)})
        self.host.settings = settings
        return collect(self.host, self.worker, RENEWAL, session_id=MAIN)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    settings = Settings(home=tmp_path / "afresh", hermes_root=tmp_path, memory_root=tmp_path / "memory")
    with Host.opened(settings) as host:
        yield Room(tmp_path, host)


def test_the_folder_in_which_the_agent_works_is_looked_at_wherever_it_was_started(room: Room) -> None:
    tree = Tree(room.root / "repo")
    tree.write("new.txt", "new\n")
    found = room.collect()
    assert (found.cwd, found.sessions, found.troubles) == (tree.root, (MAIN,), ())
    assert found.git is not None
    assert (found.git.untracked, found.git.snapshot) == (("new.txt",), "refs/afresh/builder/4")


def test_without_a_repository_there_is_none_and_no_complaint(room: Room) -> None:
    (room.root / "repo").mkdir()
    found = room.collect()
    assert (found.git, found.troubles) == (None, ())


def test_a_folder_that_is_gone_is_said(room: Room) -> None:
    found = room.collect()
    assert found.git is None
    assert found.troubles == (f"git: the folder {room.root / 'repo'} is not there",)


def test_snapshots_can_be_switched_off_and_the_state_is_told_all_the_same(room: Room) -> None:
    tree = Tree(room.root / "repo")
    tree.write("new.txt", "new\n")
    found = room.collect(snapshot=False)
    assert found.git is not None
    assert (found.git.untracked, found.git.snapshot) == (("new.txt",), None)
    assert tree.git("for-each-ref", "refs/afresh") == ""


def test_git_that_does_not_answer_is_given_up_at_the_deadline(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    Tree(room.root / "repo")
    slow = room.root / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:/usr/bin:/bin")
    room.ran("make test", code=2)
    began = time.monotonic()
    found = room.collect(deadline=0.5)
    assert time.monotonic() - began < 60
    assert found.troubles == (f"git: {room.root / 'repo'}: git was not done after 0.5 s",)
    assert [command.exit_code for command in found.commands] == [2]


def test_a_transcript_that_cannot_be_read_is_said_and_git_is_collected(room: Room) -> None:
    Tree(room.root / "repo")
    (room.root / "profile" / "state.db").write_text("no database")
    room.worker = room.worker.model_copy(update={"cwd": room.root / "repo"})
    found = room.collect()
    assert found.git is not None
    assert len(found.troubles) == 1
    assert found.troubles[0].startswith("the transcript: ")


def test_results_that_cannot_be_kept_are_said(room: Room) -> None:
    room.ran("make", "x" * 9_000)
    (room.root / "afresh" / "artifacts").write_text("in the way")
    found = room.collect()
    assert found.results == ()
    assert found.troubles[0].startswith("large tool results: ")


def test_no_secret_is_collected(room: Room) -> None:
    room.ran(f"curl -H 'Authorization: Bearer {SECRET}' https://example.org", f"token={SECRET} " + "x" * 9_000)
    room.call("terminal", None, command=f"export GITHUB_TOKEN={SECRET}")
    room.call("todo", {"todos": [{"id": "1", "content": f"rotate {SECRET}", "status": "pending"}]})
    found = room.collect()
    assert SECRET not in found.model_dump_json()
    assert len(found.results) == len(found.interrupted) == len(found.todos) == 1


def test_the_newest_of_each_are_kept_each_short_and_repeated_commands_once(room: Room) -> None:
    for number in range(MOST_COMMANDS + 20):
        room.ran(f"step {number} {'x' * 600}")
    for number in range(MOST_FILES + 20):
        room.call("read_file", {"content": ""}, path=f"/repo/{number}.py")
    for _ in range(3):
        room.ran("make test", code=1)
    found = room.collect()
    assert len(found.commands) == MOST_COMMANDS
    assert [command.command for command in found.commands[-2:]] == [found.commands[-2].command, "make test"]
    assert found.commands[-2].command.startswith(f"step {MOST_COMMANDS + 19} ")
    assert max(len(command.command) for command in found.commands) <= LONGEST
    assert [file.path for file in found.files[-1:]] == [f"/repo/{MOST_FILES + 19}.py"]
    assert len(found.files) == MOST_FILES


def test_the_largest_results_are_kept_and_the_protected_tools_left_alone(room: Room) -> None:
    for number in range(4):
        room.ran(f"make {number}", f"{number}" * (5_000 + number))
    room.call("read_file", {"content": "x" * 50_000}, path="/a")
    room.ran("ls", "x" * 1_000)
    found = room.collect(offload_most=2)
    assert [kept.summary for kept in found.results] == [
        "ran `make 2` -> exit 0, 2 lines",
        "ran `make 3` -> exit 0, 2 lines",
    ]


def test_old_results_go_and_those_that_the_newest_handoffs_name_stay(room: Room) -> None:
    room.ran("make old", "o" * 9_000)
    room.ran("make named", "n" * 9_000)
    old, named = (kept.handle for kept in room.collect().results)
    archive = room.root / "afresh" / "archive" / "builder"
    archive.mkdir(parents=True)
    (archive / "20260801T120000Z-r1.md").write_text(f"- [[OFFLOAD: handle={named}, tool=terminal, chars=9]] x\n")
    room.host.settings = room.host.settings.model_copy(
        update={"collect": CollectSettings(artifacts_kept_for=timedelta(hours=2))}
    )
    for file in (room.root / "afresh" / "artifacts").rglob("*.gz"):
        past = time.time() - 3 * 3_600
        os.utime(file, (past, past))
    forget_old_results(room.host)
    left = [file.stem[:12] for file in (room.root / "afresh" / "artifacts").rglob("*.gz")]
    assert left == [named]
    assert old not in left


def test_a_folder_that_cannot_even_be_looked_at_holds_nothing_up(room: Room) -> None:
    """A name that no file system takes, as a mount that is gone, is no folder; the rest is collected."""
    room.rows.run("UPDATE sessions SET cwd = ?", f"/srv/{'n' * 300}")
    room.ran("make")
    found = room.collect()
    assert found.commands[-1].command == "make"
    assert any("is not there" in trouble for trouble in found.troubles)
