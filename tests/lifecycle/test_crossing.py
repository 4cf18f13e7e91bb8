"""What crosses by computation alone, from a state.db and texts: no flow, no agent, no model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lifecycle.agents.hermes.conversation import conversation
from lifecycle.crossing import Crossing, Sources, cross
from lifecycle.draft import HANDOFF_SECTIONS
from lifecycle.gathering import gather
from lifecycle.mission import Mission
from lifecycle.proofs import Quality
from lifecycle.worker import Worker
from tests.lifecycle.conversations import BEGAN
from tests.lifecycle.hermes.hermes_profile import Profile

RULES = ("Never change the schema.", "Keep /api/v2/orders compatible; you must not rename it.", "Port 18443 must stay.")
REPLY = """STATE: HANDOFF
FILES_CHANGED: none
COMMANDS_RUN: none
RESULT: looked around
BLOCKER: none
NEXT_ACTION: compare the two releases
RENEWAL_ID: r1"""
LOSSY = "".join(f"## {title}\nNothing of note. {'word ' * 30}\n" for title in HANDOFF_SECTIONS)


def crossing(tmp_path: Path, *, by_machine: bool = True, **changes: Any) -> Crossing:
    profile = Profile(tmp_path / "profile")
    profile.session()
    profile.say("user", f"Review the release. {' '.join(RULES)}", 1)
    profile.say("assistant", "I read /srv/app/orders.py and /srv/app/orders.py again.", 2)
    profile.say("user", "Now look at PAY-77.", 3)
    found = conversation(tmp_path / "profile", "w1", since=None)
    worker = Worker(worker_id="w1", profile=tmp_path / "profile", session="s")
    given: dict[str, Any] = {"worker_id": "w1", "renewal_id": "r1", "at": BEGAN}
    if by_machine:
        given |= {"conversation": found, "orders": gather(worker, Mission(), found)}
    return cross(Sources.model_validate({**given, **changes}))


def test_a_writer_that_loses_everything_loses_no_rule_and_no_identifier(tmp_path: Path) -> None:
    found = crossing(tmp_path, reply=REPLY, draft=LOSSY)
    assert found.quality is Quality.WRITTEN
    for fact in (*RULES, "/srv/app/orders.py", "PAY-77", "compare the two releases"):
        assert fact in found.pack.text, fact
        assert fact in found.handoff, fact


def test_without_the_machine_they_are_lost(tmp_path: Path) -> None:
    found = crossing(tmp_path, by_machine=False, reply=REPLY, draft=LOSSY)
    assert not any(fact in found.pack.text for fact in (*RULES, "/srv/app/orders.py", "PAY-77"))


def test_an_answer_that_is_refused_is_replaced_by_the_transcript_and_says_why(tmp_path: Path) -> None:
    found = crossing(tmp_path, reply="I will do it in a moment", draft=LOSSY)
    assert found.quality is Quality.SYNTHESIZED
    assert found.refused.startswith("checkpoint_missing: ")
    assert all(rule in found.pack.text for rule in RULES)


def test_a_worker_that_says_nothing_has_its_last_request_carried(tmp_path: Path) -> None:
    found = crossing(tmp_path)
    assert (found.quality, found.refused) == (Quality.SYNTHESIZED, "")
    assert "> Now look at PAY-77." in found.pack.text
    assert found.pack.text.splitlines()[-1].startswith("NEXT_ACTION: re-ground yourself")
