"""A third of `make fidelity`, as a test: the short sessions, all writers, both languages, both stories."""

from __future__ import annotations

import pytest

from tests.fidelity import reference
from tests.fidelity.facts import Fact
from tests.fidelity.measuring import Measured, measure, totals
from tests.fidelity.report import as_json, misses, table, targets

SIZE = 20_000


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    return measure(tmp_path_factory.mktemp("fidelity"), sizes=(SIZE,), seeds=2)


def test_what_crosses_a_renewal_meets_every_target(measured: Measured) -> None:
    assert [target for target in targets(measured) if not target.holds] == [], "\n".join(misses(measured))


def test_sessions_have_the_length_that_they_are_said_to_have(measured: Measured) -> None:
    assert [session for session in measured.sessions if abs(session.tokens - SIZE) > SIZE / 10] == []


def test_the_difference_is_afreshs_own(measured: Measured) -> None:
    lossy = [sample for sample in measured.samples if sample.manner == "lossy"]
    for measure_ in ("recall", "artefact", "rule", "continuation"):
        ours, alone = totals(lossy, measure_, "afresh"), totals(lossy, measure_, "worker_only")
        assert ours is not None
        assert alone is not None
        assert ours > alone, measure_


def test_the_file_has_the_keys_that_it_is_read_by(measured: Measured) -> None:
    found = as_json(measured)
    for kind in ("recall", "artefact", "continuation", "decision", "rule", "must_abstain"):
        assert {"afresh", "worker_only", "reference"} <= found["facts"][kind].keys()
    assert {"false_accepts", "accepted_good", "n", "reference"} <= found["gate"].keys()
    assert {"max_tokens", "over_budget"} <= found["pack"].keys()
    assert found["seconds"] > 0
    assert "MISS" not in table(measured)


def test_a_fact_counts_only_where_its_value_stands_beside_what_it_is_the_value_of() -> None:
    fact = Fact(kind="recall", told="", needles=("kale", "4711"))
    assert fact.counts_in("x\nThe Kale quota is 4711.\n")
    for text in ("kale\n4711", "kale: 47110", "kale: 4711.5", "kales 4711", "kale"):
        assert not fact.counts_in(text)


def test_a_claim_counts_as_taken_back_only_where_the_words_that_do_so_stand_behind_it() -> None:
    fact = Fact(kind="must_abstain", told="", needles=("freeze", "docs"), back=("docs", "lifted"))
    assert fact.counts_in("nothing")
    assert fact.counts_in("freeze docs\nthe freeze of docs is lifted")
    assert not fact.counts_in("the freeze of docs is lifted\nfreeze docs")
    assert not fact.counts_in("freeze docs")


def test_the_reference_tells_a_path_and_takes_any_file() -> None:
    assert "latest.md" in reference.told("")
    assert reference.told(None) == reference.read(None) == ""
    assert "count drawer three" in reference.read("count drawer three")
