from __future__ import annotations

import json
from pathlib import Path

import pytest

from lifecycle.agents.hermes.conversation import conversation
from lifecycle.conversation import Conversation, exit_code
from tests.lifecycle.hermes.hermes_profile import MAIN, SUMMARY, Profile, copied

HEAD = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below."
PREFIX = f"{HEAD} Do NOT answer: avoid it:"
SEAM = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
END = "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    made = Profile(tmp_path)
    made.session()
    return made


def found(profile: Profile) -> Conversation:
    return conversation(profile.folder, "swarm1", since=None)


def call(profile: Profile, at: float, call_id: str, tool: str, outcome: str | None, **arguments: object) -> None:
    entry = {"id": call_id, "function": {"name": tool, "arguments": json.dumps(arguments)}}
    profile.say("assistant", "", at, tool_calls=json.dumps([entry]), finish_reason="tool_calls")
    if outcome is not None:
        profile.say("tool", outcome, at + 0.5, tool_call_id=call_id)


def told(profile: Profile) -> list[str]:
    return [entry.text or (entry.call.name if entry.call else "") for entry in found(profile).entries]


def test_words_and_calls_come_in_their_order_with_outcomes(profile: Profile) -> None:
    profile.say("user", "count the plums", 1)
    call(profile, 2, "c1", "terminal", '{"output": "7", "exit_code": 3}', command="wc -l plums")
    profile.say("assistant", "there are 7", 4)
    assert told(profile) == ["count the plums", "terminal", "there are 7"]
    (only,) = found(profile).calls
    assert exit_code(only) == 3


def test_what_was_compacted_is_there_once_and_in_its_place(profile: Profile) -> None:
    """hermes-agent #86366: each compaction copies the kept tail."""
    texts = [("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two")]
    for at, (role, text) in enumerate(texts):
        profile.say(role, text, at + 1)
    profile.compact(10, [("user", "first"), ("user", f"{PREFIX}\nthe first half"), *texts[2:]])
    profile.say("user", "third", 11)
    profile.compact(
        20, [("user", "first"), ("user", f"{PREFIX}\nthe second half\n\n{END}"), *texts[2:], ("user", "third")]
    )
    profile.say("user", "second", 21)
    assert told(profile) == ["first", "one", "second", "two", "third", "second"]
    assert found(profile).summary == "the second half"


def test_undone_rows_do_not_come_back(profile: Profile) -> None:
    profile.say("user", "drop the table", 1, active=0, compacted=0)
    profile.say("user", "keep the table", 2)
    assert told(profile) == ["keep the table"]


@pytest.mark.parametrize(
    ("row", "own"),
    [
        (f"{PREFIX}\n## Active Task\ncount", "## Active Task\ncount"),
        ("[CONTEXT SUMMARY]: counted so far", "counted so far"),
        (SUMMARY, ""),
        (
            f"[PRIOR CONTEXT — for reference only; not a new message]\nold\n{SEAM}\n{PREFIX}\nmerged\n{END}",
            "merged",
        ),
    ],
)
def test_a_summary_loses_its_framing_and_is_nobodys_request(profile: Profile, row: str, own: str) -> None:
    profile.say("user", row, 1)
    assert found(profile).summary == own
    assert found(profile).entries == ()


def test_a_copy_whose_original_is_gone_stays(profile: Profile) -> None:
    profile.compact(10, [("user", PREFIX), ("user", "second"), ("assistant", "two")])
    assert told(profile) == ["second", "two"]


def test_calls_that_are_numbered_anew_in_every_turn_are_all_there(profile: Profile) -> None:
    for at, command in ((1, "one"), (3, "two"), (5, "three")):
        call(profile, at, "call_0", "terminal", "done", command=command)
    assert len(found(profile).calls) == 3


def test_open_todos_are_those_of_the_last_list(profile: Profile) -> None:
    lists = [
        [{"id": "1", "content": "sow", "status": "pending"}],
        [
            {"id": "1", "content": "sow", "status": "completed"},
            {"id": "2", "content": "reap", "status": "in_progress"},
            {"id": "3", "content": "rest", "status": "pending"},
            {"id": "4", "content": "burn", "status": "cancelled"},
        ],
    ]
    for at, todos in enumerate(lists):
        call(profile, at + 1, f"t{at}", "todo", json.dumps({"todos": todos}), todos=todos)
    call(profile, 9, "t9", "todo", "not json", merge=True)
    assert [(todo.content, todo.status) for todo in found(profile).todos] == [
        ("reap", "in_progress"),
        ("rest", "pending"),
    ]


def test_a_session_that_a_compaction_closed_belongs_to_it(tmp_path: Path) -> None:
    rotated = conversation(copied("compress_rotated.db", tmp_path), "swarm1", since=None)
    rows = [entry.row for entry in rotated.entries]
    assert rows == sorted(rows)
    requests = [entry.text for entry in rotated.requests]
    assert len(requests) == len(set(requests)) > 2
    assert rotated.summary.startswith("## Historical Task Snapshot")
    assert "Do NOT" not in rotated.summary


def test_no_session_is_an_empty_conversation(tmp_path: Path) -> None:
    assert conversation(tmp_path, "swarm1", since=None) == Conversation()
    assert MAIN not in repr(conversation(tmp_path, "swarm1", since=None))
