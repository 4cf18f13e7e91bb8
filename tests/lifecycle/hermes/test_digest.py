from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lifecycle.agents.hermes.digest import digest
from lifecycle.errors import ContextUnreadable
from lifecycle.transcript import Digest, ToolCall
from tests.lifecycle.hermes.hermes_profile import MAIN, SUMMARY, Profile, copied, moment


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    made = Profile(tmp_path)
    made.session()
    return made


def found(profile: Profile) -> Digest:
    return digest(profile.folder, "swarm1", since=None)


def begin(profile: Profile, at: float, *calls: tuple[str, str, Any], **columns: Any) -> None:
    """An assistant row with these calls: id, name, arguments."""
    entries = [
        {"id": its_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for its_id, name, arguments in calls
    ]
    row = {"tool_calls": json.dumps(entries), "finish_reason": "tool_calls", **columns}
    profile.say("assistant", "", at, **row)


def end(profile: Profile, at: float, its_id: str, outcome: str = "done", **columns: Any) -> None:
    profile.say("tool", outcome, at, tool_call_id=its_id, **columns)


def run(command: str) -> str:
    return json.dumps({"command": command})


def test_requests_calls_and_last_words_come_in_their_order(profile: Profile) -> None:
    profile.say("user", "count the plums", 1)
    begin(profile, 2, ("c1", "terminal", run("ls")), ("c2", "terminal", run("wc -l plums")))
    end(profile, 3, "c2", "7 plums")
    end(profile, 4, "c1", "plums")
    profile.say("assistant", "there are 7", 5)
    profile.say("user", "and the pears", 6)
    profile.say("assistant", "\n ", 7)
    assert found(profile) == Digest(
        session_id=MAIN,
        requests=("count the plums", "and the pears"),
        last_words="there are 7",
        calls=(
            ToolCall(name="terminal", arguments=run("ls"), outcome="plums"),
            ToolCall(name="terminal", arguments=run("wc -l plums"), outcome="7 plums"),
        ),
    )


def test_a_call_without_a_result_has_no_outcome_and_one_with_an_empty_result_has(profile: Profile) -> None:
    begin(profile, 1, ("c1", "terminal", run("make")), ("c2", "terminal", run("true")))
    end(profile, 2, "c2", "")
    assert [call.outcome for call in found(profile).calls] == [None, ""]


def test_calls_that_are_numbered_anew_in_every_turn_are_all_there(profile: Profile) -> None:
    for at, command in ((1, "first"), (3, "second"), (5, "third")):
        begin(profile, at, ("call_0", "terminal", run(command)))
        if command != "third":
            end(profile, at + 1, "call_0", f"{command} done")
    assert [(call.arguments, call.outcome) for call in found(profile).calls] == [
        (run("first"), "first done"),
        (run("second"), "second done"),
        (run("third"), None),
    ]


def test_what_the_person_undid_and_what_was_compacted_is_left_out(profile: Profile) -> None:
    profile.say("user", "undone", 1, active=0)
    begin(profile, 2, ("c1", "terminal", run("undone")), active=0)
    profile.say("user", "kept", 3)
    profile.compact(4, [("user", f"{SUMMARY}\nold things"), ("user", "kept")])
    begin(profile, 5, ("c2", "terminal", run("ls")))
    assert found(profile).requests == ("kept",)
    assert [call.arguments for call in found(profile).calls] == [run("ls")]


def test_what_hermes_writes_in_a_persons_name_is_no_request(profile: Profile) -> None:
    for at, text in enumerate(["[ASYNC DELEGATION 1 done]", "[IMPORTANT: Background process 3", "received signal 15"]):
        profile.say("user", text, at)
    profile.say("assistant", f"{SUMMARY}\nwhat was", 8)
    profile.say("user", "a request", 9)
    assert (found(profile).requests, found(profile).last_words) == (("a request",), "")


def test_the_words_of_a_request_with_an_image_and_of_a_result_in_parts_are_read(profile: Profile) -> None:
    parts = [{"type": "text", "text": "look at this"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    profile.say("user", "\0json:" + json.dumps(parts), 1)
    begin(profile, 2, ("c1", "screenshot", "{}"))
    end(profile, 3, "c1", "\0json:" + json.dumps([{"type": "text", "text": "a window"}]))
    assert found(profile).requests == ("look at this",)
    assert found(profile).calls[0].outcome == "a window"


WRITES = {
    "a file is written": ("write_file", {"path": "/repo/a.py", "content": "x"}, ("/repo/a.py",)),
    "a file is patched": ("patch", {"mode": "replace", "path": "b.py", "old_string": "x"}, ("b.py",)),
    "several are patched": (
        "patch",
        {
            "mode": "patch",
            "patch": "*** Begin Patch\n*** Update File: a.py\n@@\n-*** Add File: no.py\n*** Add File: docs/new file.md"
            "\n+x\n*** Delete File: c.py\n*** Move File: d.py -> e.py\n*** End Patch",
        },
        ("a.py", "docs/new file.md", "c.py", "d.py", "e.py"),
    ),
    "a file is read": ("read_file", {"path": "/repo/a.py"}, ()),
    "a folder is searched": ("search_files", {"pattern": "plum", "path": "."}, ()),
    "a command names one": ("terminal", {"command": "rm a.py"}, ()),
    "no path is given": ("write_file", {"content": "x"}, ()),
    "the path is no text": ("write_file", {"path": ["a"], "content": "x"}, ()),
    "the arguments are a list": ("write_file", ["a"], ()),
    "the path is half a pair": ("write_file", {"path": "a\ud800.py"}, ("a?.py",)),
}


@pytest.mark.parametrize(("tool", "given", "files"), WRITES.values(), ids=WRITES)
def test_only_the_files_that_a_call_was_to_write_are_named(
    profile: Profile, tool: str, given: object, files: tuple[str, ...]
) -> None:
    begin(profile, 1, ("c1", tool, json.dumps(given)))
    assert found(profile).calls[0].files == files


@pytest.mark.parametrize("arguments", ["", "{", '{"path": ', "[" * 100_000, None, {"path": "a.py"}, "\ud800"])
def test_arguments_that_are_no_json_text_hurt_nobody(profile: Profile, arguments: object) -> None:
    begin(profile, 1, ("c1", "write_file", arguments))
    [call] = found(profile).calls
    assert call.files == (("a.py",) if isinstance(arguments, dict) else ())
    call.model_dump_json()


@pytest.mark.parametrize(
    "calls", ["", "[]", "null", "{", "7", '["x"]', '[{"id": "c1"}]', '[{"function": "ls"}]', "[" * 100_000]
)
def test_a_row_whose_calls_cannot_be_read_has_none(profile: Profile, calls: str) -> None:
    profile.say("user", "go", 1)
    profile.say("assistant", "words", 2, tool_calls=calls)
    end(profile, 3, "c1")
    assert (found(profile).calls, found(profile).last_words) == ((), "words")


def test_a_result_that_nobody_asked_for_is_passed_over(profile: Profile) -> None:
    end(profile, 1, "c9")
    profile.say("tool", "none", 2)
    assert found(profile).calls == ()


def test_the_current_session_is_read_and_no_delegates(profile: Profile) -> None:
    profile.say("user", "mine", 1)
    child = profile.delegate("20261129_101600_bbbbbb", 2)
    profile.say("user", "the delegate's", 3, child)
    begin(profile, 4, ("c1", "terminal", run("the delegate's")), session_id=child)
    assert (found(profile).requests, found(profile).calls) == (("mine",), ())


def test_a_session_that_was_not_seen_since_the_agent_began_is_not_the_current_one(profile: Profile) -> None:
    profile.say("user", "of old", 1)
    assert digest(profile.folder, "swarm1", since=moment(60)) == Digest()


def test_a_profile_without_a_database_has_nothing_to_say(tmp_path: Path) -> None:
    assert digest(tmp_path, "swarm1", since=None) == Digest()


@pytest.mark.parametrize("sample", ["not_a_db.db", "truncated.db", "zero.db"])
def test_a_database_that_cannot_be_read_is_an_error(tmp_path: Path, sample: str) -> None:
    with pytest.raises(ContextUnreadable):
        digest(copied(sample, tmp_path), "swarm1", since=None)


@pytest.mark.parametrize("column", ["tool_calls", "tool_call_id", "active"])
def test_a_database_of_an_older_hermes_is_read_as_far_as_it_goes(tmp_path: Path, column: str) -> None:
    made = Profile(tmp_path, without=[f"messages.{column}"])
    made.session()
    made.say("user", "a request", 1)
    made.say("assistant", "an answer", 2)
    assert (found(made).requests, found(made).last_words) == (("a request",), "an answer")


def test_a_real_session_shows_its_calls(tmp_path: Path) -> None:
    real = digest(copied("live_15turns.db", tmp_path), "swarm1", since=None)
    assert {call.name for call in real.calls} == {"read_file", "search_files", "terminal"}
    assert all(call.outcome is not None and call.files == () for call in real.calls)
    assert len(real.requests) == 15
    assert real.last_words


def test_a_real_session_that_was_renewed_begins_with_our_own_words(tmp_path: Path) -> None:
    real = digest(copied("renewals_x3.db", tmp_path), "swarm1", since=None)
    assert [request.partition("\n")[0] for request in real.requests] == ["RESUME_AFTER_HANDOFF"]
    assert [(call.name, call.files) for call in real.calls] == [("read_file", ())] * len(real.calls)
