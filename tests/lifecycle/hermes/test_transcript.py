from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from lifecycle.agents.hermes.transcript import find_reply, find_sent, newest_row
from lifecycle.agents.hermes.turn import turn
from lifecycle.transcript import Reply, SentRow, TurnState
from tests.lifecycle.hermes.hermes_profile import MAIN, NOW, SUMMARY, Profile, copied, moment

REQUEST = "CONTEXT_HANDOFF_REQUIRED\nrenewal r-1\nwrite it down"
REPLY = "STATE: HANDOFF\nNEXT_ACTION: go on"
OTHER = "20261129_101500_dddddd"


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    made = Profile(tmp_path)
    made.session()
    made.say("user", "first", 1)
    made.say("assistant", "answer to the first", 2)
    return made


def sent(profile: Profile, text: str = REQUEST, after: int = 0) -> SentRow:
    found = find_sent(profile.folder, "swarm1", text, after_row=after)
    assert found is not None
    return found


def reply(profile: Profile, row: SentRow, text: str = REQUEST) -> Reply | None:
    return find_reply(profile.folder, "swarm1", row, text)


def words(profile: Profile, row: SentRow) -> str | None:
    found = reply(profile, row)
    return found.text if found else None


def state_of(profile: Profile, since: datetime | None = None) -> TurnState:
    return turn(profile.folder, "swarm1", since=since, now=NOW)


def test_our_text_is_found_exact_with_its_ends_stripped(profile: Profile) -> None:
    row = profile.say("user", f"\n{REQUEST}  ", 10)
    assert sent(profile) == SentRow(session_id=MAIN, row_id=row, at=moment(10))
    assert sent(profile, f"  {REQUEST}\n").row_id == row


@pytest.mark.parametrize(
    "near", [REQUEST.replace("\n", " "), REQUEST[:-1], f"{REQUEST} x", REQUEST.lower(), REQUEST.splitlines()[0], ""]
)
def test_a_torn_or_altered_text_is_not_ours(profile: Profile, near: str) -> None:
    profile.say("user", near, 10)
    assert find_sent(profile.folder, "swarm1", REQUEST, after_row=0) is None


def test_our_text_counts_only_behind_the_given_row_and_the_newest_is_taken(profile: Profile) -> None:
    old = profile.say("user", REQUEST, 10)
    assert newest_row(profile.folder, "swarm1") == old
    assert find_sent(profile.folder, "swarm1", REQUEST, after_row=old) is None
    profile.say("user", REQUEST, 11)
    newest = profile.say("user", REQUEST, 12)
    assert sent(profile, after=old).row_id == newest


@pytest.mark.parametrize("role", ["assistant", "tool", "system"])
def test_our_text_in_another_role_was_not_delivered(profile: Profile, role: str) -> None:
    profile.say(role, REQUEST, 10)
    assert find_sent(profile.folder, "swarm1", REQUEST, after_row=0) is None


@pytest.mark.parametrize("compacted", [0, 1])
def test_our_text_in_an_undone_or_archived_row_is_not_there(profile: Profile, compacted: int) -> None:
    profile.say("user", REQUEST, 10, active=0, compacted=compacted)
    assert find_sent(profile.folder, "swarm1", REQUEST, after_row=0) is None


def test_a_delegate_and_a_background_turn_never_received_or_answered_us(profile: Profile) -> None:
    profile.delegate(OTHER, 5)
    profile.session("bg_101600_eeeeee", 6)
    profile.say("user", REQUEST, 10, OTHER)
    profile.say("user", REQUEST, 10, "bg_101600_eeeeee")
    assert find_sent(profile.folder, "swarm1", REQUEST, after_row=0) is None
    profile.say("user", REQUEST, 11)
    row = sent(profile)
    profile.say("assistant", REPLY, 12, OTHER)
    profile.say("assistant", REPLY, 12, "bg_101600_eeeeee")
    assert reply(profile, row) is None


def test_the_reply_is_the_last_closed_text_before_the_next_user_row(profile: Profile) -> None:
    profile.say("user", REQUEST, 10)
    row = sent(profile)
    assert reply(profile, row) is None
    profile.say("assistant", "I write the file first.", 11, finish_reason="tool_calls", tool_calls="[{}]")
    profile.say("tool", "written", 12)
    assert reply(profile, row) is None
    profile.say("assistant", "", 13)
    assert reply(profile, row) is None
    profile.say("assistant", "first words", 14)
    last = profile.say("assistant", REPLY, 15)
    assert reply(profile, row) == Reply(session_id=MAIN, row_id=last, at=moment(15), text=REPLY)
    profile.say("user", "and now something else", 16)
    profile.say("assistant", "something else", 17)
    assert words(profile, row) == REPLY


def test_a_later_user_row_ends_the_wait_for_an_answer(profile: Profile) -> None:
    profile.say("user", REQUEST, 10)
    profile.say("user", "never mind, look here", 11)
    profile.say("assistant", REPLY, 12)
    assert reply(profile, sent(profile)) is None


def test_an_older_answer_is_never_ours(profile: Profile) -> None:
    profile.say("user", "an earlier request", 8)
    profile.say("assistant", REPLY, 9)
    profile.say("user", REQUEST, 10)
    assert reply(profile, sent(profile)) is None


@pytest.mark.parametrize(
    "own",
    [
        "[ASYNC DELEGATION BATCH COMPLETE — deleg_1]\nA background fan-out of 1 subagent(s)",
        "[ASYNC DELEGATION COMPLETE — deleg_1]",
        "[IMPORTANT: Background process proc_1 completed",
        "received signal 1",
    ],
)
def test_hermess_own_user_rows_do_not_end_the_wait(profile: Profile, own: str) -> None:
    profile.say("user", REQUEST, 10)
    profile.say("user", own, 11)
    profile.say("assistant", REPLY, 12)
    assert words(profile, sent(profile)) == REPLY


def test_what_a_dying_agent_says_after_its_answer_is_not_the_answer(profile: Profile) -> None:
    profile.say("user", REQUEST, 10)
    profile.say("assistant", REPLY, 11)
    profile.say("user", "received signal 15", 12)
    profile.say("assistant", "I see a signal.", 13)
    assert words(profile, sent(profile)) == REPLY


def test_content_in_parts_is_read_as_text(profile: Profile) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    profile.say("user", "\0json:" + json.dumps([{"type": "text", "text": REQUEST}, picture]), 10)
    profile.say("assistant", "\0json:" + json.dumps([{"type": "text", "text": REPLY}]), 11)
    assert words(profile, sent(profile)) == REPLY


def test_an_answer_with_open_tool_calls_is_open_whatever_its_finish_reason(profile: Profile) -> None:
    profile.say("user", REQUEST, 10)
    profile.say("assistant", REPLY, 11, finish_reason="stop", tool_calls='[{"id": 1}]')
    assert reply(profile, sent(profile)) is None


def test_the_row_is_followed_through_a_compaction_before_its_answer(profile: Profile) -> None:
    first = profile.say("user", REQUEST, 10)
    row = sent(profile)
    profile.say("assistant", "", 11, finish_reason="tool_calls", tool_calls="[{}]")
    profile.compact(
        12,
        [
            ("user", "first"),
            ("assistant", SUMMARY),
            ("user", "last but one"),
            ("assistant", "an older answer"),
            ("user", REQUEST),
        ],
    )
    assert reply(profile, row) is None
    assert find_sent(profile.folder, "swarm1", REQUEST, after_row=first) is not None
    profile.say("assistant", REPLY, 20)
    assert words(profile, row) == REPLY


def test_a_second_compaction_in_the_same_turn_is_followed_too(profile: Profile) -> None:
    profile.say("user", REQUEST, 10)
    row = sent(profile)
    for at in (12, 13):
        profile.compact(at, [("user", "first"), ("assistant", SUMMARY), ("user", REQUEST)])
    profile.compact(14, [("user", SUMMARY), ("user", REQUEST)])
    profile.say("assistant", REPLY, 20)
    assert words(profile, row) == REPLY


def test_an_answer_that_was_archived_with_the_row_is_still_its_answer(profile: Profile) -> None:
    profile.say("user", REQUEST, 10)
    row = sent(profile)
    profile.say("assistant", REPLY, 11)
    profile.compact(12, [("assistant", SUMMARY), ("user", "a later question"), ("assistant", "a later answer")])
    assert words(profile, row) == REPLY


@pytest.mark.parametrize("resumed", [False, True], ids=["stamped anew", "with the stamps of a resumed session"])
def test_a_first_row_that_is_kept_at_the_head_does_not_take_a_later_turns_answer(tmp_path: Path, resumed: bool) -> None:
    profile = Profile(tmp_path)
    profile.session()
    profile.say("user", REQUEST, 10)
    row = sent(profile)
    profile.say("user", "never mind", 11)
    profile.say("assistant", "a later answer", 12)
    kept = [("user", REQUEST), ("assistant", SUMMARY), ("assistant", "a later answer")]
    if not resumed:
        profile.compact(13, kept)
    else:
        profile.run("UPDATE messages SET active = 0, compacted = 1")
        for (role, text), at in zip(kept, (10, 13, 12), strict=True):
            profile.say(role, text, at)
    assert reply(profile, row) is None


def test_a_first_row_that_is_kept_at_the_head_is_answered_behind_the_summary(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    profile.session()
    profile.say("user", REQUEST, 10)
    row = sent(profile)
    profile.say("assistant", "", 11, finish_reason="tool_calls", tool_calls="[{}]")
    profile.say("tool", "much", 12)
    profile.compact(13, [("user", REQUEST), ("assistant", SUMMARY)])
    profile.say("assistant", REPLY, 20)
    assert words(profile, row) == REPLY


def test_a_summary_merged_into_our_row_does_not_lose_it(profile: Profile) -> None:
    profile.say("user", REQUEST, 10)
    row = sent(profile)
    merged = (
        f"[PRIOR CONTEXT — for reference only; not a new message]\n{REQUEST}\n\n"
        f"[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n\n{SUMMARY}"
    )
    profile.compact(12, [("user", "first"), ("assistant", "answer to the first"), ("user", merged)])
    profile.say("assistant", REPLY, 20)
    assert words(profile, row) == REPLY


def test_rows_of_a_resumed_session_keep_their_old_time_stamps_and_are_followed(profile: Profile) -> None:
    profile.say("user", REQUEST, 10)
    row = sent(profile)
    profile.run("UPDATE messages SET active = 0, compacted = 1")
    profile.say("user", "first", 1)
    profile.say("assistant", SUMMARY, 12)
    profile.say("user", REQUEST, 10)
    profile.say("assistant", REPLY, 20)
    assert words(profile, row) == REPLY


def test_the_row_is_followed_into_the_session_that_a_rotation_went_on_in(profile: Profile) -> None:
    profile.say("user", REQUEST, 10)
    row = sent(profile)
    profile.run("UPDATE sessions SET ended_at = ?, end_reason = 'compression'", moment(12).timestamp())
    profile.session(OTHER, 12, parent_session_id=MAIN)
    for number, (role, text) in enumerate([("user", "first"), ("assistant", SUMMARY), ("user", REQUEST)]):
        profile.say(role, text, 12 + number * 1e-6, OTHER)
    assert sent(profile).session_id == OTHER
    profile.say("assistant", REPLY, 20, OTHER)
    found = reply(profile, row)
    assert found is not None
    assert (found.session_id, found.text) == (OTHER, REPLY)


def test_a_branch_of_the_conversation_does_not_answer_for_it(profile: Profile) -> None:
    profile.say("user", REQUEST, 10)
    row = sent(profile)
    profile.run("UPDATE sessions SET ended_at = ?, end_reason = 'branched'", moment(12).timestamp())
    profile.session(OTHER, 12, parent_session_id=MAIN, model_config=json.dumps({"_branched_from": MAIN}))
    profile.say("user", REQUEST, 13, OTHER)
    profile.say("assistant", REPLY, 14, OTHER)
    assert reply(profile, row) is None


def test_an_undone_row_has_no_answer(profile: Profile) -> None:
    profile.say("user", REQUEST, 10)
    row = sent(profile)
    profile.say("assistant", REPLY, 11)
    profile.run("UPDATE messages SET active = 0 WHERE id >= ?", row.row_id)
    assert reply(profile, row) is None


@pytest.mark.parametrize("sample", ["compress_in_place.db", "compress_rotated.db"])
def test_every_message_of_a_compacted_sample_finds_its_own_answer(tmp_path: Path, sample: str) -> None:
    profile = copied(sample, tmp_path)
    with closing(sqlite3.connect(f"file:{tmp_path / 'state.db'}?mode=ro", uri=True)) as connection:
        asked = connection.execute(
            "SELECT content, session_id, min(id), timestamp FROM messages WHERE role = 'user' GROUP BY content"
        ).fetchall()
    assert len(asked) == 18
    for text, session, row_id, at in asked:
        row = SentRow(session_id=session, row_id=row_id, at=datetime.fromtimestamp(at, NOW.tzinfo))
        found = find_reply(profile, "swarm1", row, text)
        assert found is not None, text
        assert found.row_id > row_id
        begins = "Noted (" if text in ("after compress", "post auto") else "apple pear"
        assert found.text.startswith(begins)


def test_each_handoff_of_the_renewals_sample_is_found_with_its_answer(tmp_path: Path) -> None:
    profile = copied("renewals_x3.db", tmp_path)
    with closing(sqlite3.connect(f"file:{tmp_path / 'state.db'}?mode=ro", uri=True)) as connection:
        asked = connection.execute("SELECT id, content FROM messages WHERE role = 'user' AND id > 4").fetchall()
    kinds = {"CONTEXT_HANDOFF_REQUIRED": "STATE: HANDOFF", "RESUME_AFTER_HANDOFF": "STATE: IN_PROGRESS"}
    assert len(asked) == 6
    for row_id, text in asked:
        row = find_sent(profile, "swarm1", text, after_row=row_id - 1)
        assert row is not None
        found = find_reply(profile, "swarm1", row, text)
        assert found is not None
        assert found.text.startswith(kinds[text.splitlines()[0]])


def test_a_turn_is_answered_only_by_a_closed_row_behind_the_newest_user_row(profile: Profile) -> None:
    assert state_of(profile).answered
    asked = profile.say("user", "more", 10)
    state = state_of(profile)
    assert (state.answered, state.newest_row, state.last_role) == (False, asked, "user")
    profile.say("assistant", "calling", 11, finish_reason="tool_calls", tool_calls="[{}]")
    profile.say("tool", "output", 12)
    assert not state_of(profile).answered
    profile.say("assistant", "done", 13)
    state = state_of(profile)
    assert (state.answered, state.newest_at, state.session_id) == (True, moment(13), MAIN)


def test_a_summary_asks_nothing(profile: Profile) -> None:
    profile.compact(20, [("user", "first"), ("assistant", "answer to the first"), ("user", SUMMARY)])
    assert state_of(profile).answered


def test_the_newest_row_of_a_turn_is_a_live_one(profile: Profile) -> None:
    newest = state_of(profile).newest_row
    profile.say("user", "undone", 30, active=0)
    assert state_of(profile).newest_row == newest


def test_q3_a_compaction_lock_holds_until_it_expires(profile: Profile) -> None:
    add = "INSERT OR REPLACE INTO compression_locks VALUES (?, 'pid-999999', 0, ?)"
    now = NOW.timestamp()
    profile.run(add, MAIN, now + 300)
    assert state_of(profile).compacting
    profile.run(add, MAIN, now - 1)
    assert not state_of(profile).compacting
    profile.run(add, OTHER, now + 300)
    assert not state_of(profile).compacting


def test_an_open_delegate_of_this_process_is_seen(profile: Profile) -> None:
    profile.delegate(OTHER, 30)
    assert state_of(profile).delegating
    profile.say("user", "work", 60)
    assert not state_of(profile, since=moment(40)).delegating
    profile.run("UPDATE sessions SET ended_at = 1 WHERE id = ?", OTHER)
    assert not state_of(profile).delegating


def test_a_running_delegation_is_seen_until_it_ends(profile: Profile) -> None:
    profile.run(
        "INSERT INTO async_delegations (delegation_id, origin_session, state, dispatched_at, updated_at) "
        "VALUES ('d', ?, 'running', ?, 0)",
        MAIN,
        moment(30).timestamp(),
    )
    assert state_of(profile).delegating
    profile.say("user", "work", 60)
    assert not state_of(profile, since=moment(40)).delegating
    profile.run("UPDATE async_delegations SET state = 'completed'")
    assert not state_of(profile).delegating


def test_a_background_turn_is_seen_while_it_works_and_not_for_ever(profile: Profile) -> None:
    name = profile.session("bg_101600_eeeeee", 900)
    profile.say("user", "look it up", 900, name)
    assert state_of(profile).delegating
    profile.run("UPDATE messages SET timestamp = ? WHERE session_id = ?", moment(100).timestamp(), name)
    profile.run("UPDATE sessions SET started_at = ? WHERE id = ?", moment(100).timestamp(), name)
    assert not state_of(profile).delegating
    profile.say("user", "again", 950, name)
    profile.say("assistant", "found", 960, name)
    assert not state_of(profile).delegating
