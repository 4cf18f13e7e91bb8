"""The measurement: every story in every size and language, every writer, what is received, and the targets."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from lifecycle.tokens import TokenCounter, counter
from lifecycle.value import Value
from tests.fidelity import gate, reference
from tests.fidelity.facts import KINDS, Fact, Kind, share
from tests.fidelity.gate import Score
from tests.fidelity.received import Known, budget, know, receive
from tests.fidelity.telling import Language, Story, Teller
from tests.fidelity.writers import SEEDS, Manner, write

SIZES = (20_000, 100_000, 400_000)
STORIES: tuple[Story, ...] = ("ledger", "review")
LANGUAGES: tuple[Language, ...] = ("en", "zh")
MANNERS: tuple[Manner, ...] = ("ideal", "lossy", "thin", "verbose", "absent", "killed")

Side = Literal["afresh", "worker_only", "reference", "reference_told"]
SIDES: tuple[Side, ...] = ("afresh", "worker_only", "reference", "reference_told")
Measure = Literal[Kind, "next_action"]


class Sample(Value):
    """One crossing: what of each measure counted on each side, of how many."""

    story: Story
    language: Language
    tokens: int
    manner: Manner
    seed: int
    counted: dict[str, dict[str, tuple[int, int]]]
    pack: int
    complaints: tuple[str, ...]
    invented: tuple[str, ...]
    missed: dict[str, tuple[str, ...]]


class Session(Value):
    """A session as it was made: its tokens, counted, and its rows."""

    story: Story
    language: Language
    asked: int
    tokens: int
    rows: int
    facts: int


class Measured(Value):
    sessions: tuple[Session, ...]
    samples: tuple[Sample, ...]
    gate: Score
    gate_reference: Score
    handoffs: Score
    handoffs_reference: Score
    seconds: float


def measure(
    root: Path,
    *,
    sizes: Sequence[int] = SIZES,
    seeds: int = SEEDS,
    stories: Sequence[Story] = STORIES,
) -> Measured:
    """All of it, in folders below *root*."""
    began, count = time.perf_counter(), counter()
    sessions: list[Session] = []
    samples: list[Sample] = []
    for story in stories:
        for language in LANGUAGES:
            for tokens in sizes:
                for killed in (False, True):
                    folder = root / f"{story}-{language}-{tokens}{'-killed' * killed}"
                    known, made = _session(folder, story, language, tokens, killed, count)
                    sessions.append(made)
                    samples += _samples(known, seeds, count)
    documents, blocks = gate.handoffs(count), gate.checkpoints()
    return Measured(
        sessions=tuple(sessions),
        samples=tuple(samples),
        gate=gate.both(documents[0], blocks[0]),
        gate_reference=gate.both(documents[1], blocks[1]),
        handoffs=documents[0],
        handoffs_reference=documents[1],
        seconds=time.perf_counter() - began,
    )


def totals(samples: Sequence[Sample], measure: str, side: str) -> float | None:
    """The share over all of *samples* together; None where none of them has any."""
    found = [sample.counted[measure][side] for sample in samples if side in sample.counted.get(measure, {})]
    there = sum(number for _, number in found)
    return sum(number for number, _ in found) / there if there else None


def grouped(samples: Sequence[Sample], *names: str) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        found["/".join(str(getattr(sample, name)) for name in names)].append(sample)
    return dict(found)


def _session(
    folder: Path, story: Story, language: Language, tokens: int, killed: bool, count: TokenCounter
) -> tuple[Known, Session]:
    cwd = folder / "work"
    telling = Teller(story, language, tokens, cwd, killed=killed).tell()
    profile = telling.session.save(folder / "profile", cwd)
    if telling.soul:
        (profile / "SOUL.md").write_text(telling.soul)
    words = telling.session.rows
    made = Session(
        story=story,
        language=language,
        asked=tokens,
        tokens=sum(count(row.words) for row in words),
        rows=len(words),
        facts=len(telling.facts),
    )
    return know(telling, profile, cwd, folder / "artifacts"), made


def _samples(known: Known, seeds: int, count: TokenCounter) -> Iterator[Sample]:
    manners = ("killed",) if known.telling.open_calls else MANNERS[:-1]
    for manner in manners:
        for seed in range(seeds if manner == "lossy" else 1):
            yield _sample(known, manner, seed, count)


def _sample(known: Known, manner: Manner, seed: int, count: TokenCounter) -> Sample:
    telling, written = known.telling, write(manner, known.telling, seed=seed)
    whole = receive(known, written, count, collecting=True)
    alone = receive(known, written, count, collecting=False)
    file = written.draft if written.draft is not None else written.left_over
    texts: dict[Side, str] = {
        "afresh": whole.text,
        "worker_only": alone.text,
        "reference": reference.read(file),
        "reference_told": reference.told(file),
    }
    measures: dict[str, list[Fact]] = {kind: telling.of(kind) for kind in KINDS}
    if written.reply is not None:
        measures["next_action"] = [Fact(kind="continuation", told=telling.next_action, needles=telling.next_needles)]
    return Sample(
        story=telling.story,
        language=telling.language,
        tokens=telling.tokens,
        manner=manner,
        seed=seed,
        counted={name: {side: share(facts, text) for side, text in texts.items()} for name, facts in measures.items()},
        pack=whole.tokens,
        complaints=whole.complaints,
        invented=whole.invented,
        missed={
            name: missed
            for name, facts in measures.items()
            if (missed := tuple(fact.told for fact in facts if not fact.counts_in(texts["afresh"])))
        },
    )


__all__ = ["KINDS", "SIDES", "Measured", "Sample", "budget", "grouped", "measure", "totals"]
