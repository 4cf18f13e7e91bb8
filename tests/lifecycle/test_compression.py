from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lifecycle.agents.hermes.compacting import LONGEST, compact_command, is_compact_command
from lifecycle.agents.hermes.sending import check_sendable
from lifecycle.agents.hermes.turn import turn
from lifecycle.compression import APART, DONE_WITHIN, Compression, asked, is_spent, judged, not_now
from lifecycle.decision import Action
from lifecycle.errors import TextNotSendable
from lifecycle.policy import Policy
from lifecycle.reading import ContextReading, ContextState
from lifecycle.screen import Face
from lifecycle.transcript import TurnState
from tests.lifecycle.hermes.hermes_profile import EPOCH, Profile, copied, moment, read
from tests.lifecycle.test_decision import NOW as DECIDED_AT
from tests.lifecycle.test_decision import Scene, decided_in

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
WATCH: Scene = {"reading.tokens": 300_000, "policy.at_watch": "compress"}


def reading(tokens: int | None, compactions: int = 0, **fields: Any) -> ContextReading:
    given = {"worker_id": "ana", "at": NOW, "session_id": "s1", "tokens": tokens, "compactions": compactions}
    return ContextReading.model_validate({**given, **fields})


def told(tokens: int = 100_000, compactions: int = 0, before: Compression | None = None) -> Compression:
    return asked(before, reading(tokens, compactions), NOW)


def seen(
    memory: Compression, tokens: int | None, compactions: int, at: datetime = LATER, **of_turn: Any
) -> Compression:
    found = judged(memory, reading(tokens, compactions), TurnState.model_validate(of_turn), at)
    assert found is not None
    return found


def test_a_compaction_that_freed_a_tenth_is_no_strike() -> None:
    found = seen(told(), 90_000, 1)
    assert (found.is_judged, found.happened, found.strikes, found.after) == (True, 1, 0, 90_000)


@pytest.mark.parametrize(
    ("tokens", "compactions", "at", "turn"),
    [
        (95_000, 1, LATER, {}),  # freed next to nothing (hermes-agent #53008)
        (130_000, 1, LATER, {}),  # grew: the summary was larger than what it stands for (#23811)
        (40_000, 1, LATER, {"failed_summaries": 1}),
        (100_000, 0, NOW + DONE_WITHIN, {}),  # nothing was compacted at all
    ],
)
def test_a_compaction_without_use_is_a_strike(
    tokens: int, compactions: int, at: datetime, turn: dict[str, Any]
) -> None:
    assert seen(told(), tokens, compactions, at, **turn).strikes == 1


@pytest.mark.parametrize(
    ("tokens", "compactions", "turn"), [(40_000, 1, {"compacting": True}), (None, 1, {}), (99, 0, {})]
)
def test_what_is_under_way_or_cannot_be_read_is_not_judged(
    tokens: int | None, compactions: int, turn: dict[str, Any]
) -> None:
    memory = told()
    assert seen(memory, tokens, compactions, **turn) == memory


def test_what_was_judged_stays_as_it_is() -> None:
    found = seen(told(), 50_000, 1)
    assert seen(found, 99_000, 1) == found


def test_two_strikes_in_one_conversation_are_enough_and_a_new_one_begins_without() -> None:
    first = seen(told(), 99_000, 1)
    second = seen(told(99_000, 1, first), 98_000, 2)
    assert not is_spent(first, reading(99_000))
    assert is_spent(second, reading(98_000))
    assert not is_spent(second, reading(98_000, session_id="s2"))
    assert asked(second, reading(50_000, session_id="s2"), NOW).strikes == 0


def test_a_rotation_is_the_same_conversation() -> None:
    rotated = reading(98_000, 2, session_id="s2", conversation_id="s1")
    second = judged(told(99_000, 1, seen(told(), 99_000, 1)), rotated, TurnState(), LATER)
    assert is_spent(second, rotated)


def test_a_compaction_that_was_asked_for_does_not_count_against_the_worker() -> None:
    policy = Policy(max_compactions=1)
    pending, done = told(), seen(told(), 50_000, 1)
    for memory in (pending, done):
        found = reading(50_000, 2)
        counted = found.model_copy(update={"asked_compactions": memory.happened_by(found)})
        assert (found.state(policy), counted.state(policy)) == (ContextState.RENEW_REQUIRED, ContextState.HEALTHY)
    assert done.happened_by(reading(50_000, 2, session_id="s2")) == 0


@pytest.mark.parametrize(
    ("turn", "handoff", "why"),
    [
        ({"answered": False}, None, "no answer"),
        ({"compaction_rests_until": NOW + timedelta(minutes=5)}, None, "rests from it until 12:05 UTC"),
        ({}, NOW - timedelta(minutes=9), "just written a handoff"),
    ],
)
def test_nothing_is_compacted_while_that_could_do_harm(
    turn: dict[str, Any], handoff: datetime | None, why: str
) -> None:
    assert why in not_now(None, reading(1), TurnState.model_validate(turn), handoff, NOW)
    assert not_now(None, reading(1), None, None, NOW)
    assert not not_now(None, reading(1), TurnState(compaction_rests_until=NOW), NOW - timedelta(minutes=10), NOW)


def test_two_compactions_are_half_an_hour_and_a_quarter_of_the_context_apart() -> None:
    memory = seen(told(), 60_000, 1)
    late = NOW + APART
    assert "it compacted its context at 12:00" in not_now(memory, reading(99_000, 1), TurnState(), None, LATER)
    assert "hardly grown" in not_now(memory, reading(74_000, 1), TurnState(), None, late)
    assert not_now(memory, reading(75_000, 1), TurnState(), None, late) == ""
    assert "not over" in not_now(told(), reading(99_000), TurnState(), None, late)


def test_a_worker_at_watch_is_told_to_compact_and_renewed_when_that_is_of_no_use() -> None:
    def remembered(strikes: int, asked_at: datetime) -> Scene:
        memory = Compression(
            conversation="s1", asked_at=asked_at, tokens=1, compactions=0, after=200_000, strikes=strikes
        )
        return {**WATCH, "record.compression": memory}

    assert decided_in(WATCH).action is Action.COMPRESS
    assert decided_in(remembered(1, DECIDED_AT - APART)).action is Action.COMPRESS
    assert decided_in(remembered(1, DECIDED_AT)).action is Action.NONE
    spent = decided_in(remembered(2, DECIDED_AT))
    assert (spent.action, "2 compactions were of no use" in spent.reason) == (Action.RENEW, True)
    assert decided_in({**remembered(2, DECIDED_AT), "reading.session_id": "s2"}).action is Action.COMPRESS


@pytest.mark.parametrize("more", [{"turn.compacting": True}, {"pane.typed": "hm"}, {"turn.delegating": True}])
def test_a_worker_that_is_not_idle_is_told_nothing(more: Scene) -> None:
    assert decided_in({**WATCH, **more}).action is Action.NONE


def test_where_a_handoff_is_due_nothing_is_compacted_before_it() -> None:
    assert decided_in({**WATCH, "reading.tokens": 400_000}).action is Action.RENEW


HOSTILE = [
    "{!touch ran} and @file:secret.txt", "!ls", "/new", "here 3", "--preview --aggressive", "a\nb\r/exit", "\x1b[201~",
    "ends with \\", "ends in /etc/hostname", "@", "数据库", "'; rm -rf / #", "x" * 5_000, "{" * 50, "",
]  # fmt: skip


@pytest.mark.parametrize("quoted", HOSTILE)
@pytest.mark.parametrize("face", list(Face))
def test_no_objective_makes_the_command_anything_else(tmp_path: Path, face: Face, quoted: str) -> None:
    command = compact_command(f"mission {quoted[:40]}", quoted, face)
    assert is_compact_command(command, face)
    check_sendable(command, face, tmp_path, busy=False)
    assert len(command) <= LONGEST
    assert command.startswith("/compress keep what is needed for the objective: mission")
    assert not set("{}!@/\\'\"`$;&|<>\n\r\x1b") & set(command.removeprefix("/compress").replace(";", ""))


def test_the_full_screen_face_gets_nothing_of_what_others_wrote() -> None:
    assert "count seeds" in compact_command("mission m1, rules", "count seeds", Face.CLI)
    assert "count seeds" not in compact_command("mission m1, rules", "count seeds", Face.TUI)


@pytest.mark.parametrize(
    "text",
    [
        "/compress", "/compress now please", "/compress here 3", "/new", "/exit",
        "/compress keep what is needed for the objective: a {!touch ran}",
        "/compress keep what is needed for the objective: a\n/exit",
        "/compress keep what is needed for the objective: ends in @word",
        "/compress keep what is needed for the objective --aggressive",
    ],
)  # fmt: skip
@pytest.mark.parametrize("face", list(Face))
def test_no_other_command_is_typed(tmp_path: Path, face: Face, text: str) -> None:
    with pytest.raises(TextNotSendable):
        check_sendable(text, face, tmp_path, busy=False)


def test_what_hermes_keeps_of_failed_compactions_is_read_and_an_older_schema_has_none(tmp_path: Path) -> None:
    profile = Profile(tmp_path / "new")
    profile.session(compression_failure_cooldown_until=EPOCH + 60, compression_fallback_streak=2)
    older = Profile(
        tmp_path / "old",
        without=["sessions.compression_failure_cooldown_until", "sessions.compression_fallback_streak"],
    )
    older.session()
    found = [turn(one.folder, "ana", since=None, now=moment(1)) for one in (profile, older)]
    assert [(one.compaction_rests_until, one.failed_summaries) for one in found] == [(moment(60), 2), (None, 0)]


def test_a_rotated_session_names_the_one_that_its_conversation_began_with(tmp_path: Path) -> None:
    found = read(copied("compress_rotated.db", tmp_path))
    assert found.conversation_id == found.conversation != found.session_id
