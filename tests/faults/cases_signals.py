"""Signals to the process that renews: kill -9, INT and TERM, at every step."""

from __future__ import annotations

from tests.faults.case import Case
from tests.faults.strike import STEPS, WHERE, Act, Step, Strike, Where


def _case(act: Act, where: Where, step: Step, *, third: bool = False) -> Case:
    strike = Strike(act, where, step)
    return Case(
        id=f"{act.lower()}-{where}-{step}",
        fault=str(strike),
        phase=step,
        source="R2" if act == "KILL" else "issue",
        strike=strike,
        third=third,
    )


BEGUN: tuple[Step, ...] = ("request", "persist", "stop", "resume", "prove")
"""Steps whose side effect has a middle: pasted without Enter, one copy of several, asked to end, not told to go on."""

CASES = [
    *(_case("KILL", where, step, third=where != "after") for step in STEPS for where in WHERE),
    *(_case("KILL", "begun", step, third=True) for step in BEGUN),
    *(_case("INT", "inside", step, third=step == "stop") for step in STEPS),
    *(_case("TERM", "inside", step, third=step == "respawn") for step in STEPS),
]
