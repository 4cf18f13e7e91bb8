from __future__ import annotations

from typing import Any

import pytest

from lifecycle.checkpoint import Checkpoint, State
from lifecycle.resume_fit import fit_of, overlap
from lifecycle.resumption import LAST_WORDS, Resumption

HANDOFF = Checkpoint(
    state=State.HANDOFF,
    files_changed="src/rows.py, ledger.txt",
    commands_run="pytest",
    result="tokenizer done",
    blocker="none",
    next_action="fix test_nested in tests/test_rows.py, then run pytest",
)


def answer(**changes: Any) -> Checkpoint:
    told = {"state": State.IN_PROGRESS, "next_action": HANDOFF.next_action, "files_changed": "none", **changes}
    return HANDOFF.model_copy(update=told)


def verdict(resumption: Resumption = Resumption.GO_ON, **changes: Any) -> str:
    return fit_of(answer(**changes), HANDOFF, resumption=resumption).verdict


def test_the_same_step_is_proved_in_the_same_words_and_in_others() -> None:
    assert verdict() == "proved"
    assert verdict(next_action="Repair the failing test_nested (tests/test_rows.py) and rerun the suite") == "proved"
    assert verdict(files_changed="/repo/src/rows.py") == "proved"


def test_another_step_or_other_files_without_a_reason_are_weak() -> None:
    assert verdict(next_action="write the release notes") == "weak"
    assert verdict(files_changed="docs/index.md") == "weak"
    assert "another step" in fit_of(answer(next_action="write the release notes"), HANDOFF).why


@pytest.mark.parametrize(
    "changes",
    [
        {"next_action": "write the notes first, because test_nested was fixed meanwhile"},
        {"next_action": "write the notes", "blocker": "tests/test_rows.py is gone"},
        {"next_action": "先写说明，因为测试已经修好"},
    ],
)
def test_another_step_with_a_stated_reason_is_proved(changes: dict[str, Any]) -> None:
    assert verdict(**changes) == "proved"
    assert "with a stated reason" in fit_of(answer(**changes), HANDOFF).why


def test_chinese_steps_are_compared_too() -> None:
    handoff = HANDOFF.model_copy(update={"next_action": "统计第三个抽屉的种子包并写入账本"})
    same = answer(next_action="继续统计第三个抽屉，把结果写入账本")
    assert fit_of(same, handoff).verdict == "proved"
    assert fit_of(answer(next_action="重写发布说明"), handoff).verdict == "weak"


def test_one_common_word_is_no_common_step() -> None:
    assert overlap("count drawer three", "paint drawer") == 0.0
    assert overlap("", "anything") == 0.0


@pytest.mark.parametrize("resumption", [Resumption.ANSWER, Resumption.FINISHED, Resumption.REGROUND])
def test_one_that_was_told_to_wait_is_proved_when_it_waits(resumption: Resumption) -> None:
    assert verdict(resumption, next_action=LAST_WORDS[resumption]) == "proved"
    assert verdict(resumption, next_action="wait for orders") == "proved"
    assert verdict(resumption, next_action="drop the table", state=State.NEEDS_INPUT) == "proved"
    assert verdict(resumption, next_action="drop the table") == "weak"
