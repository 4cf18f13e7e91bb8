from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.advice import accepts_work, recommended_action
from lifecycle.decision import Action, Decision, decide
from lifecycle.policy import Policy
from lifecycle.reading import ContextReading, ContextState, Source
from lifecycle.record import Dismissed, WorkerRecord
from lifecycle.renewal import Block, Phase, Renewal
from lifecycle.screen import PaneLook, PaneState, Screen
from lifecycle.transcript import TurnState
from lifecycle.worker import Worker

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)

Scene = Mapping[str, object]
"""What differs from an idle worker over its handoff limit, by `part.field`."""

_WORKER = Worker(worker_id="builder", profile=Path("/profiles/builder"), session="swarm-builder", automatic=True)
_READING = ContextReading(
    worker_id="builder",
    at=NOW,
    session_id="s1",
    session_open=True,
    window=1_000_000,
    tokens=450_000,
    source=Source.API_LOG,
    last_activity_at=NOW - MINUTE,
)
_SCREEN = Screen(session_id="$1", window_id="@1", pane_id="%1", pane_pid=1)


def _of(scene: Scene, part: str) -> dict[str, object]:
    return {key.removeprefix(f"{part}."): value for key, value in scene.items() if key.startswith(f"{part}.")}


def decided(**changes: object) -> Decision:
    return decided_in({key.replace("__", "."): value for key, value in changes.items()})


def decided_in(scene: Scene) -> Decision:
    policy = Policy.model_validate(_of(scene, "policy"))
    call = _of(scene, "call")
    return decide(
        _WORKER.model_copy(update={"policy": policy, **_of(scene, "worker")}),
        _READING.model_copy(update=_of(scene, "reading")),
        WorkerRecord.model_validate({"worker_id": "builder", **_of(scene, "record")}),
        PaneLook.model_validate({"state": PaneState.READY, "screen": _SCREEN, **_of(scene, "pane")}),
        TurnState.model_validate({"session_id": "s1", **_of(scene, "turn")}),
        NOW,
        queues_while_busy=bool(call.get("queues", False)),
        by_hand=bool(call.get("by_hand", False)),
        assignment_open=bool(call.get("assignment_open", False)),
        rebooted=bool(call.get("rebooted", False)),
    )


def renewal(block: str | None = None) -> Renewal:
    found = None if block is None else Block(reason=block, detail="it waits", phase=Phase.REQUESTED, at=NOW)
    return Renewal(renewal_id="r1", worker_id="builder", generation=1, opened_at=NOW, updated_at=NOW, block=found)


def ago(*minutes: int) -> tuple[datetime, ...]:
    return tuple(NOW - minute * MINUTE for minute in minutes)


TYPED_JUST_NOW = _SCREEN.model_copy(update={"last_typed_at": NOW - timedelta(seconds=30)})


class Row(NamedTuple):
    """One row of the table: the scene in which it matches, and how its decision is told from any other.

    A *depends* row waits or withholds: its notice, and whether it gives up, depend on what else is the case.
    """

    scene: Scene
    action: Action
    says: str
    notice: str | None = None
    block: str | None = None
    depends: bool = False


READY: Scene = {"pane.state": PaneState.READY}
BUSY: Scene = {"pane.state": PaneState.BUSY}
OVER_SOFT: Scene = {"reading.tokens": 250_000}
OVER_HANDOFF: Scene = {"reading.tokens": 450_000}
OVER_HARD: Scene = {"reading.tokens": 510_000}

TABLE: dict[str, Row] = {
    "unmanaged": Row({"worker.managed": False}, Action.NONE, "not managed"),
    "held": Row({"record.held_since": NOW}, Action.NONE, "held"),
    "blocked": Row({"record.open_renewal": renewal("handoff_timeout")}, Action.NONE, "blocked (handoff_timeout)"),
    "parked": Row({"record.parked_until": NOW + HOUR}, Action.NONE, "parked until"),
    "renewing": Row({"record.open_renewal": renewal()}, Action.NONE, "renewal r1 is open"),
    "cooling down": Row({"record.cooldown_until": NOW + MINUTE}, Action.NONE, "cooling down"),
    "automatic off": Row(
        {"record.automatic": False}, Action.NONE, "automatic renewal is off", notice="would_renew", depends=True
    ),
    "cut off": Row({"pane.state": PaneState.ABSENT, "call.rebooted": True}, Action.START, "went down with its host"),
    "absent": Row({"pane.state": PaneState.ABSENT}, Action.NONE, "its pane is gone", notice="absent"),
    "exited": Row({"pane.state": PaneState.EXITED}, Action.NONE, "the agent has ended", notice="absent"),
    "not an agent": Row(
        {"pane.state": PaneState.NOT_AN_AGENT}, Action.NONE, "runs something else", notice="not_an_agent"
    ),
    "dialog": Row({"pane.state": PaneState.DIALOG}, Action.NONE, "waits for a human", notice="dialog"),
    "setup": Row({"pane.state": PaneState.SETUP}, Action.NONE, "waits for a human", notice="dialog"),
    "refused": Row({"pane.state": PaneState.REFUSED}, Action.NONE, "waits for a human", notice="dialog"),
    "unreadable": Row({"reading.error": "database is locked"}, Action.NONE, "cannot be read"),
    "no session": Row({"reading.session_id": None}, Action.NONE, "no session yet"),
    "inconsistent": Row({"reading.window": 150_000}, Action.NONE, "cannot be in a window", notice="inconsistent"),
    "crash loop": Row({"record.deaths": ago(1, 5, 14)}, Action.BLOCK, "died 3 times", block="crash_loop"),
    "renewal loop": Row({"record.renewals": ago(16, 31, 46, 59)}, Action.BLOCK, "4 renewals", block="renewal_loop"),
    "heavy start": Row(
        {"record.baseline": 260_000, "record.baseline_session": "s1"},
        Action.BLOCK,
        "a fresh session begins with 260,000",
        block="baseline_too_large",
    ),
    "no progress": Row({"record.idle_repeats": 3}, Action.BLOCK, "same next action", block="no_progress"),
    "healthy": Row({"reading.tokens": 249_999}, Action.NONE, "249,999 tokens, under the soft limit"),
    "typed": Row({"pane.state": PaneState.TYPED}, Action.NONE, "text stands in its input line", depends=True),
    "copy mode": Row({"pane.state": PaneState.COPY_MODE}, Action.NONE, "copy mode", depends=True),
    "client typed": Row({"pane.screen": TYPED_JUST_NOW}, Action.NONE, "someone typed", depends=True),
    "delegate": Row({"turn.delegating": True}, Action.NONE, "delegate or background", depends=True),
    "background": Row({"pane.background": True}, Action.NONE, "delegate or background", depends=True),
    "compacting": Row({"turn.compacting": True}, Action.NONE, "being compacted", depends=True),
    "watch, idle": Row({**OVER_SOFT, **READY}, Action.CHECKPOINT, "over the soft limit of 250,000; idle"),
    "over handoff, store only": Row(
        {**OVER_HANDOFF, **READY, "policy.renew_on_handoff": False}, Action.HANDOFF, "over the handoff limit"
    ),
    "over handoff, idle": Row({**OVER_HANDOFF, **READY}, Action.RENEW, "over the handoff limit of 400,000; idle"),
    "over hard, idle": Row({**OVER_HARD, **READY}, Action.RENEW, "over the hard limit of 500,000; idle"),
    "over handoff, busy": Row(
        {**OVER_HANDOFF, **BUSY, "record.busy_since": NOW - 2 * HOUR},
        Action.NONE,
        "in a turn: waits for idle",
        notice="busy_over_handoff:1",
    ),
    "over hard, busy, queues": Row(
        {**OVER_HARD, **BUSY, "call.queues": True}, Action.RENEW, "busy, and its messages queue"
    ),
    "over hard, busy too long": Row(
        {**OVER_HARD, **BUSY, "record.busy_since": NOW - HOUR}, Action.BLOCK, "for 60 minutes", block="busy_too_long"
    ),
}


def _fit(first: Scene, second: Scene) -> bool:
    return all(second.get(key, value) == value for key, value in first.items())


UNORDERED = {("cooling down", "cut off")}
"""A cooldown keeps renewals apart; it keeps nobody down."""

PAIRS = [
    pair
    for pair in combinations(TABLE, 2)
    if _fit(TABLE[pair[0]].scene, TABLE[pair[1]].scene) and pair not in UNORDERED
]


@pytest.mark.parametrize("name", TABLE)
def test_each_row_of_the_table_decides_its_own_situation(name: str) -> None:
    row = TABLE[name]
    decision = decided_in(row.scene)
    assert (decision.action, decision.notice, decision.block) == (row.action, row.notice, row.block)
    assert row.says in decision.reason


@pytest.mark.parametrize(("earlier", "later"), PAIRS)
def test_an_earlier_row_wins_over_a_later_one(earlier: str, later: str) -> None:
    row = TABLE[earlier]
    decision = decided_in({**TABLE[later].scene, **row.scene})
    assert row.says in decision.reason
    if row.depends:
        assert decision.action in {Action.NONE, Action.BLOCK}
    else:
        assert (decision.action, decision.notice, decision.block) == (row.action, row.notice, row.block)


def test_nearly_all_rows_can_meet() -> None:
    assert len(PAIRS) > 350


# Standing orders


@pytest.mark.parametrize("name", ["unmanaged", "held", "blocked", "renewing", "parked"])
def test_not_even_a_renewal_by_hand_passes_a_standing_order(name: str) -> None:
    decision = decided_in({**TABLE[name].scene, "call.by_hand": True})
    assert decision.action is Action.NONE
    assert TABLE[name].says in decision.reason


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("unmanaged", "declare [workers.builder] in afresh.toml"),
        ("held", "afresh release builder"),
        ("blocked", "afresh answer builder"),
        ("renewing", "afresh recover"),
        ("parked", "goes on by itself"),
    ],
)
def test_a_refusal_says_what_to_do(name: str, remedy: str) -> None:
    assert remedy in decided_in({**TABLE[name].scene, "call.by_hand": True}).reason


def test_a_worker_whose_parking_and_cooldown_are_over_is_renewed() -> None:
    assert decided(record__parked_until=NOW, record__cooldown_until=NOW).action is Action.RENEW


def test_a_false_peak_minutes_after_a_renewal_falls_into_the_cooldown() -> None:  # P13
    decision = decided(reading__tokens=510_000, record__cooldown_until=NOW + 8 * MINUTE)
    assert decision.action is Action.NONE


# Consent


def test_automatic_is_off_until_the_operator_turns_it_on() -> None:
    decision = decided(worker__automatic=False)
    assert (decision.action, decision.would, decision.notice) == (Action.NONE, Action.RENEW, "would_renew")
    assert "450,000 tokens" in decision.reason


def test_what_the_ledger_remembers_of_consent_overrules_the_configuration() -> None:
    assert decided(worker__automatic=False, record__automatic=True).action is Action.RENEW


@pytest.mark.parametrize(
    ("name", "would"),
    [
        ("watch, idle", Action.CHECKPOINT),
        ("over handoff, store only", Action.HANDOFF),
        ("over hard, busy, queues", Action.RENEW),
        ("crash loop", Action.BLOCK),
        ("healthy", None),
        ("dialog", None),
    ],
)
def test_without_consent_nothing_is_done_and_the_decision_says_what_would_be(name: str, would: Action | None) -> None:
    decision = decided_in({**TABLE[name].scene, "record.automatic": False})
    assert (decision.action, decision.would, decision.block) == (Action.NONE, would, None)


def test_a_context_that_stays_unreadable_raises_an_alarm_also_without_consent() -> None:
    scene = {"reading.error": "disk I/O error", "record.automatic": False, "record.unknown_streak": 3}
    assert decided_in(scene).notice == "unreadable"


@pytest.mark.parametrize(
    "scene",
    [
        {"record.automatic": False},
        {"reading.tokens": 42_000},
        {"record.cooldown_until": NOW + MINUTE},
        {"reading.tokens": 300_000},
        {"policy.renew_on_handoff": False},
        {"pane.screen": TYPED_JUST_NOW},
        {"record.renewals": ago(1, 2, 3, 4)},
        {"record.deaths": ago(1, 2, 3)},
        {"record.idle_repeats": 3},
        {"record.baseline": 260_000, "record.baseline_session": "s1"},
        {"reading.window": 150_000},
    ],
    ids="+".join,
)
def test_a_renewal_by_hand_is_consent(scene: Scene) -> None:
    decision = decided_in({**scene, "call.by_hand": True})
    assert decision.action is Action.RENEW
    assert "asked for by hand" in decision.reason


@pytest.mark.parametrize("state", sorted(set(PaneState) - {PaneState.READY}))
def test_a_renewal_by_hand_types_into_no_pane_that_is_not_ready(state: PaneState) -> None:
    assert decided(pane__state=state, call__by_hand=True).action is Action.NONE


def test_a_renewal_by_hand_of_a_busy_worker_is_queued_where_the_agent_queues() -> None:
    scene = {**BUSY, "reading.tokens": 42_000, "call.by_hand": True}
    assert decided_in({**scene, "call.queues": True}).action is Action.RENEW
    waiting = decided_in(scene)
    assert (waiting.action, waiting.waits) == (Action.NONE, True)


@pytest.mark.parametrize("name", ["unreadable", "no session"])
def test_a_worker_that_cannot_be_read_is_not_renewed_by_hand_either(name: str) -> None:
    assert decided_in({**TABLE[name].scene, "call.by_hand": True}).action is Action.NONE


@given(
    by_hand=st.booleans(),
    automatic=st.booleans(),
    queues=st.booleans(),
    tokens=st.integers(0, 900_000),
    state=st.sampled_from([state for state in PaneState if state not in {PaneState.READY, PaneState.BUSY}]),
)
def test_nothing_is_ever_typed_into_a_pane_that_is_neither_ready_nor_busy(
    *, by_hand: bool, automatic: bool, queues: bool, tokens: int, state: PaneState
) -> None:
    scene = {"pane.state": state, "reading.tokens": tokens, "record.automatic": automatic}
    decision = decided_in({**scene, "call.by_hand": by_hand, "call.queues": queues})
    assert decision.action in {Action.NONE, Action.BLOCK}


# Unreadable and implausible


def test_two_failed_readings_raise_no_alarm_and_three_do() -> None:
    unreadable: Scene = {"reading.error": "database is locked"}
    assert decided_in({**unreadable, "record.unknown_streak": 2}).notice is None
    assert decided_in({**unreadable, "record.unknown_streak": 3}).notice == "unreadable"


def test_a_reading_far_above_the_window_asks_and_does_not_kill() -> None:  # P5
    scene: Scene = {"policy.uncapped": True, "policy.soft": 1, "policy.handoff": 2, "policy.hard": 3}
    decision = decided_in({**scene, "reading.tokens": 260_000, "reading.window": 200_000})
    assert (decision.action, decision.notice) == (Action.NONE, "inconsistent")


def test_a_reading_a_little_above_the_window_is_a_full_window() -> None:  # P6
    decision = decided(reading__tokens=213_175, reading__window=200_000)
    assert decision.action is Action.RENEW


def test_an_unknown_window_casts_no_doubt_on_a_reading() -> None:  # P9
    assert decided(reading__tokens=9_000_000, reading__window=None).action is Action.RENEW


def test_a_decision_names_the_dialog_that_a_human_must_answer() -> None:
    assert "dangerous command" in decided(pane__state=PaneState.DIALOG, pane__dialog="dangerous command").reason


@pytest.mark.parametrize(("tokens", "limit"), [(250_000, "soft"), (400_000, "handoff"), (500_000, "hard")])
def test_a_reading_equal_to_a_limit_is_over_it(tokens: int, limit: str) -> None:
    assert f"over the {limit} limit" in decided(reading__tokens=tokens).reason


def test_a_jump_past_all_limits_needs_no_step_between() -> None:  # P10
    assert decided(reading__tokens=499_999, policy__soft=10, policy__handoff=20, policy__hard=30).action is Action.RENEW


def test_a_small_window_is_renewed_before_the_agent_compacts_by_itself() -> None:  # W-7
    decision = decided(reading__tokens=121_000, reading__window=200_000, reading__compaction_point=150_000)
    assert decision.action is Action.RENEW
    assert "handoff limit of 120,000" in decision.reason


# Loops


@pytest.mark.parametrize(
    "scene",
    [
        {"record.deaths": ago(1, 5, 15)},
        {"record.renewals": ago(16, 31, 46)},
        {"record.renewals": ago(16, 31, 46, 60)},
        {"record.baseline": 249_999, "record.baseline_session": "s1"},
        {"record.baseline": 260_000, "record.baseline_session": "s0"},
        {"record.idle_repeats": 2},
    ],
    ids=str,
)
def test_a_worker_short_of_a_loop_is_renewed(scene: Scene) -> None:
    assert decided_in(scene).action is Action.RENEW


def test_a_fresh_session_over_its_soft_limit_is_not_renewed_again_and_again() -> None:  # P12, L1
    scene: Scene = {"reading.tokens": 270_000, "reading.session_id": "s2"}
    decision = decided_in({**scene, "record.baseline": 250_000, "record.baseline_session": "s2"})
    assert decision.block == "baseline_too_large"


def test_a_policy_under_the_floor_of_a_fresh_session_blocks() -> None:  # L2
    scene: Scene = {"policy.soft": 20_000, "policy.handoff": 25_000, "policy.hard": 30_000, "reading.tokens": 32_000}
    decision = decided_in({**scene, "record.baseline": 31_000, "record.baseline_session": "s1"})
    assert decision.block == "baseline_too_large"


def test_the_same_next_action_alone_is_told_and_stops_nothing() -> None:  # L6
    decision = decided(record__repeats=3, record__idle_repeats=1)
    assert (decision.action, decision.notice) == (Action.RENEW, "repeats")
    assert decided(record__repeats=2).notice is None


def test_many_compactions_in_one_session_are_pressure_of_their_own() -> None:  # L5
    decision = decided(reading__tokens=42_000, reading__compactions=4)
    assert decision.action is Action.RENEW
    assert "4 compactions" in decision.reason
    assert decided(reading__tokens=42_000, reading__compactions=3).action is Action.NONE


# Busy and hindered


def test_compactions_alone_never_queue_a_request_into_a_turn() -> None:
    scene: Scene = {**BUSY, "reading.tokens": 42_000, "reading.compactions": 4, "call.queues": True}
    decision = decided_in({**scene, "record.busy_since": NOW - 3 * HOUR})
    assert (decision.action, decision.notice) == (Action.NONE, "busy_over_handoff:1")


@pytest.mark.parametrize(
    ("busy_for", "notice"),
    [
        (timedelta(0), None),
        (timedelta(minutes=119), None),
        (2 * HOUR, "busy_over_handoff:1"),
        (timedelta(hours=3, minutes=59), "busy_over_handoff:1"),
        (4 * HOUR, "busy_over_handoff:2"),
    ],
)
def test_a_long_turn_over_the_handoff_limit_is_told_every_two_hours(busy_for: timedelta, notice: str | None) -> None:
    decision = decided(pane__state=PaneState.BUSY, record__busy_since=NOW - busy_for, call__queues=True)
    assert (decision.action, decision.notice, decision.waits) == (Action.NONE, notice, True)


def test_a_turn_over_the_hard_limit_is_waited_for_and_then_a_human_is_called() -> None:  # B3
    scene: Scene = {**BUSY, **OVER_HARD}
    assert decided_in({**scene, "record.busy_since": None}).waits
    assert decided_in({**scene, "record.busy_since": NOW - 59 * MINUTE}).waits
    assert decided_in({**scene, "record.busy_since": NOW - 60 * MINUTE}).block == "busy_too_long"


def test_a_busy_worker_is_never_asked_for_a_checkpoint() -> None:  # W-15
    scene = {**BUSY, "reading.tokens": 300_000, "call.queues": True}
    decision = decided_in({**scene, "record.busy_since": NOW - 9 * HOUR})
    assert (decision.action, decision.notice) == (Action.NONE, None)


@pytest.mark.parametrize("name", ["typed", "copy mode", "client typed", "delegate", "background", "compacting"])
def test_what_hinders_typing_is_waited_for_as_a_turn_is(name: str) -> None:  # L11, B4
    scene = {**TABLE[name].scene, **OVER_HARD, "call.queues": True}
    assert decided_in(scene).waits
    assert decided_in({**scene, "record.busy_since": NOW - HOUR}).block == "busy_too_long"


def test_a_client_that_typed_two_minutes_ago_is_no_hindrance() -> None:
    screen = _SCREEN.model_copy(update={"last_typed_at": NOW - 2 * MINUTE})
    assert decided(pane__screen=screen).action is Action.RENEW


@pytest.mark.parametrize("state", [PaneState.STARTING, PaneState.UNKNOWN, PaneState.COMPACTING])
def test_a_pane_that_is_not_understood_is_waited_for(state: PaneState) -> None:
    decision = decided(pane__state=state)
    assert (decision.action, decision.waits) == (Action.NONE, True)


# Watch, stored handoffs, staleness


def test_a_checkpoint_is_asked_for_once_in_a_session() -> None:  # W-13
    asked = {"reading.tokens": 300_000, "record.checkpoint_asked_in": "s1"}
    assert decided_in(asked).action is Action.NONE
    assert decided_in({**asked, "reading.session_id": "s2"}).action is Action.CHECKPOINT


@pytest.mark.parametrize(("wanted", "action"), [("compress", Action.COMPRESS), ("nothing", Action.NONE)])
def test_the_policy_says_what_happens_at_the_soft_limit(wanted: str, action: Action) -> None:
    assert decided(reading__tokens=300_000, policy__at_watch=wanted).action is action


def test_a_handoff_that_is_only_stored_is_asked_for_once_in_a_session() -> None:  # W-13
    stored = {"policy.renew_on_handoff": False, "record.handoff_stored_in": "s1"}
    assert decided_in(stored).action is Action.NONE
    assert decided_in({**stored, **OVER_HARD}).action is Action.RENEW


def test_a_worker_at_its_handoff_limit_is_not_left_parked_until_the_hard_one() -> None:  # W-14
    assert decided(reading__tokens=400_000).action is Action.RENEW


STALE: Scene = {
    "reading.tokens": 42_000,
    "reading.last_activity_at": NOW - 30 * MINUTE,
    "call.assignment_open": True,
}


def test_a_stale_worker_is_told_of_once_in_a_session() -> None:
    decision = decided_in(STALE)
    assert (decision.action, decision.notice) == (Action.NOTIFY, "stale:s1")


def test_a_stale_worker_is_renewed_once_in_a_session_where_the_policy_says_so() -> None:
    scene = {**STALE, "policy.on_stale": "renew"}
    assert decided_in(scene).action is Action.RENEW
    assert decided_in({**scene, "record.stale_renewed_in": "s1"}).action is Action.NOTIFY
    assert decided_in({**scene, "record.stale_renewed_in": "s0"}).action is Action.RENEW


@pytest.mark.parametrize(
    "change",
    [
        {"call.assignment_open": False},
        {"reading.last_activity_at": NOW - 29 * MINUTE},
        {"reading.last_activity_at": None},
        {"turn.newest_at": NOW - MINUTE},
        {"pane.state": PaneState.BUSY},
        {"pane.background": True},
        {"pane.state": PaneState.TYPED},
    ],
    ids=str,
)
def test_silence_alone_is_not_staleness(change: Scene) -> None:  # B1
    assert decided_in({**STALE, "policy.on_stale": "renew", **change}).action is Action.NONE


def test_a_worker_that_was_asked_for_a_checkpoint_can_go_stale() -> None:
    scene = {**STALE, "reading.tokens": 300_000, "record.checkpoint_asked_in": "s1"}
    assert decided_in(scene).notice == "stale:s1"


def test_a_worker_whose_turn_cannot_be_read_is_decided_by_its_pane() -> None:
    record = WorkerRecord(worker_id="builder")
    look = PaneLook(state=PaneState.READY)
    assert decide(_WORKER, _READING, record, look, None, NOW).action is Action.RENEW


# What others are told


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (0, "Continue normally."),
        (250_000, "Monitor context; request concise checkpoint soon."),
        (400_000, "Request durable handoff before assigning more work."),
        (500_000, "Renew worker after handoff; avoid new work until restarted."),
    ],
)
def test_the_recommended_action_is_in_the_reference_systems_words(tokens: int, words: str) -> None:
    reading = _READING.model_copy(update={"tokens": tokens})
    assert recommended_action(reading.state(Policy())) == words


def test_every_context_state_has_a_recommended_action() -> None:
    assert len({recommended_action(state) for state in ContextState}) == len(ContextState)


@pytest.mark.parametrize(
    ("scene", "accepts"),
    [
        ({"reading.tokens": 42_000}, True),
        ({"reading.tokens": 399_999}, True),
        ({"reading.tokens": 400_000}, False),
        ({"reading.tokens": 42_000, "reading.compactions": 4}, False),
        ({"reading.tokens": 42_000, "reading.error": "locked"}, False),
        ({"reading.tokens": None, "reading.session_id": None}, True),
        ({"reading.tokens": 42_000, "record.held_since": NOW}, False),
        ({"reading.tokens": 42_000, "record.open_renewal": renewal()}, False),
        ({"reading.tokens": 42_000, "record.open_renewal": renewal("not_ready")}, False),
        ({"reading.tokens": 42_000, "record.parked_until": NOW + MINUTE}, False),
        ({"reading.tokens": 42_000, "record.parked_until": NOW}, True),
    ],
    ids=str,
)
def test_a_worker_takes_new_work_only_while_it_can_keep_it(scene: Scene, *, accepts: bool) -> None:  # W-30, W-35
    reading = _READING.model_copy(update=_of(scene, "reading"))
    record = WorkerRecord.model_validate({"worker_id": "builder", **_of(scene, "record")})
    assert accepts_work(reading, record, Policy()) is accepts


# Reboots


@pytest.mark.parametrize("state", [PaneState.ABSENT, PaneState.EXITED])
def test_a_worker_that_went_down_with_its_host_is_brought_back(state: PaneState) -> None:  # T9
    scene: Scene = {"pane.state": state, "call.rebooted": True, "record.cooldown_until": NOW + MINUTE}
    assert decided_in(scene).action is Action.START
    assert decided_in({**scene, "call.rebooted": False}).action is Action.NONE


@pytest.mark.parametrize(
    "standing",
    [
        {"record.held_since": NOW},
        {"record.parked_until": NOW + HOUR},
        {"record.open_renewal": renewal("handoff_timeout")},
        {"record.automatic": False},
        {"worker.managed": False},
    ],
    ids="+".join,
)
def test_a_reboot_brings_nobody_back_who_may_not_be_touched(standing: Scene) -> None:
    scene: Scene = {"pane.state": PaneState.ABSENT, "call.rebooted": True, **standing}
    assert decided_in(scene).action is Action.NONE


def test_a_worker_without_consent_that_went_down_with_its_host_is_told_of() -> None:
    decision = decided(pane__state=PaneState.ABSENT, call__rebooted=True, record__automatic=False)
    assert (decision.action, decision.would, decision.notice) == (Action.NONE, Action.START, "absent")


@pytest.mark.parametrize("state", sorted(set(PaneState) - {PaneState.ABSENT, PaneState.EXITED}))
def test_a_reboot_starts_nothing_where_something_runs(state: PaneState) -> None:
    assert decided(pane__state=state, call__rebooted=True).action is not Action.START


def test_a_cooldown_does_not_say_that_a_closed_renewal_renewed_anything() -> None:
    found = decided(**{"record.cooldown_until": NOW + MINUTE})
    assert found.reason == "cooling down until 12:01 UTC: a renewal of it has just ended"


LOOPING: dict[str, tuple[Scene, Scene]] = {
    "crash_loop": ({"record.deaths": ago(1, 5, 14)}, {"record.deaths": ago(-1, -2, -3, 1, 5, 14)}),
    "renewal_loop": ({"record.renewals": ago(16, 31, 46, 59)}, {"record.renewals": ago(-1, -2, -3, -4)}),
    "baseline_too_large": (
        {"record.baseline": 250_000, "record.baseline_session": "s1"},
        {"record.baseline": 250_000, "record.baseline_session": "s2", "reading.session_id": "s2"},
    ),
    "no_progress": ({"record.idle_repeats": 3}, {"record.idle_repeats": 4, "record.generation": 2}),
    "busy_too_long": (
        {**OVER_HARD, **BUSY, "record.busy_since": NOW - HOUR},
        {**OVER_HARD, **BUSY, "record.busy_since": NOW + MINUTE, "policy.busy_block": timedelta(minutes=-2)},
    ),
}
"""What leads to each block that the facts of a worker call for, and the same anew after NOW."""


@pytest.mark.parametrize("reason", LOOPING)
def test_what_a_human_closed_is_blocked_again_only_for_a_new_cause(reason: str) -> None:
    before, anew = LOOPING[reason]
    closed = {"record.dismissed": (Dismissed(reason=reason, session_id="s1", generation=1, at=NOW),)}

    assert decided_in(before).block == reason
    assert decided_in({**before, **closed}).block is None
    assert decided_in({**anew, **closed}).block == reason
