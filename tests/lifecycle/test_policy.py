from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lifecycle.policy import CAPS, CAPS_UNCOMPACTED, Limits, Policy
from lifecycle.reading import ContextReading, ContextState, Source

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def reading(tokens: int | None, **changes: object) -> ContextReading:
    measured = ContextReading(
        worker_id="builder",
        at=NOW,
        session_id="s1",
        window=1_000_000,
        compaction_point=None,
        tokens=tokens,
        source=Source.API_LOG,
    )
    return measured.model_copy(update=changes)


def test_the_defaults_are_the_reference_systems_limits() -> None:
    limits = Policy().limits(window=None, compaction_point=None)
    assert limits == Limits(soft=250_000, handoff=400_000, hard=500_000)


def test_by_default_a_handoff_leads_to_a_renewal_and_a_block_releases_the_worker() -> None:
    policy = Policy()
    assert (policy.at_watch, policy.renew_on_handoff, policy.on_stale) == ("checkpoint", True, "notify")
    assert (policy.on_missing_handoff, policy.after_resume, policy.release_on_block) == ("block", "continue", True)


def test_limits_stay_under_the_point_where_the_agent_compacts_by_itself() -> None:  # W-7
    limits = Policy().limits(window=200_000, compaction_point=150_000)
    assert limits == Limits(soft=90_000, handoff=120_000, hard=142_500)


def test_without_compaction_the_handoff_turn_still_fits_into_the_window() -> None:
    limits = Policy().limits(window=200_000, compaction_point=None)
    assert limits == Limits(soft=120_000, handoff=150_000, hard=170_000)


def test_a_million_token_window_that_compacts_at_half_is_capped_too() -> None:  # W-7
    limits = Policy().limits(window=1_000_000, compaction_point=500_000)
    assert limits == Limits(soft=250_000, handoff=400_000, hard=475_000)


def test_wishes_below_the_caps_stand() -> None:
    policy = Policy(soft=10_000, handoff=20_000, hard=30_000)
    assert policy.limits(window=200_000, compaction_point=150_000) == Limits(soft=10_000, handoff=20_000, hard=30_000)


@pytest.mark.parametrize("policy", [Policy(uncapped=True), Policy(signal="session_total")])
def test_nothing_caps_limits_that_the_operator_or_the_bill_sets(policy: Policy) -> None:
    assert policy.limits(window=200_000, compaction_point=150_000).hard == 500_000


@pytest.mark.parametrize(
    ("soft", "handoff", "hard"), [(400_000, 400_000, 500_000), (250_000, 500_000, 500_000), (3, 2, 1)]
)
def test_limits_that_do_not_rise_are_refused(soft: int, handoff: int, hard: int) -> None:
    with pytest.raises(ValidationError, match="limits must rise"):
        Policy(soft=soft, handoff=handoff, hard=hard)


@given(
    wanted=st.lists(st.integers(1, 2_000_000), min_size=3, max_size=3, unique=True).map(sorted),
    window=st.none() | st.integers(64_000, 2_000_000),
    share=st.none() | st.floats(0.1, 1),
)
def test_limits_in_force_rise_and_never_pass_wish_or_cap(
    wanted: list[int], window: int | None, share: float | None
) -> None:
    point = int(window * share) if window is not None and share is not None else None
    limits = Policy(soft=wanted[0], handoff=wanted[1], hard=wanted[2]).limits(window=window, compaction_point=point)
    found = [limits.soft, limits.handoff, limits.hard]
    assert found == sorted(found)
    assert all(limit <= wish for limit, wish in zip(found, wanted, strict=True))
    for top, caps in ((point, CAPS), (window if point is None else None, CAPS_UNCOMPACTED)):
        if top is not None:
            assert all(limit <= top * cap for limit, cap in zip(found, caps, strict=True))


@pytest.mark.parametrize(
    ("tokens", "state"),
    [
        (249_999, ContextState.HEALTHY),
        (250_000, ContextState.WATCH),
        (399_999, ContextState.WATCH),
        (400_000, ContextState.HANDOFF_REQUIRED),
        (499_999, ContextState.HANDOFF_REQUIRED),
        (500_000, ContextState.RENEW_REQUIRED),
    ],
)
def test_a_reading_equal_to_a_limit_is_over_it(tokens: int, state: ContextState) -> None:
    assert reading(tokens).state(Policy()) is state


def test_an_unreadable_context_is_never_healthy() -> None:  # W-5
    assert reading(None, error="database is locked").state(Policy()) is ContextState.UNKNOWN
    assert reading(0, error="database is locked").state(Policy()) is ContextState.UNKNOWN


def test_a_worker_without_a_session_is_neither_healthy_nor_unknown() -> None:
    assert reading(None, session_id=None).state(Policy()) is ContextState.NO_SESSION
    assert reading(0, session_id=None).state(Policy()) is ContextState.NO_SESSION
    assert reading(None).state(Policy()) is ContextState.NO_SESSION


def test_the_hard_limit_is_passed_at_the_token() -> None:
    assert reading(500_000).is_over_hard(Policy())
    assert not reading(499_999).is_over_hard(Policy())
    assert not reading(None, session_id=None).is_over_hard(Policy())


def test_more_than_three_compactions_ask_for_a_renewal_that_is_not_over_hard() -> None:  # L5
    worn = reading(42_000, compactions=4)
    assert worn.state(Policy()) is ContextState.RENEW_REQUIRED
    assert not worn.is_over_hard(Policy())
    assert reading(42_000, compactions=3).state(Policy()) is ContextState.HEALTHY


@pytest.mark.parametrize(
    ("signal", "state"), [("occupancy", ContextState.HEALTHY), ("session_total", ContextState.RENEW_REQUIRED)]
)
def test_the_policy_chooses_between_occupancy_and_the_bill(
    signal: Literal["occupancy", "session_total"], state: ContextState
) -> None:  # P1
    assert reading(42_000, session_total=512_000).state(Policy(signal=signal)) is state
