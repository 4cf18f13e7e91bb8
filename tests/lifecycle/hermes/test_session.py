from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lifecycle.agents.hermes.reading import ContextReader
from lifecycle.agents.hermes.transcript import find_sent, newest_row
from lifecycle.agents.hermes.turn import turn
from lifecycle.errors import ContextUnreadable
from lifecycle.policy import Policy
from lifecycle.reading import ContextState, Source
from tests.lifecycle.hermes.hermes_profile import MAIN, NOW, SAMPLES, SUMMARY, Profile, copied, moment, read
from tests.privileges import stopped_by_modes, why_modes_stop_nobody


@pytest.mark.parametrize(
    ("sample", "session", "is_open"),
    [
        ("live_15turns.db", "20261130_114908_e0ac5d", True),
        ("live_after_rotation.db", "20261130_115117_a9cd84", True),
        ("live_resumed_older_session.db", "20261130_115404_c88ddf", True),
        ("renewals_x3.db", "20261130_121020_5b481b", True),
        ("old_schema_no_active.db", "s1", True),
        ("15turns_30calls.db", "20261130_114908_e0ac5d", False),
        ("compress_in_place.db", "20261130_115008_4f9116", False),
        ("compress_rotated.db", "20261130_115117_a9cd84", False),
        ("lifecycle_delegate_branch_new_resume.db", "20261130_115404_c88ddf", False),
    ],
)
def test_each_sample_shows_its_current_session(tmp_path: Path, sample: str, session: str, is_open: bool) -> None:
    reading = read(copied(sample, tmp_path))
    assert (reading.session_id, reading.session_open, reading.error) == (session, is_open, None)


def test_a_database_that_lives_in_its_wal_is_read(tmp_path: Path) -> None:
    for file in (SAMPLES / "wal_only_in_wal").iterdir():
        shutil.copy(file, tmp_path)
    reading = read(tmp_path)
    assert (reading.error, reading.newest_row) == (None, 1)
    state = turn(tmp_path, "swarm1", since=None, now=NOW)
    assert (state.newest_row, state.answered) == (1, False)


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        ("zero.db", "is empty (zero bytes)"),
        ("not_a_db.db", "is not a database"),
        ("truncated.db", "is damaged"),
    ],
)
def test_an_unreadable_sample_is_unknown_and_says_why(tmp_path: Path, sample: str, reason: str) -> None:
    reading = read(copied(sample, tmp_path))
    assert (reading.source, reading.tokens, reading.state(Policy())) == (Source.UNKNOWN, None, ContextState.UNKNOWN)
    assert str(tmp_path / "state.db") in str(reading.error)
    assert reason in str(reading.error)
    with pytest.raises(ContextUnreadable, match=str(tmp_path)):
        turn(tmp_path, "swarm1", since=None, now=NOW)


def test_a_missing_profile_is_unknown_but_a_missing_database_is_no_session(tmp_path: Path) -> None:
    missing = read(tmp_path / "nobody")
    assert missing.state(Policy()) is ContextState.UNKNOWN
    assert "nobody" in str(missing.error)
    fresh = read(tmp_path)
    assert (fresh.error, fresh.session_id, fresh.state(Policy())) == (None, None, ContextState.NO_SESSION)
    assert newest_row(tmp_path, "swarm1") == 0
    assert find_sent(tmp_path, "swarm1", "hello", after_row=0) is None
    assert turn(tmp_path, "swarm1", since=None, now=NOW).session_id is None


def test_a_folder_or_a_foreign_database_in_its_place_is_unknown(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    (folder / "state.db").mkdir(parents=True)
    assert "is a folder" in str(read(folder).error)
    foreign = tmp_path / "two"
    foreign.mkdir()
    connection = sqlite3.connect(foreign / "state.db")
    connection.execute("CREATE TABLE things (id)")
    connection.close()
    assert "tables are missing" in str(read(foreign).error)


@pytest.mark.skipif(bool(why_modes_stop_nobody()), reason=why_modes_stop_nobody())
def test_a_database_without_permission_is_unknown(tmp_path: Path) -> None:
    profile = copied("live_15turns.db", tmp_path / "profile")
    profile.joinpath("state.db").chmod(0)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; from datetime import datetime, UTC\n"
        "from lifecycle.agents.hermes.database import open_state\n"
        "from lifecycle.errors import ContextUnreadable\n"
        "try:\n  with open_state(Path(sys.argv[2]), 'swarm1'): print('opened')\n"
        "except ContextUnreadable as error: print(error.detail)"
    )
    command = stopped_by_modes([sys.executable, "-c", code, str(Path.cwd()), str(profile)])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "no permission" in done.stdout, done.stderr


def test_a_path_with_special_characters_is_opened(tmp_path: Path) -> None:
    for name in ("with space", "50%25?mode=rwc#x", "äöü 中文", "a&b=c"):
        assert read(copied("live_15turns.db", tmp_path / name)).session_id is not None
        assert {file.name for file in (tmp_path / name).iterdir()} >= {"state.db"}
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        ["with space", "50%25?mode=rwc#x", "äöü 中文", "a&b=c"]
    )


def test_w4_a_delegate_a_background_turn_and_cron_never_hide_the_worker(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    profile.session()
    row = profile.say("user", "main work", 5)
    profile.delegate("20261129_101500_dddddd", 100)
    profile.session("bg_101600_eeeeee", 200)
    profile.session("20261129_101700_ffffff", 300, source="cron")
    profile.session("20261129_101800_gggggg", 400, source="telegram")
    for session in ("20261129_101500_dddddd", "bg_101600_eeeeee", "20261129_101700_ffffff"):
        profile.say("user", "other work", 500, session)
    reading = read(tmp_path)
    assert (reading.session_id, reading.newest_row) == (MAIN, row)


def test_a_session_not_seen_since_the_process_start_is_not_current(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    profile.session()
    profile.say("user", "before a kill -9", 5)
    assert read(tmp_path, since=moment(4)).session_id == MAIN
    assert read(tmp_path, since=moment(6)).state(Policy()) is ContextState.NO_SESSION
    profile.say("user", "taken up again by --resume", 7)
    assert read(tmp_path, since=moment(6)).session_id == MAIN


def test_an_ended_session_is_shown_ended_but_never_for_a_live_process(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    profile.session(ended_at=moment(50).timestamp(), end_reason="new_session")
    profile.say("user", "hi", 5)
    reading = read(tmp_path)
    assert (reading.session_id, reading.session_open) == (MAIN, False)
    assert read(tmp_path, since=moment(0)).session_id is None


def test_a_session_closed_by_a_compaction_without_a_child_is_still_the_workers(tmp_path: Path) -> None:
    # hermes-agent #80337, and every poll that falls between the two writes.
    profile = Profile(tmp_path)
    profile.session(ended_at=moment(50).timestamp(), end_reason="compression")
    profile.say("user", "hi", 5)
    reading = read(tmp_path, since=moment(0))
    assert (reading.session_id, reading.session_open) == (MAIN, False)


def test_a_rotation_chain_is_followed_past_a_stale_sibling(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    profile.session(ended_at=moment(50).timestamp(), end_reason="compression")
    profile.say("user", "hi", 49)
    branch = json.dumps({"_branched_from": MAIN})
    for name, at, columns in (
        ("20261129_101100_bbbbbb", 51, {"ended_at": moment(60).timestamp(), "end_reason": "compression"}),
        ("20261129_101200_cccccc", 90, {"ended_at": moment(91).timestamp(), "end_reason": "ws_orphan_reap"}),
        ("20261129_101300_dddddd", 95, {"model_config": branch, "ended_at": moment(96).timestamp()}),
    ):
        profile.session(name, at, parent_session_id=MAIN, **columns)
    last = profile.session("20261129_101400_eeeeee", 61, parent_session_id="20261129_101100_bbbbbb")
    profile.say("user", SUMMARY, 61, last)
    reading = read(tmp_path)
    assert (reading.session_id, reading.session_open, reading.compactions) == (last, True, 2)


def test_a_branch_is_a_session_of_its_own_that_was_never_compacted(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    profile.session(ended_at=moment(50).timestamp(), end_reason="branched")
    branch = json.dumps({"_branched_from": MAIN})
    profile.session("20261129_101100_bbbbbb", 51, parent_session_id=MAIN, model_config=branch)
    reading = read(tmp_path)
    assert (reading.session_id, reading.compactions) == ("20261129_101100_bbbbbb", 0)


@pytest.mark.parametrize("config", ["not json", '["a"]', "null", '{"_delegate_from": ""}', ""])
def test_a_broken_model_config_makes_no_delegate(tmp_path: Path, config: str) -> None:
    profile = Profile(tmp_path)
    profile.session(model_config=config)
    assert read(tmp_path).session_id == MAIN


@pytest.mark.parametrize(
    ("sample", "compactions"),
    [("live_15turns.db", 0), ("compress_in_place.db", 2), ("compress_rotated.db", 2), ("live_after_rotation.db", 2)],
)
def test_compactions_are_counted_in_place_and_through_rotation(tmp_path: Path, sample: str, compactions: int) -> None:
    assert read(copied(sample, tmp_path)).compactions == compactions


def test_each_compaction_counts_once_however_many_rows_it_archived(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    profile.session()
    for number in range(1, 5):
        profile.say("user", "work", number * 10)
        profile.say("assistant", "done", number * 10 + 1)
        profile.compact(number * 10 + 5, [("user", "first"), ("assistant", SUMMARY), ("user", "work")])
        assert read(tmp_path).compactions == number
    legacy = "[CONTEXT SUMMARY]: an older release's"
    merged = f"[PRIOR CONTEXT — for reference only; not a new message]\nwork\n\n{SUMMARY}"
    profile.compact(60, [("user", legacy)])
    profile.compact(70, [("user", merged)])
    assert read(tmp_path).compactions == 6
    assert read(tmp_path).state(Policy(max_compactions=5)) is ContextState.RENEW_REQUIRED


@pytest.mark.parametrize(
    ("sample", "total"),
    [("live_15turns.db", 761_416), ("compress_in_place.db", 625_801), ("old_schema_no_active.db", 15)],
)
def test_the_session_total_is_the_reference_systems(tmp_path: Path, sample: str, total: int) -> None:
    assert read(copied(sample, tmp_path)).session_total == total


def test_w3_the_session_total_falls_back_to_token_counts(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    profile.session(input_tokens=6, output_tokens=13)
    profile.say("user", "x", 1, token_count=400)
    profile.say("assistant", "y", 2, token_count=100)
    assert read(tmp_path).session_total == 500


def test_every_column_that_an_old_schema_lacks_is_done_without(tmp_path: Path) -> None:
    optional = [
        "sessions.api_call_count", "sessions.cache_read_tokens", "sessions.cache_write_tokens",
        "sessions.reasoning_tokens", "sessions.model_config", "sessions.end_reason", "sessions.system_prompt",
        "sessions.model", "messages.compacted", "messages.reasoning", "messages.reasoning_content",
        "messages.reasoning_details", "messages.codex_reasoning_items", "messages.api_content",
        "messages.token_count", "messages.finish_reason", "messages.tool_calls", "messages.active",
    ]  # fmt: skip
    whole = read_one(tmp_path / "whole", [])
    for number, column in enumerate(optional):
        assert read_one(tmp_path / str(number), [column]) == whole, column
    assert read_one(tmp_path / "none", optional) == whole


def read_one(folder: Path, without: list[str]) -> tuple[str | None, int | None, str | None, bool]:
    profile = Profile(folder, without=without)
    profile.session()
    profile.say("user", "a question", 1)
    reading = read(folder)
    return reading.session_id, reading.tokens, reading.error, turn(folder, "swarm1", since=None, now=NOW).answered


def test_rows_with_a_null_active_are_live(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    profile.run("CREATE TABLE copy AS SELECT * FROM messages")
    profile.run("DROP TABLE messages")
    profile.run("ALTER TABLE copy RENAME TO messages")
    profile.session()
    profile.say("user", "words " * 400, 1, id=1, active=None)
    assert (read(tmp_path, overhead=0).tokens or 0) > 400
    assert find_sent(tmp_path, "swarm1", "words " * 400, after_row=0) is not None


def test_bytes_that_are_no_text_do_not_stop_a_reading(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    profile.session()
    profile.run(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'tool', CAST(x'ff00fe' AS TEXT), 1)",
        MAIN,
    )
    profile.run("INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'tool', x'ff00fe', 2)", MAIN)
    reading = ContextReader().read(tmp_path, "swarm1", since=None, now=datetime.now(UTC))
    assert (reading.error, reading.source) == (None, Source.COUNTED)
