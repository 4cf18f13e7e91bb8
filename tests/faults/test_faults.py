"""A third of the matrix of faults, as every run of the tests takes it; `make faults` plays all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.case import Case
from tests.faults.cases import CASES
from tests.faults.matrix import summary
from tests.faults.perform import Result, broken
from tests.faults.strike import STEPS, WHERE
from tests.faults.verdict import WRONG

pytestmark = pytest.mark.prefect


def _params() -> list[Any]:
    marks = {True: [pytest.mark.hermes], False: []}
    return [pytest.param(case, id=case.id, marks=marks[case.face is not None]) for case in CASES if case.third]


@pytest.mark.parametrize("case", _params())
def test_a_fault_ends_in_a_resumed_worker_or_a_block_with_the_right_reason(
    case: Case, result_of: Callable[[Case], Result]
) -> None:
    if why := case.cannot():
        pytest.skip(why)
    result = result_of(case)

    assert result.wrongs == {}
    assert result.is_right, f"{result.end}: {result.reason}, not {' or '.join(case.ends)}"


def test_the_matrix_has_every_signal_at_every_step_and_over_a_hundred_cases() -> None:
    ids = [case.id for case in CASES]
    assert [name for name, times in Counter(ids).items() if times > 1] == []
    assert len(ids) >= 100
    assert 0.3 < sum(case.third for case in CASES) / len(ids) < 0.4
    assert {f"kill-{where}-{step}" for where in WHERE for step in STEPS} <= set(ids)
    assert {f"{signal}-inside-{step}" for signal in ("int", "term") for step in STEPS} <= set(ids)
    assert sum(case.face is not None for case in CASES) >= 10
    assert {case.face for case in CASES if case.face} == {"cli", "tui"}
    assert all(case.source and case.ends for case in CASES)


def test_a_case_that_cannot_be_played_counts_as_a_silent_end() -> None:
    report = summary([broken(CASES[0], "no tmux", 1.0)])

    assert (report["runs"], report["silent"]) == (1, 1)
    assert [report[wrong] for wrong in WRONG if wrong != "silent"] == [0, 0, 0, 0]
