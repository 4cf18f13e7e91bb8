from __future__ import annotations

import json
from pathlib import Path

import pytest

from lifecycle.agents.hermes.past import BATCH, SAID, past_messages, past_sessions
from tests.lifecycle.hermes.hermes_profile import EPOCH, MAIN, SUMMARY, Profile, copied

OTHER = "20261130_101010_bbbbbb"


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    profile = Profile(tmp_path / "swarm1")
    profile.session()
    return profile


def past(profile: Profile, session_id: str = MAIN) -> list[str]:
    """The texts of the past rows of one session."""
    found: list[str] = []
    for session in past_sessions(profile.folder, "swarm1"):
        if session.session_id != session_id:
            continue
        rows = past_messages(profile.folder, "swarm1", session, after_row=0)
        while rows:
            found += [row.text for row in rows if row.text]
            rows = past_messages(profile.folder, "swarm1", session, after_row=rows[-1].row_id)
    return found


def test_what_is_in_the_context_is_not_past(profile: Profile) -> None:
    profile.say("user", "count the seeds", 1)
    profile.say("assistant", "three", 2)
    assert past_sessions(profile.folder, "swarm1") == ()


def test_what_was_compacted_away_is_past_and_what_was_undone_is_not(profile: Profile) -> None:
    profile.say("user", "count the seeds", 1)
    profile.say("user", "no, never mind", 2, active=0, compacted=0)
    profile.compact(3, [("user", f"{SUMMARY} It counted."), ("user", "count the seeds")])
    assert past(profile) == ["count the seeds"]


def test_a_session_that_is_over_is_past_as_a_whole_but_its_undone_rows(profile: Profile) -> None:
    profile.say("user", "count the seeds", 1)
    profile.say("user", "no, never mind", 2, active=0, compacted=0)
    profile.run("UPDATE sessions SET ended_at = ?", EPOCH + 5)
    profile.session(OTHER, 10)
    profile.say("user", "water the seeds", 11, OTHER)
    assert past(profile) == ["count the seeds"]
    assert past(profile, OTHER) == []


def test_a_session_that_a_killed_agent_left_open_is_over_when_another_one_is_current(profile: Profile) -> None:
    profile.say("user", "count the seeds", 1)
    profile.session(OTHER, 10)
    profile.say("user", "water the seeds", 11, OTHER)
    assert past(profile) == ["count the seeds"]


def test_a_session_that_goes_on_after_its_end_is_marked_anew(profile: Profile) -> None:
    profile.say("user", "count the seeds", 1)
    profile.run("UPDATE sessions SET ended_at = ?", EPOCH + 5)
    profile.session(OTHER, 10)
    profile.say("user", "water the seeds", 11, OTHER)
    (before,) = past_sessions(profile.folder, "swarm1")
    profile.run("UPDATE sessions SET ended_at = ? WHERE id = ?", EPOCH + 20, MAIN)
    (after,) = past_sessions(profile.folder, "swarm1")
    assert before.mark != after.mark


def test_delegates_and_background_turns_are_nobodys_past(profile: Profile) -> None:
    profile.say("user", "count the seeds", 1)
    profile.say("user", "sub", 2, profile.delegate("20261129_101100_cccccc", 2))
    profile.say("user", "bg", 3, profile.session("bg_101010_aaaaaa", 3))
    assert past_sessions(profile.folder, "swarm1") == ()


def test_calls_and_results_are_kept_and_what_afresh_typed_is_not(profile: Profile) -> None:
    call = [{"id": "c1", "function": {"name": "terminal", "arguments": '{"command": "pytest -q"}'}}]
    profile.say("user", "CONTEXT_HANDOFF_REQUIRED\nWorker: swarm1", 1)
    profile.say("assistant", "", 2, tool_calls=json.dumps(call), finish_reason="tool_calls")
    profile.say("tool", "2 failed, exit 1", 3, tool_call_id="c1")
    profile.say("assistant", "\0json:" + json.dumps([{"type": "image_url"}, {"type": "text", "text": "a red plot"}]), 4)
    profile.compact(5, [])
    assert past(profile) == ['terminal {"command": "pytest -q"}', "2 failed, exit 1", "a red plot"]


def test_long_rows_are_cut_and_many_rows_come_in_batches(profile: Profile) -> None:
    profile.say("user", "x" * 100_000, 1)
    rows = [(MAIN, "tool", f"row {number}", EPOCH + number) for number in range(BATCH + 2)]
    for row in rows[:3]:
        profile.run("INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)", *row)
    profile.run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
        "INSERT INTO messages (session_id, role, content, timestamp) SELECT ?, 'tool', 'row ' || i, ? + i FROM n",
        BATCH,
        MAIN,
        EPOCH,
    )
    profile.compact(5, [])
    found = past(profile)
    assert len(found) == BATCH + 4
    assert len(found[0]) < sum(SAID) + 100


@pytest.mark.parametrize("without", [["messages.active", "messages.compacted"], ["sessions.ended_at"]])
def test_an_older_schema_is_read_too(tmp_path: Path, without: list[str]) -> None:
    profile = Profile(tmp_path / "swarm1", without=without)
    profile.session()
    profile.say("user", "count the seeds", 1)
    profile.session(OTHER, 10)
    profile.say("user", "water the seeds", 11, OTHER)
    assert past(profile) == ["count the seeds"]


def test_a_real_rotation_and_a_real_compaction_are_read(tmp_path: Path) -> None:
    for sample in ("compress_in_place.db", "compress_rotated.db"):
        folder = copied(sample, tmp_path / sample)
        sessions = past_sessions(folder, "swarm1")
        assert any(past_messages(folder, "swarm1", session, after_row=0) for session in sessions), sample


def test_a_profile_without_sessions_has_no_past(tmp_path: Path) -> None:
    assert past_sessions(tmp_path, "swarm1") == ()
