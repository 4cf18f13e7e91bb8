from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from lifecycle.agents.hermes.trail import trail
from lifecycle.collected import Command, OpenCall, ToDo, TouchedFile
from lifecycle.trail import LargeRule, Trail
from tests.lifecycle.hermes.hermes_profile import MAIN, SUMMARY, Profile, copied, moment

RULE = LargeRule(over=4_000, most=20, protected=("read_file",))


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    profile = Profile(tmp_path)
    profile.session(cwd="/orchard/repo")
    return profile


def found(
    profile: Path, *, session_id: str | None = None, since: datetime | None = None, rule: LargeRule = RULE
) -> Trail:
    return trail(profile, "swarm1", session_id=session_id, since=since, large=rule)


def call(
    profile: Profile, at: float, tool: str, result: object, *, its_id: str = "", session_id: str = MAIN, **given: Any
) -> None:
    """A tool call and, unless *result* is None, its result as Hermes writes both."""
    its_id = its_id or f"call_{at:.0f}_9f86d081"
    entry = {"id": its_id, "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
    profile.say("assistant", "", at, session_id, tool_calls=json.dumps([entry]), finish_reason="tool_calls")
    if result is not None:
        text = result if isinstance(result, str) else json.dumps(result)
        profile.say("tool", text, at + 0.5, session_id, tool_call_id=its_id, tool_name=tool)


def ran(profile: Profile, at: float, command: str, code: int = 0, **more: Any) -> None:
    call(profile, at, "terminal", {"output": "…", "exit_code": code, "error": None}, command=command, **more)


def test_commands_come_with_their_exit_codes_and_folders_in_their_order(profile: Profile) -> None:
    ran(profile, 1, "make test", 2)
    ran(profile, 3, "ls", 0, workdir="/elsewhere")
    ran(profile, 5, "npm run dev", 0, background=True)
    call(profile, 7, "execute_code", {"status": "success", "output": "7"}, code="print(3+4)")
    assert found(profile.folder).commands == (
        Command(command="make test", exit_code=2, at=moment(1)),
        Command(command="ls", exit_code=0, at=moment(3), cwd="/elsewhere"),
        Command(command="(in the background) npm run dev", exit_code=None, at=moment(5)),
        Command(command="(code) print(3+4)", exit_code=None, at=moment(7)),
    )


def test_files_come_once_with_all_that_was_done_to_them_by_their_resolved_paths(profile: Profile) -> None:
    call(profile, 1, "read_file", {"content": "1|x"}, path="/repo/a.py")
    call(profile, 2, "write_file", {"bytes_written": 1, "resolved_path": "/repo/b.py"}, path="b.py", content="x")
    patch = "*** Begin Patch\n*** Update File: c.py\n*** Move File: d.py -> e.py\n*** End Patch"
    call(profile, 3, "patch", {"success": True}, mode="patch", patch=patch)
    call(profile, 4, "patch", {"success": True, "files_modified": ["/repo/a.py"]}, path="a.py", old_string="x")
    call(profile, 5, "write_file", {"error": "no permission"}, path="/root/f.py", content="x")
    assert found(profile.folder).files == (
        TouchedFile(path="/repo/b.py", acts=("written",), times=1, last=moment(2)),
        TouchedFile(path="c.py", acts=("patched",), times=1, last=moment(3)),
        TouchedFile(path="d.py", acts=("patched",), times=1, last=moment(3)),
        TouchedFile(path="e.py", acts=("patched",), times=1, last=moment(3)),
        TouchedFile(path="/repo/a.py", acts=("read", "patched"), times=2, last=moment(4)),
    )


def test_a_file_that_is_named_with_and_without_its_folder_is_one(profile: Profile) -> None:
    call(profile, 1, "write_file", {"bytes_written": 1, "resolved_path": "/orchard/repo/a.py"}, path="a.py")
    call(profile, 2, "read_file", {"content": "1|x"}, path="./a.py")
    call(profile, 3, "read_file", {"content": "1|x"}, path="b.py")
    assert [(file.path, file.acts) for file in found(profile.folder).files] == [
        ("/orchard/repo/a.py", ("written", "read")),
        ("b.py", ("read",)),
    ]


def test_a_call_without_a_result_is_open_whatever_tool_it_was(profile: Profile) -> None:
    call(profile, 1, "terminal", None, command="make deploy")
    call(profile, 2, "write_file", None, path="/repo/x.py", content="x")
    trail_ = found(profile.folder)
    assert trail_.interrupted == (
        OpenCall(tool="terminal", told="make deploy", at=moment(1)),
        OpenCall(tool="write_file", told="/repo/x.py", at=moment(2)),
    )
    assert (trail_.commands, trail_.files) == ((), ()), "nobody knows whether they were done"


def todo(*entries: tuple[str, str]) -> dict[str, Any]:
    return {"todos": [{"id": str(at), "content": text, "status": status} for at, (text, status) in enumerate(entries)]}


def test_open_to_dos_are_those_of_the_newest_list(profile: Profile) -> None:
    call(profile, 1, "todo", todo(("old", "pending")), todos=[])
    newest = todo(("done", "completed"), ("doing", "in_progress"), ("next", "pending"), ("no", "cancelled"))
    call(profile, 2, "todo", newest)
    call(profile, 3, "todo", None, todos=[])
    assert found(profile.folder).todos == (
        ToDo(text="doing", status="in_progress"),
        ToDo(text="next", status="pending"),
    )


def test_a_list_that_is_all_done_leaves_no_to_do(profile: Profile) -> None:
    call(profile, 1, "todo", todo(("old", "pending")))
    call(profile, 2, "todo", todo(("old", "completed")))
    assert found(profile.folder).todos == ()


def compacted(profile: Profile, at: float) -> None:
    """In place, as Hermes does it: all rows archived, a summary, and the last call once more with shortened parts."""
    profile.compact(at, [("user", SUMMARY)])


def test_what_a_compaction_archived_is_there_once_and_whole(profile: Profile) -> None:
    ran(profile, 1, "make test", 1)
    call(
        profile, 3, "terminal", {"output": "x" * 900, "exit_code": 3}, command="make " + "x" * 600, its_id="call_a1b2c3"
    )
    compacted(profile, 10)
    call(
        profile,
        10.1,
        "terminal",
        "[terminal] ran `make xx…` -> exit 3, 1 lines output",
        command="make xx…",
        its_id="call_a1b2c3",
    )
    ran(profile, 11, "ls")
    codes = [(command.command[:9], command.exit_code) for command in found(profile.folder).commands]
    assert codes == [("make test", 1), ("make xxxx", 3), ("ls", 0)]


def test_a_result_that_only_the_compaction_left_still_tells_its_exit_code(profile: Profile) -> None:
    call(profile, 1, "terminal", "[terminal] ran `npm test` -> exit 1, 47 lines output", command="npm test")
    assert [command.exit_code for command in found(profile.folder).commands] == [1]


def test_calls_that_are_numbered_anew_are_told_apart_also_across_a_compaction(profile: Profile) -> None:
    for at, command in ((1, "first"), (3, "second")):
        call(profile, at, "terminal", {"output": "", "exit_code": 0}, command=command, its_id="call_0")
    compacted(profile, 10)
    call(profile, 11, "terminal", {"output": "", "exit_code": 4}, command="third", its_id="call_0")
    commands = [(command.command, command.exit_code) for command in found(profile.folder).commands]
    assert commands == [("first", 0), ("second", 0), ("third", 4)]


def test_what_a_person_undid_is_not_there(profile: Profile) -> None:
    ran(profile, 1, "kept")
    ran(profile, 3, "undone")
    profile.run("UPDATE messages SET active = 0, compacted = 0 WHERE id > 2")
    assert [command.command for command in found(profile.folder).commands] == ["kept"]


def test_the_trail_goes_back_through_sessions_that_compactions_closed(profile: Profile) -> None:
    profile.run("UPDATE sessions SET end_reason = 'compression', ended_at = started_at + 5 WHERE id = ?", MAIN)
    ran(profile, 1, "before")
    profile.session("20261129_101020_bbbbbb", 6, parent_session_id=MAIN)
    ran(profile, 7, "after", session_id="20261129_101020_bbbbbb")
    for asked in (None, MAIN, "20261129_101020_bbbbbb"):
        trail_ = found(profile.folder, session_id=asked)
        assert trail_.sessions == (MAIN, "20261129_101020_bbbbbb")
        assert [command.command for command in trail_.commands] == ["before", "after"]
        assert trail_.cwd == "/orchard/repo"


def test_the_named_session_is_read_also_when_it_has_ended_and_another_one_is_open(profile: Profile) -> None:
    ran(profile, 1, "mine")
    profile.run("UPDATE sessions SET ended_at = 9, end_reason = 'cli_close'")
    profile.session("20261129_101020_bbbbbb", 20)
    ran(profile, 21, "somebody else's", session_id="20261129_101020_bbbbbb")
    assert [command.command for command in found(profile.folder, session_id=MAIN).commands] == ["mine"]


def test_the_largest_results_come_readable_without_those_of_protected_tools(profile: Profile) -> None:
    call(profile, 1, "terminal", {"output": "one\ntwo\n" * 600, "exit_code": 1, "error": None}, command="make")
    call(profile, 2, "read_file", {"content": "x" * 9_000}, path="/a")
    call(profile, 3, "web_extract", "plain " * 2_000, url="https://example.org/a")
    call(profile, 4, "terminal", {"output": "small", "exit_code": 0}, command="ls")
    call(profile, 5, "search_files", [1] * 3_000, pattern="x")
    large = found(profile.folder).large
    assert [(one.tool, one.told, one.exit_code) for one in large] == [
        ("terminal", "make", 1),
        ("web_extract", "https://example.org/a", None),
        ("search_files", "x", None),
    ]
    assert large[0].text.startswith("output:\none\ntwo\n")
    assert large[0].text.endswith("exit_code: 1")
    two = found(profile.folder, rule=LargeRule(over=4_000, most=2)).large
    assert [one.tool for one in two] == ["read_file", "web_extract"], "the largest, in the order in which they came"


def test_rows_that_hold_no_calls_that_can_be_read_are_passed_over(profile: Profile) -> None:
    for broken in ("no json", "{}", '[{"function": 3}]', '[{"id": 4, "function": {"name": null}}]', "[" * 100_000):
        profile.say("assistant", "", 1, tool_calls=broken, finish_reason="tool_calls")
    profile.say("tool", "an orphan", 2, tool_call_id="nobody's")
    ran(profile, 3, "ls")
    assert [command.command for command in found(profile.folder).commands] == ["ls"]


def test_there_is_no_trail_without_a_database_or_a_session(tmp_path: Path) -> None:
    assert found(tmp_path) == Trail()
    Profile(tmp_path)
    assert found(tmp_path) == Trail()
    assert found(tmp_path, session_id="20261129_101010_nobody") == Trail()


@pytest.mark.parametrize(
    ("sample", "sessions", "files", "commands", "large"),
    [
        ("15turns_30calls.db", 1, 4, 5, 0),
        ("live_15turns.db", 1, 4, 5, 0),
        ("live_after_rotation.db", 3, 0, 0, 0),
        ("renewals_x3.db", 1, 1, 0, 0),
        ("old_schema_no_active.db", 1, 0, 0, 0),
    ],
)
def test_what_the_real_agent_wrote_is_read(
    sample: str, sessions: int, files: int, commands: int, large: int, tmp_path: Path
) -> None:
    trail_ = found(copied(sample, tmp_path))
    counted = (len(trail_.sessions), len(trail_.files), len(trail_.commands), len(trail_.large))
    assert counted == (sessions, files, commands, large)
    assert all(command.exit_code == 0 for command in trail_.commands)
    assert trail_.interrupted == ()


def test_the_real_agents_renewal_left_its_commands_and_files(tmp_path: Path) -> None:
    profile = copied("renewals_x3.db", tmp_path)
    trail_ = found(profile, session_id="20261130_120936_c14405")
    assert [(command.command, command.exit_code) for command in trail_.commands][:1] == [("ls", 0)]
    written = [file for file in trail_.files if "written" in file.acts]
    assert all(file.path.startswith("/home/demo/orchard/") for file in written)
    assert written
