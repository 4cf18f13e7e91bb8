from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lifecycle.draft import HANDOFF_SECTIONS, sections_of
from lifecycle.errors import CheckpointRefused
from lifecycle.freshness import work_after
from lifecycle.gate import asks_somebody
from lifecycle.handoff import IDENTIFIERS, Handoff, compose
from lifecycle.judging import Judged, Material, judge, unanswered_words
from tests.lifecycle.conversations import BEGAN, asked, called, conversation, said

DRAFT = Path("/p/memory/handoffs/draft-r1.md")
REQUEST = f"CONTEXT_HANDOFF_REQUIRED\nDRAFT: {DRAFT}"
REPLY = """STATE: HANDOFF
FILES_CHANGED: /srv/seeds/a.csv
COMMANDS_RUN: wc -l
RESULT: two drawers
BLOCKER: none
NEXT_ACTION: count drawer three
RENEWAL_ID: r1"""
DOCUMENT = "".join(f"## {title}\n{title} {'word ' * 30}\n" for title in HANDOFF_SECTIONS)
WRITES = called("write_file", path=str(DRAFT), content="x")


def judged(*parts: dict[str, Any], draft: str = DOCUMENT, **changes: Any) -> Judged:
    given = {
        "worker_id": "swarm1",
        "renewal_id": "r1",
        "reply": REPLY,
        "draft": draft,
        "draft_path": DRAFT,
        "written_at": BEGAN + timedelta(hours=1),
        "asked_at": BEGAN,
        "conversation": conversation(*parts),
    }
    return judge(Material.model_validate({**given, **changes}), count=lambda text: len(text.split()))


def refusal(*parts: dict[str, Any], **changes: Any) -> CheckpointRefused:
    with pytest.raises(CheckpointRefused) as caught:
        judged(*parts, **changes)
    return caught.value


def test_a_fresh_complete_answer_is_taken() -> None:
    assert judged(asked("go"), asked(REQUEST), WRITES).gate.complaints == ()


def test_a_document_that_is_older_than_the_work_is_refused() -> None:
    """marveen PR #988: "handoff written" was twenty minutes and a verdict old."""
    found = refusal(asked(REQUEST), WRITES, called("terminal", command="make deploy"))
    assert found.reason == "handoff_stale"
    assert "make deploy" in found.evidence
    assert "make deploy" not in found.detail, "what may be typed into any face"
    assert found.own_words


@pytest.mark.parametrize(
    "later",
    [
        called("read_file", path="/srv/a"),
        called("todo", todos=[]),
        called("terminal", command="git status"),
        called("terminal", command=f"cat {DRAFT}"),
        called("terminal", command="wc -l ledger.txt"),
    ],
)
def test_looking_again_makes_no_document_old(later: dict[str, Any]) -> None:
    assert judged(asked(REQUEST), WRITES, later).gate.complaints == ()


def test_looking_that_writes_is_work() -> None:
    assert refusal(asked(REQUEST), WRITES, called("terminal", command="cat a > b")).reason == "handoff_stale"


def test_calls_of_the_same_message_belong_to_the_document() -> None:
    found = conversation(asked(REQUEST), WRITES, called("terminal", command="make"))
    together = found.model_copy(
        update={"entries": (*found.entries[:2], found.entries[2].model_copy(update={"row": found.entries[1].row}))}
    )
    assert work_after(together, DRAFT, BEGAN) == ()
    assert len(work_after(found, DRAFT, BEGAN)) == 1


def test_a_draft_that_no_call_names_is_as_old_as_its_file() -> None:
    parts = (asked(REQUEST), called("execute_code", code="write()"), called("terminal", command="make"))
    assert judged(*parts, written_at=BEGAN + timedelta(minutes=3)).gate.complaints == ()
    assert refusal(*parts, written_at=BEGAN + timedelta(minutes=1)).reason == "handoff_stale"


def test_a_file_from_before_the_renewal_is_refused() -> None:
    found = refusal(asked(REQUEST), asked_at=BEGAN + timedelta(hours=2))
    assert (found.reason, "before it was asked for" in found.detail) == ("handoff_stale", True)


def test_identifiers_that_are_lost_are_complained_of_once_and_then_appended() -> None:
    used = asked("move /srv/a.csv /srv/b.csv /srv/c.csv to port 8443, see PAY-9")
    found = judged(used, asked(REQUEST), WRITES, asked_row=2)
    assert found.gate.complaints == ("5 of 5 paths, ports, URLs, commits and ticket ids used last are missing",)
    document = compose(
        Handoff(
            worker_id="swarm1",
            renewal_id="r1",
            generation=1,
            created_at=BEGAN,
            sections=sections_of(DOCUMENT),
            checkpoint=found.checkpoint,
            identifiers=found.wanted,
        )
    )
    added = document.partition(f"## {IDENTIFIERS}")[2]
    assert [line for line in added.splitlines() if line.startswith("- ")] == [
        "- port 8443",
        "- /srv/a.csv",
        "- /srv/b.csv",
        "- /srv/c.csv",
        "- PAY-9",
    ]
    for title, words in sections_of(DOCUMENT).items():
        assert words in sections_of(document)[title], "the worker's words are as they were"


def test_two_lost_identifiers_are_appended_without_another_turn() -> None:
    found = judged(asked("move /srv/a.csv and /srv/b.csv"), asked(REQUEST), WRITES, asked_row=2)
    assert (len(found.gate.lost), found.gate.complaints) == (2, ())


def test_what_the_document_or_the_checkpoint_names_is_not_lost() -> None:
    used = asked("move /srv/seeds/a.csv to port 8443")
    found = judged(used, asked(REQUEST), WRITES, asked_row=2, draft=f"{DOCUMENT}\nThe port is 8443.")
    assert found.gate.lost == ()
    assert len(found.wanted) == 2


def test_a_question_to_a_person_stays_open_whatever_the_checkpoint_says() -> None:
    """opencode #36682: the resume prompt consented to "Execute now?"."""
    assert judged(
        asked("clean up"), said("This drops the table. Execute now?"), asked(REQUEST), asked_row=3
    ).gate.asks_human
    answered = (
        asked("clean up"),
        said("Execute now?"),
        asked("yes"),
        called("terminal", command="drop"),
        asked(REQUEST),
    )
    assert not judged(*answered, asked_row=5).gate.asks_human


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        ("I would drop it.\n\n**Execute now?**", True),
        ("要现在执行吗？", True),
        ("Please confirm before I go on.", True),
        ("请确认。", True),
        ("Done. Is there anything else?", False),
        ("Why did it fail? Because the port was taken.", False),
        ("", False),
    ],
)
def test_what_asks_a_person(words: str, asks: bool) -> None:
    assert asks_somebody(words) is asks


def test_words_that_a_person_answered_or_that_a_call_followed_ask_nobody() -> None:
    assert unanswered_words(conversation(said("Shall I?"))) == "Shall I?"
    assert unanswered_words(conversation(said("Shall I?"), asked("yes"))) == ""
    assert unanswered_words(conversation(said("Shall I?"), called("terminal", command="x"))) == ""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"reply": REPLY.replace("r1", "r9")}, "checkpoint_wrong_renewal"),
        ({"draft": "---\nworker: swarm2\n---\n" + DOCUMENT}, "handoff_wrong_worker"),
        ({"draft": "# Handoff — swarm1 — m-2\n" + DOCUMENT, "mission_id": "m-1"}, "handoff_wrong_mission"),
        ({"draft": "".join(f"## {title}\n" for title in HANDOFF_SECTIONS)}, "handoff_template"),
        ({"reply": "on it"}, "checkpoint_missing"),
    ],
)
def test_what_is_not_ours_or_no_handoff_is_refused(changes: dict[str, Any], reason: str) -> None:
    assert refusal(asked(REQUEST), WRITES, **changes).reason == reason
