"""What was measured as targets, as a table, and as `build/fidelity.json`."""

from __future__ import annotations

from typing import Any

from lifecycle.value import Value
from tests.fidelity.measuring import KINDS, SIDES, Measured, Sample, budget, grouped, totals
from tests.fidelity.writers import LOST

WRITERS_OF_A_PACK = ("ideal", "lossy", "thin", "absent", "killed")
"""Those that the targets name; what the verbose one writes is longer than a pack, and is shown beside them."""


class Target(Value):
    """*value* is held against *target*; `at_least` or at most."""

    name: str
    value: float
    target: float
    at_least: bool = True

    @property
    def holds(self) -> bool:
        return self.value >= self.target if self.at_least else self.value <= self.target


def targets(measured: Measured) -> list[Target]:
    """The lowest share of any single crossing where all of them must have all; the mean for recall."""
    named = [sample for sample in measured.samples if sample.manner in WRITERS_OF_A_PACK]
    lossy = [sample for sample in measured.samples if sample.manner == "lossy"]
    invented = sum(len(sample.invented) for sample in measured.samples)
    over = sum(sample.pack > budget() for sample in measured.samples)
    return [
        Target(name="rules, the worst crossing", value=_worst(named, "rule"), target=1.0),
        Target(name="artefacts, the worst crossing", value=_worst(named, "artefact"), target=1.0),
        Target(name="next action where it was stated", value=_worst(measured.samples, "next_action"), target=1.0),
        Target(name="recall with the lossy writer", value=totals(lossy, "recall", "afresh") or 0.0, target=0.88),
        Target(name="packs over their budget", value=over, target=0, at_least=False),
        Target(name="inventions", value=invented, target=0, at_least=False),
        Target(name="gate: false accepts", value=measured.gate.false_accepts, target=0, at_least=False),
        Target(name="gate: good ones accepted", value=measured.gate.accepted_good, target=0.97),
        Target(name="gate: labelled handoffs", value=measured.handoffs.n, target=150),
    ]


def as_json(measured: Measured) -> dict[str, Any]:
    samples = measured.samples
    lossy = [sample for sample in samples if sample.manner == "lossy"]
    return {
        "facts": _shares(lossy),
        "facts_of": f"the lossy writer, which drops {LOST:.0%} of every class, over all seeds, sizes and languages",
        "reference_reading": "`reference` is what the new worker knows if it reads the whole file that the prompt "
        "names, `reference_told` what the prompt itself says; of an absent handoff the file of an earlier one is left",
        "by_writer": {name: _shares(found) for name, found in grouped(samples, "manner").items()},
        "by_size": {name: _shares(found) for name, found in grouped(lossy, "tokens").items()},
        "by_language": {name: _shares(found) for name, found in grouped(lossy, "language").items()},
        "by_story": {name: _shares(found) for name, found in grouped(lossy, "story").items()},
        "inventions": sum(len(sample.invented) for sample in samples),
        "gate": {
            **_score(measured.gate),
            "reference": _score(measured.gate_reference),
            "handoffs": {**_score(measured.handoffs), "reference": _score(measured.handoffs_reference)},
        },
        "pack": {
            "budget": budget(),
            "max_tokens": max(sample.pack for sample in samples),
            "over_budget": sum(sample.pack > budget() for sample in samples),
        },
        "crossings": len(samples),
        "sessions": [session.model_dump() for session in measured.sessions],
        "targets": [{**target.model_dump(), "holds": target.holds} for target in targets(measured)],
        "seconds": round(measured.seconds, 1),
    }


def table(measured: Measured) -> str:
    lines = ["share of facts     writer   " + " ".join(f"{side:>15}" for side in SIDES)]
    for kind in (*KINDS, "next_action"):
        for manner, found in grouped(measured.samples, "manner").items():
            shares = [totals(found, kind, side) for side in SIDES]
            if shares[0] is not None:
                cells = " ".join(f"{'–' if one is None else f'{one:.1%}':>15}" for one in shares)
                lines.append(f"{kind:<18} {manner:<8} {cells}")
    lines.append("")
    for name, ours, theirs in (
        ("handoffs and checkpoints", measured.gate, measured.gate_reference),
        ("whole handoffs alone", measured.handoffs, measured.handoffs_reference),
    ):
        lines.append(
            f"gate, {name} ({ours.n}): {ours.false_accepts} false accepts, {ours.accepted_good:.1%} of the good ones; "
            f"reference: {theirs.false_accepts}, {theirs.accepted_good:.1%}"
        )
    packs = [sample.pack for sample in measured.samples]
    lines += [f"packs: {len(packs)}, at most {max(packs):,} of {budget():,} tokens", ""]
    for target in targets(measured):
        sign = "≥" if target.at_least else "≤"
        lines.append(
            f"{'ok  ' if target.holds else 'MISS'}  {target.name}: {target.value:.4g} ({sign} {target.target:g})"
        )
    return "\n".join([*lines, f"{measured.seconds:.0f} s"])


def misses(measured: Measured) -> list[str]:
    """Which rules, artefacts and next actions were not received, and what was invented."""
    found = []
    for sample in measured.samples:
        where = f"{sample.story} {sample.language} {sample.tokens} {sample.manner} {sample.seed}"
        kinds = ("rule", "artefact", "next_action") if sample.manner in WRITERS_OF_A_PACK else ()
        found += [
            f"{where}: {kind} not received: {' | '.join(sample.missed[kind])}"
            for kind in kinds
            if kind in sample.missed
        ]
        found += [f"{where}: invented: {one}" for one in sample.invented]
    return found


def _worst(samples: tuple[Sample, ...] | list[Sample], measure: str) -> float:
    shares = [totals([sample], measure, "afresh") for sample in samples]
    return min((one for one in shares if one is not None), default=0.0)


def _shares(samples: list[Sample]) -> dict[str, dict[str, float | None]]:
    shares = {kind: {side: totals(samples, kind, side) for side in SIDES} for kind in (*KINDS, "next_action")}
    return {
        kind: {side: None if value is None else round(value, 4) for side, value in sides.items()}
        for kind, sides in shares.items()
    }


def _score(score: Any) -> dict[str, Any]:
    told: dict[str, Any] = score.model_dump(exclude={"wrong"})
    return {**told, "accepted_good": round(score.accepted_good, 4)}
