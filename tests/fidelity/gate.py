"""The gate and the checkpoint parser over labelled cases, and the reference's rules over the same ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lifecycle.checkpoint import parse_checkpoint
from lifecycle.errors import CheckpointRefused
from lifecycle.judging import judge
from lifecycle.tokens import TokenCounter
from lifecycle.value import Value
from tests.fidelity import reference
from tests.fidelity.gate_cases import Case, cases
from tests.lifecycle import checkpoint_cases

_T = TypeVar("_T")
_Block = checkpoint_cases.Good | checkpoint_cases.Bad


class Score(Value):
    """Of *n* labelled cases *good* are good; *wrong* names those that were judged wrongly."""

    n: int
    good: int
    false_accepts: int
    accepted_good: float
    wrong: tuple[str, ...]


def handoffs(count: TokenCounter) -> tuple[Score, Score]:
    """Whole handoffs by the gate, and by the reference: any file that exists is one."""
    labelled = cases()

    def taken(case: Case) -> bool:
        try:
            return not judge(case.material, count=count).gate.complaints
        except CheckpointRefused:
            return False

    told = [(case.name, case.good, case) for case in labelled]
    return _score(told, taken), _score(told, lambda case: case.material.draft is not None)


def checkpoints() -> tuple[Score, Score]:
    """Checkpoint blocks by Afresh's parser and by the reference's."""
    labelled: list[tuple[str, bool, _Block]] = []
    labelled += [(f"checkpoint: {case.name}", True, case) for case in checkpoint_cases.GOOD]
    labelled += [(f"no checkpoint: {case.name}", False, case) for case in checkpoint_cases.BAD]

    def ours(case: _Block) -> bool:
        try:
            found = parse_checkpoint(case.text, renewal_id="r-7f3a", worker_id="alice", purpose=case.purpose)
        except CheckpointRefused:
            return False
        return isinstance(case, checkpoint_cases.Bad) or found.state is case.state

    def theirs(case: _Block) -> bool:
        found = reference.checkpoint(case.text)
        if found is None or isinstance(case, checkpoint_cases.Bad):
            return found is not None
        return found["STATE"].split()[0].upper() == case.state.value

    return _score(labelled, ours), _score(labelled, theirs)


def both(one: Score, other: Score) -> Score:
    good = one.good + other.good
    accepted = one.accepted_good * one.good + other.accepted_good * other.good
    return Score(
        n=one.n + other.n,
        good=good,
        false_accepts=one.false_accepts + other.false_accepts,
        accepted_good=accepted / good,
        wrong=(*one.wrong, *other.wrong),
    )


def _score(labelled: list[tuple[str, bool, _T]], takes: Callable[[_T], bool]) -> Score:
    judged = [(name, good, takes(case)) for name, good, case in labelled]
    good = sum(good for _, good, _ in judged)
    return Score(
        n=len(judged),
        good=good,
        false_accepts=sum(taken and not good for _, good, taken in judged),
        accepted_good=sum(taken and good for _, good, taken in judged) / good,
        wrong=tuple(name for name, good, taken in judged if taken is not good),
    )
