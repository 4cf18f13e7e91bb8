from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lifecycle.checkpoint import Checkpoint, State
from lifecycle.draft import HANDOFF_SECTIONS
from lifecycle.gate import THIN_TOKENS, GateResult, prose, weigh
from lifecycle.handoff import Handoff, compose

CHECKPOINT = Checkpoint(
    state=State.HANDOFF,
    files_changed="src/parser.py",
    commands_run="pytest -q",
    result="tokenizer done",
    blocker="none",
    next_action="fix test_nested",
)
GOOD = {title: f"{title} " + "word " * 30 for title in HANDOFF_SECTIONS}


def words(text: str) -> int:
    return len(text.split())


def weighed(
    sections: dict[str, str],
    *,
    checkpoint: Checkpoint | None = CHECKPOINT,
    previous: str | None = None,
    same_mission: bool = True,
) -> GateResult:
    draft = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())
    return weigh(draft, checkpoint, previous=previous, same_mission=same_mission, count=words)


def is_thin(found: GateResult) -> bool:
    return any("tokens of prose" in complaint for complaint in found.complaints)


def document(sections: dict[str, str]) -> str:
    return compose(
        Handoff(
            worker_id="swarm7",
            renewal_id="rn-0",
            generation=1,
            created_at=datetime(2026, 3, 4, tzinfo=UTC),
            sections=sections,
            checkpoint=CHECKPOINT,
            supplement="collected " * 5_000,
        )
    )


def test_a_full_document_passes_without_complaint() -> None:
    assert weighed(GOOD) == GateResult()


def test_a_document_under_120_tokens_of_prose_is_thin() -> None:
    assert not is_thin(weighed({"Objective": "word " * THIN_TOKENS}))
    found = weighed({"Objective": "word " * (THIN_TOKENS - 1)})
    assert is_thin(found)
    assert "119 tokens" in " ".join(found.complaints)


def test_the_handoff_before_is_none_of_now() -> None:
    """A file that is copied is fresh by its date, and by nothing else."""
    told = " ".join(weighed(GOOD, previous=document(GOOD)).complaints)
    assert "the one before, word for word" in told
    assert weighed(GOOD, previous=document(GOOD), same_mission=False).complaints == ()
    assert weighed({**GOOD, "Completed": "drawer four too"}, previous=document(GOOD)).complaints == ()


def test_a_pasted_log_is_no_prose() -> None:
    assert is_thin(weighed({"Commands run": "```\n" + "line of a log\n" * 500 + "```"}))
    assert prose({"Completed": "a\n\n### Head\n```\nb\n```\nc"}) == "a\nc"


def test_no_document_at_all_is_thin_and_says_what_is_missing() -> None:
    found = weighed({}, checkpoint=None)
    assert is_thin(found)
    assert found.missing == HANDOFF_SECTIONS


def test_tokens_are_tiktokens_where_no_counter_is_given() -> None:
    assert not is_thin(weigh("## Objective\n\n" + "word " * THIN_TOKENS, CHECKPOINT))
    assert is_thin(weigh("## Objective\n\n" + "word " * 100, CHECKPOINT))
    assert is_thin(weigh(None, CHECKPOINT))


def test_what_the_checkpoint_says_is_not_missing() -> None:
    assert weighed({}).missing == ("Current state", "Objective", "In progress")


def test_a_document_under_a_tenth_of_the_one_before_is_thin() -> None:
    """A handoff that shrinks from renewal to renewal has collapsed."""
    before = document(dict.fromkeys(HANDOFF_SECTIONS, "word " * 1000))
    found = weighed(GOOD, previous=before)
    assert is_thin(found)
    assert "the one before had 9,005" in found.complaints[0]


def test_the_one_before_counts_only_in_the_same_open_mission() -> None:
    before = document(dict.fromkeys(HANDOFF_SECTIONS, "word " * 1000))
    assert not is_thin(weighed(GOOD, previous=before, same_mission=False))


def test_what_the_machine_added_to_the_one_before_does_not_count() -> None:
    assert not is_thin(weighed(GOOD, previous=document(GOOD)))


@pytest.mark.parametrize("previous", ["", "not a handoff at all", "---\n", "## Completed\n\n<what is done>\n"])
def test_a_document_before_that_says_nothing_is_no_measure(previous: str) -> None:
    assert not weighed(GOOD, previous=previous).complaints


@pytest.mark.parametrize(
    ("checkpoint", "asks"),
    [
        (CHECKPOINT, False),
        (CHECKPOINT.model_copy(update={"state": State.NEEDS_INPUT}), True),
        (CHECKPOINT.model_copy(update={"next_action": "Drop the table. **Execute now?**"}), True),
        (None, False),
    ],
)
def test_a_question_to_a_human_is_noticed(checkpoint: Checkpoint | None, asks: bool) -> None:
    """opencode #36682: "continue" became the consent to "Execute now?"."""
    assert weighed(GOOD, checkpoint=checkpoint).asks_human is asks
