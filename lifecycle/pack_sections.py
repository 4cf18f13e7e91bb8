"""What stands in a resume pack beside the handoff: orders, next action, lists. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lifecycle.fitting import fitted
from lifecycle.orders import Orders, claimed_lines, mission_lines, rule_lines
from lifecycle.prompts import one_line
from lifecycle.redaction import redact
from lifecycle.resumption import Resumption
from lifecycle.rules import Rule
from lifecycle.sharing import shared
from lifecycle.tokens import TokenCounter

_QUESTION = "A person was asked something and has not answered. Wait for the answer; do not give it yourself."


def next_text(resumption: Resumption, next_action: str, unknown: Sequence[str], read_again: Sequence[str]) -> str:
    """The next action as the handoff states it, and what must be done or waited for before it."""
    lines = []
    match resumption:
        case Resumption.ANSWER:
            lines.append(_QUESTION)
        case Resumption.FINISHED:
            lines.append("The mission is finished: resume nothing of it, wait for orders.")
        case Resumption.REGROUND:
            lines.append("Nobody wrote a next action. Re-ground yourself: read the files below, verify, report, wait.")
        case Resumption.GO_ON:
            pass
    if next_action.strip():
        lines += [
            "The next exact action, as the handoff states it:",
            f"> {one_line(redact(next_action), 4_000)}",
        ]
    if unknown:
        lines.append("Effect unknown, because no result was written. Verify each before you repeat it:")
        lines += [f"- {one_line(redact(told), 400)}" for told in unknown]
    if read_again:
        lines.append("Read again before you act: " + ", ".join(read_again))
    return "\n".join(lines)


def orders_text(orders: Orders, claimed_rules: tuple[Rule, ...], tokens: int, count: TokenCounter) -> str:
    """Rules first: a task that is cut stands whole in the handoff, a rule that is lost is broken."""
    rules = rule_lines(orders)
    if rules:
        rules = ["Rules, verbatim; of two that differ the later one holds:", *rules]
    claimed = claimed_lines(claimed_rules)
    if claimed:
        claimed = ["Claimed by the handoff alone; nobody else knows of them:", *claimed]
    mission = "\n".join(mission_lines(orders))
    needs = {"rules": count("\n".join(rules)), "mission": count(mission), "claimed": count("\n".join(claimed))}
    rules_get = min(needs["rules"], tokens)
    others = shared(
        {"mission": needs["mission"], "claimed": needs["claimed"]}, {"mission": 3.0}, tokens - rules_get - 4
    )
    texts = (
        fitted(mission, others["mission"], count),
        first_that_fit(rules, rules_get, count),
        first_that_fit(claimed, others["claimed"], count),
    )
    return "\n\n".join(text for text in texts if text)


def first_that_fit(lines: Sequence[str], tokens: int, count: TokenCounter) -> str:
    if not lines or count("\n".join(lines)) <= tokens:
        return "\n".join(lines)
    kept: list[str] = []
    for line in lines:
        note = f"[… {len(lines) - len(kept) - 1} lines left out …]"
        if count("\n".join([*kept, line, note])) > tokens:
            break
        kept.append(line)
    return "\n".join([*kept, f"[… {len(lines) - len(kept)} lines left out …]"]) if kept else ""
