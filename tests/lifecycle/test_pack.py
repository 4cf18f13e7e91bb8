from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lifecycle.budgets import PackSettings
from lifecycle.checkpoint import Checkpoint, State
from lifecycle.collected import Collected, OpenCall, TouchedFile
from lifecycle.collected_text import render
from lifecycle.draft import HANDOFF_SECTIONS
from lifecycle.fitting import default_counter, fitted, last_that_fit
from lifecycle.handoff import Handoff, compose, read_handoff
from lifecycle.orders import Orders
from lifecycle.pack import FRAME, HANDOFF, HITS, NEXT, ORDERS, Hit, Pack, PackMaterial, build
from lifecycle.pack_handoff import COLLECTED, TRANSCRIPT, cut_handoff, parts_of
from lifecycle.resumption import LAST_WORDS, Resumption
from lifecycle.rules import Rule
from lifecycle.sharing import shared

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
ARCHIVE = Path("/srv/afresh/archive/swarm1/20260504T120000Z-r1.md")
ACTION = "append the lines of drawer three to ledger.txt"
RULES = tuple(Rule(text=f"rule {number}: never touch drawer {number}", source="the assignment") for number in range(7))
COUNT = default_counter()


def handoff(**sections: str) -> str:
    """The body of a composed document."""
    filled = {name: f"{name} of the ledger." for name in HANDOFF_SECTIONS} | sections
    document = compose(
        Handoff(
            worker_id="swarm1",
            renewal_id="r1",
            generation=3,
            created_at=NOW,
            sections=filled,
            checkpoint=Checkpoint(
                state=State.HANDOFF,
                files_changed="ledger.txt",
                commands_run="wc -l ledger.txt",
                result="two drawers",
                blocker="none",
                next_action=ACTION,
            ),
        )
    )
    return read_handoff(document).body


def material(**changes: Any) -> PackMaterial:
    given = {
        "worker_id": "swarm1",
        "generation": 4,
        "renewal_id": "r1",
        "archive": ARCHIVE,
        "sha256": "0" * 64,
        "quality": "written",
        "made_at": NOW,
        "handoff": handoff(),
        "next_action": ACTION,
        "orders": Orders(mission_id="m-1", title="Count", task="Count every packet.", rules=RULES),
    }
    return PackMaterial.model_validate({**given, **changes})


def small(**changes: Any) -> Pack:
    return build(material(**changes), PackSettings(tokens=1_500))


def of(pack: Pack, name: str) -> int:
    return next((section.tokens for section in pack.sections if section.name == name), 0)


def test_the_first_line_says_who_and_the_last_one_what_next() -> None:
    lines = build(material()).text.splitlines()
    assert lines[0] == "# Resume — worker swarm1 — generation 4 — renewal r1"
    assert lines[-1] == f"NEXT_ACTION: {ACTION}"


def test_a_pack_with_room_holds_everything_and_drops_nothing() -> None:
    pack = build(material())
    assert pack.dropped == ()
    for name in HANDOFF_SECTIONS:
        assert f"### {name}" in pack.text
    assert all(rule.text in pack.text for rule in RULES)
    assert "Count every packet." in pack.text
    assert str(ARCHIVE) in pack.text


def test_tokens_are_told_section_by_section() -> None:
    pack = build(material(hits=(Hit(source="swarm1", made_at=NOW, snippet="drawer one has 48"),)))
    assert {FRAME, NEXT, ORDERS, HANDOFF, HITS} == {section.name for section in pack.sections}
    assert abs(sum(section.tokens for section in pack.sections) - pack.tokens) < 30
    assert pack.tokens == COUNT(pack.text)


def test_rules_outlive_a_long_handoff_a_long_task_and_a_long_history() -> None:
    pack = small(
        handoff=handoff(Completed="\n".join(f"- packet {number} was counted" for number in range(2_000))),
        orders=Orders(task="count " * 3_000, rules=RULES),
        hits=tuple(Hit(source="swarm1", made_at=NOW, snippet="word " * 200) for _ in range(5)),
    )
    assert all(rule.text in pack.text for rule in RULES)
    assert pack.tokens <= 1_500
    assert pack.text.splitlines()[-1] == f"NEXT_ACTION: {ACTION}"
    assert {line.partition(":")[0] for line in pack.dropped} == {HANDOFF, ORDERS, HITS}, pack.dropped


def test_of_a_long_list_the_newest_items_stay_and_what_went_is_said() -> None:
    pack = small(handoff=handoff(Completed="\n".join(f"- packet {number} was counted" for number in range(2_000))))
    assert "- packet 1999 was counted" in pack.text
    assert "- packet 0 was counted" not in pack.text
    assert "older lines left out" in pack.text
    assert any(line.startswith(f"{HANDOFF}: ") and str(ARCHIVE) in line for line in pack.dropped)


def test_what_a_section_leaves_over_goes_to_the_handoff() -> None:
    long = handoff(**dict.fromkeys(HANDOFF_SECTIONS, "word " * 20_000))
    empty = build(material(handoff=long, orders=Orders()))
    assert of(empty, HANDOFF) > 0.85 * 6_000
    assert of(build(material(handoff=long, orders=Orders(task="word " * 5_000))), HANDOFF) < of(empty, HANDOFF)


def test_unknown_effects_and_files_to_read_again_stand_with_the_next_action() -> None:
    orders = Orders(read_again=("/profiles/swarm1/SOUL.md",))
    text = build(material(unknown=("terminal: make deploy",), orders=orders)).text
    following = text.partition(f"## {NEXT}")[2].partition("\n## ")[0]
    assert "- terminal: make deploy" in following
    assert "/profiles/swarm1/SOUL.md" in following


@pytest.mark.parametrize("resumption", [Resumption.ANSWER, Resumption.FINISHED, Resumption.REGROUND])
def test_who_must_not_go_on_at_once_is_told_so_last(resumption: Resumption) -> None:
    """opencode #36682: the resume prompt gave the consent that a person had been asked for."""
    last = build(material(resumption=resumption, next_action="Drop the table. Execute now?")).text.splitlines()[-1]
    assert last == f"NEXT_ACTION: {LAST_WORDS[resumption]}"


def test_claimed_rules_are_no_rules() -> None:
    text = build(material(claimed=(Rule(text="never deploy", source="handoff"),))).text
    assert text.index("Claimed by the handoff alone") < text.index("never deploy")
    assert text.index(RULES[-1].text) < text.index("Claimed by the handoff alone")


def test_kept_results_are_named_with_how_to_see_them() -> None:
    line = "- [[OFFLOAD: handle=abc123, tool=terminal]] pytest: 3 failed"
    text = build(material(handoff=handoff(**{"Commands run": line}))).text
    assert line in text.partition("## Kept results")[2]


def test_secrets_do_not_cross_in_the_pack() -> None:
    token = "ghp_" + "a1B2" * 9
    text = build(material(next_action=f"push with {token}", unknown=(f"curl -H {token}",))).text
    assert token not in text


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    body=st.text(max_size=3_000) | st.sampled_from(["项目规则" * 3_000, "x" * 90_000, "- a\n" * 9_000, handoff()]),
    action=st.text(max_size=3_000) | st.sampled_from(["下一步" * 1_500, "a/b " * 2_000]),
    rules=st.lists(st.sampled_from(["不得修改" * 150, "never " * 100, "r"]), max_size=60),
    tokens=st.sampled_from([1_500, 2_000, 6_000]),
)
def test_no_pack_is_over_its_budget(body: str, action: str, rules: list[str], tokens: int) -> None:
    orders = Orders(task=body, rules=tuple(Rule(text=rule, source="s") for rule in rules), read_again=(action,))
    hits = (Hit(source="swarm1", made_at=NOW, snippet=body),) * 3
    made = material(handoff=body, next_action=action, orders=orders, unknown=(action,) * 20, hits=hits)
    pack = build(made, PackSettings(tokens=tokens))
    assert pack.tokens == COUNT(pack.text) <= tokens
    assert pack.text.splitlines()[0].startswith("# Resume — worker swarm1")
    assert pack.text.splitlines()[-1].startswith("NEXT_ACTION:")


def test_a_cut_text_keeps_its_two_ends_and_says_how_much_went() -> None:
    text = f"begin {'word ' * 5_000}end"
    cut = fitted(text, 100, COUNT)
    assert COUNT(cut) <= 100
    assert cut.startswith("begin")
    assert cut.endswith("end")
    assert "characters left out" in cut
    assert fitted(text, 0, COUNT) == ""
    assert fitted("short", 100, COUNT) == "short"
    assert last_that_fit(["a", "b", "c"], 3, COUNT) == (["b", "c"], 1)


@given(
    needs=st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 5_000)),
    total=st.integers(-10, 9_000),
)
def test_shares_never_exceed_need_or_total_and_waste_nothing(needs: dict[str, int], total: int) -> None:
    granted = shared(needs, {"a": 3.0, "b": 0.5}, total)
    assert all(0 <= granted[name] <= need for name, need in needs.items())
    assert sum(granted.values()) <= max(0, total)
    assert sum(granted.values()) >= min(sum(needs.values()), max(0, total)) - len(needs)


def test_a_text_that_is_no_handoff_still_crosses() -> None:
    assert parts_of("just words") == {"Current state": "just words"}
    assert "just words" in build(material(handoff="just words")).text


def test_rows_of_the_session_have_what_the_workers_words_leave_over() -> None:
    rows = "\n".join(f"> request {number}: the pears of drawer {number}" for number in range(400))
    parts = {"Completed": "word " * 1_000, TRANSCRIPT: rows}
    text = cut_handoff(parts, 2_000, COUNT)
    assert "word " * 999 in text, "not a word less"
    assert "> request 399:" in text
    assert "> request 0:" not in text, "the oldest go first"
    assert COUNT(text) <= 2_000
    assert TRANSCRIPT not in cut_handoff(parts, 1_010, COUNT)


def test_of_what_was_said_the_oldest_goes_and_never_the_middle() -> None:
    rows = "\n".join(f"drawer {number} is counted" for number in range(400))
    text = cut_handoff({TRANSCRIPT: rows}, 600, COUNT)
    kept = [line for line in text.split("\n") if line.startswith("drawer ")]
    assert kept == [f"drawer {number} is counted" for number in range(400)][-len(kept) :]


def test_of_what_was_collected_the_looks_go_first_and_the_open_calls_last() -> None:
    files = tuple(
        TouchedFile(path=f"/repo/src/{number}.py", acts=("read",) if number % 2 else ("written",), last=NOW)
        for number in range(120)
    )
    opened = OpenCall(tool="terminal", told="make deploy", at=NOW)
    part = render(Collected(at=NOW, files=files, interrupted=(opened,)), budget=10**6, count=COUNT)
    text = cut_handoff({"Completed": "word " * 3_000, COLLECTED: part}, 4_000, COUNT)
    assert "terminal: make deploy" in text
    assert all((f"/repo/src/{number}.py" in text) is (number % 2 == 0) for number in range(120))
    assert "left out, first those that only looked" in text
