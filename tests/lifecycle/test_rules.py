from __future__ import annotations

import pytest

from lifecycle.rules import MOST, Rule, merged, not_among, rules_in


def texts(text: str) -> list[str]:
    return [rule.text for rule in rules_in(text, "here")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Go.\nStanding rules:\n1. Python 3.11 and pytest\n2. Regression tests first\n\n3. Mask ids\n\nThen begin.",
            ["Python 3.11 and pytest", "Regression tests first", "Mask ids"],
        ),
        (
            "请做评审。规则：\n1、使用 Python 3.11\n2、不得修改数据库结构\n\n开始吧。",
            ["使用 Python 3.11", "不得修改数据库结构"],
        ),
        (
            "Rules: 1) Python 3.11; 2) tests first; 3) no schema change.",
            ["Python 3.11", "tests first", "no schema change."],
        ),
        ("Go on. Never push to main! You must not touch /etc.", ["Never push to main!", "You must not touch /etc."]),
        ("内部端口不能改。继续。", ["内部端口不能改。"]),
        ("Well. From now on write amounts in grams. Go on.", ["From now on write amounts in grams."]),
        ("从现在起，所有重量都用克。继续。", ["从现在起，所有重量都用克。"]),
        (
            "Never edit quotas.csv under 3.11 here. Thanks.",
            ["Never edit quotas.csv under 3.11 here."],
        ),
        ("# Rules\n- be kind\n# Else\n- x", ["be kind"]),
        ("**Constraints:** keep the API", ["keep the API"]),
        ("Never do:\n- deploy on Friday", ["deploy on Friday"]),
        ("I don't know. Don't worry. No, thanks. The rules of the game are hard.", []),
        ("```\nyou must not\n```\nno", []),
    ],
)
def test_rules_are_found_by_their_form_and_kept_verbatim(text: str, found: list[str]) -> None:
    assert texts(text) == found


@pytest.mark.parametrize(
    ("ban", "lifting"),
    [
        ("Never edit docs/.", "The ban on docs/ is lifted: you may edit it."),
        ("You must freeze docs/.", "The freeze no longer applies."),
        ("禁止修改 docs/ 。", "对 docs/ 的禁令解除：可以再修改了。"),
    ],
)
def test_a_rule_that_was_taken_back_is_followed_by_the_words_that_took_it_back(ban: str, lifting: str) -> None:
    assert texts(f"{ban}\nGo on.\n{lifting}") == [ban, lifting]


def test_a_flood_is_bounded() -> None:
    assert len(texts("\n".join(f"- never touch {number}" for number in range(500)))) == MOST


def test_the_same_rule_in_other_punctuation_is_one_and_keeps_its_first_source() -> None:
    one, other = Rule(text="Never push.", source="the assignment"), Rule(text="never push!", source="SOUL.md")
    assert merged([one], [other]) == (one,)


def test_a_rule_that_only_the_handoff_knows_is_told_apart() -> None:
    """codegraff #738: a summary invented a prohibition."""
    known = [Rule(text="Rules: never push to main, ask first", source="the assignment")]
    claimed = [Rule(text="never push to main", source="handoff"), Rule(text="never use tabs", source="handoff")]
    assert not_among(claimed, known) == (claimed[1],)
