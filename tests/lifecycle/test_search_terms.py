from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.passages import OVERLAP, SIZE, estimate, passages_of
from lifecycle.search_terms import LONGEST_TERM, MOST_TERMS, indexed, query


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("parse_state_db", "parse state db parsestatedb"),
        ("tests/test_gate.py::test_x", "tests test gate py test x teststestgatepytestx"),
        ("HandoffRequest", "handoff request handoffrequest"),
        ("HTTPServer", "http server httpserver"),
        ("PR-1234", "pr 1234 pr1234"),
        ("the ﬁle Ａ", "the file a"),
        ("数据库端口 8443", "数 据 库 端 口 数据 据库 库端 端口 8443"),
        ("端口", "端 口 端口"),
        ("port端口", "port 端 口 端口"),
        ("", ""),
    ],
)
def test_a_text_is_indexed_by_its_words_and_their_parts(text: str, terms: str) -> None:
    assert indexed(text) == terms


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ('the "parser" NEAR(lock', '"the" OR "parser" OR "near" OR "lock"'),
        ("a AND (b OR NOT c*) ^d", '"a" OR "and" OR "b" OR "or" OR "not" OR "c" OR "d"'),
        ("terms : { } + - ;--", '"terms"'),
        ("端口", '"端口"'),
        ("端", '"端"'),
        ("same same", '"same"'),
        ("\"'`*^(){}:", ""),
    ],
)
def test_a_query_is_words_joined_by_or_whatever_it_holds(text: str, asked: str) -> None:
    assert query(text) == asked


@given(st.text(max_size=300))
def test_no_text_makes_more_than_quoted_words_of_a_query(text: str) -> None:
    terms = [term for term in query(text).split(" OR ") if term]
    assert len(terms) <= MOST_TERMS
    assert all(len(term) <= LONGEST_TERM + 2 + LONGEST_TERM and term.count('"') == 2 for term in terms)
    assert all(term[0] == term[-1] == '"' and "\0" not in term for term in terms)


@given(st.text(alphabet="ab 数\n#", max_size=4_000))
def test_a_document_falls_into_passages_that_fit(text: str) -> None:
    assert all(estimate(passage.text) <= SIZE for passage in passages_of(text))


def test_no_line_of_a_document_is_lost() -> None:
    lines = [f"line {number} says something of its own" for number in range(200)]
    found = passages_of("## Facts\n" + "\n".join(lines))
    assert len(found) > 3
    assert {passage.heading for passage in found} == {"Facts"}
    assert set(lines) <= {line for passage in found for line in passage.text.splitlines()}


def test_a_passage_begins_with_the_end_of_the_one_before_it() -> None:
    first, second, *_ = passages_of("\n".join(f"line {number}" for number in range(300)))
    shared = second.text.splitlines()[0]
    assert shared in first.text.splitlines()
    assert estimate(second.text.split(first.text.splitlines()[-1])[0]) <= OVERLAP


def test_a_section_begins_a_passage_of_its_own() -> None:
    found = passages_of("# One\nfirst\n\n## Two\n\nsecond\n## Empty\n")
    assert [(passage.heading, passage.text) for passage in found] == [("One", "first"), ("Two", "second")]


@pytest.mark.parametrize("unit", ["数", "x", "{}[],"])
def test_a_line_without_end_is_cut(unit: str) -> None:
    """One line of 6,000 Chinese characters is no passage of its own."""
    found = passages_of(unit * 6_000)
    assert len(found) > 5
    assert all(estimate(passage.text) <= SIZE for passage in found)
