"""What a worker was told to do and not to do, in the words of those who said it. No model retells it."""

from __future__ import annotations

from lifecycle.foreign_text import bounded, cleaned
from lifecycle.redaction import redact
from lifecycle.rules import Rule, not_among
from lifecycle.value import Value

LONGEST_TASK = 3_000
LONGEST_REQUEST = 1_500
"""Characters of a task, and of the request that a session began with."""


class Orders(Value):
    """The mission, the task and the rules of a worker, by those who gave them.

    *given* is the first request that a person made, where no ledger names a task. *finished* says that somebody closed
    the mission. *greenlight* is what the roster wants a person's word for. *read_again* are files of rules and skills
    that the old session had loaded.
    """

    mission_id: str | None = None
    assignment_id: str | None = None
    title: str = ""
    state: str | None = None
    assignment_state: str | None = None
    finished: bool = False
    task: str = ""
    given: str = ""
    rules: tuple[Rule, ...] = ()
    greenlight: tuple[str, ...] = ()
    read_again: tuple[str, ...] = ()

    def carried(self) -> Orders:
        """What the next generation cannot read anew anywhere: what was only said."""
        said = tuple(rule for rule in self.rules if rule.source.startswith(SAID))
        return Orders(mission_id=self.mission_id, given=self.given, rules=said)


SAID = "said to the worker"
"""How the source of a rule begins that stands in no file."""


def mission_lines(orders: Orders) -> list[str]:
    """Mission, assignment and task."""
    lines = []
    if orders.mission_id or orders.title:
        named = " — ".join(filter(None, (orders.mission_id, _line(orders.title))))
        lines.append(f"Mission: {named}{_in(orders.state)}")
    if orders.assignment_id:
        lines.append(f"Assignment: {orders.assignment_id}{_in(orders.assignment_state)}")
    if orders.finished:
        lines.append("The mission is finished: nothing of it is to be resumed.")
    if orders.task:
        lines += ["The task, as it was given:", _quoted(bounded(orders.task, LONGEST_TASK, 500))]
    if orders.given:
        lines += ["The first request, as it was made:", _quoted(bounded(orders.given, LONGEST_REQUEST, 500))]
    return lines


def rule_lines(orders: Orders) -> list[str]:
    """The rules, each with its source. Of two that differ the later one holds."""
    lines = [f"- {_line(rule.text)} [{rule.source}]" for rule in orders.rules]
    if orders.greenlight:
        lines.append(f"- Wait for a person's word before: {', '.join(map(_line, orders.greenlight))} [the roster]")
    return lines


def claimed_lines(claimed: tuple[Rule, ...]) -> list[str]:
    return [f"- {_line(rule.text)}" for rule in claimed]


def claimed_by(rules: tuple[Rule, ...], orders: Orders) -> tuple[Rule, ...]:
    """The rules of a handoff that nobody else knows of: they may be invented."""
    told = (orders.task, orders.given, *orders.greenlight)
    return not_among(rules, (*orders.rules, *(Rule(text=text, source="") for text in told if text)))


def rendered(orders: Orders, claimed: tuple[Rule, ...] = ()) -> str:
    """All of it as the section of a handoff; empty where nobody said anything."""
    parts = ["\n".join(mission_lines(orders))]
    if rules := rule_lines(orders):
        parts.append("Rules, verbatim; of two that differ the later one holds:\n" + "\n".join(rules))
    if claimed:
        parts.append("Claimed: only the handoff says so, nobody else:\n" + "\n".join(claimed_lines(claimed)))
    if orders.read_again:
        parts.append("Read again, for the old session had read them: " + ", ".join(orders.read_again))
    return "\n\n".join(part for part in parts if part)


def _in(state: str | None) -> str:
    return f" ({state})" if state else ""


def _line(text: str) -> str:
    return " ".join(redact(cleaned(text)).split())


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in redact(cleaned(text)).strip().split("\n"))
