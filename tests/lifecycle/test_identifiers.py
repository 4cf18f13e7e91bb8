from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.identifiers import LAST_MESSAGES, MOST, Identifier, identifiers_in, lost_from, must_survive
from tests.lifecycle.conversations import asked, called, conversation, said


def texts(text: str) -> list[str]:
    return [one.text for one in identifiers_in(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see /srv/seeds/a.csv, then ~/notes and ./b/c.py.", ["/srv/seeds/a.csv", "~/notes", "./b/c.py"]),
        ("edit src/rows.py and ledger.txt", ["src/rows.py", "ledger.txt"]),
        ("it listens on port 8443 and localhost:9090", ["8443", "9090"]),
        ("内部端口 18443，路径 /api/v2/orders", ["18443", "/api/v2/orders"]),
        ("open https://ex.com/a?b=1, please", ["https://ex.com/a?b=1"]),
        ("fixed in 3f2a9bc1 for PAY-481 (#512)", ["PAY-481", "#512", "3f2a9bc1"]),
        ("at 12:30:15 in UTF-8, SHA-256 and/or 1/2 of it; e.g. v1.2.3 deadbeef 1234567 </div>", []),
        ("https://ex.com:8080/x/y.py", ["https://ex.com:8080/x/y.py"]),
    ],
)
def test_what_is_an_identifier_and_what_is_not(text: str, found: list[str]) -> None:
    assert texts(text) == found


@pytest.mark.parametrize(
    ("kind", "text", "document", "stands"),
    [
        ("port", "8443", "the port is 8443.", True),
        ("port", "8443", "18443 lines", False),
        ("commit", "3f2a9bc1d0", "at 3f2a9bc", True),
        ("commit", "3f2a9bc1d0", "at 3f2a9bd", False),
        ("path", "/srv/a.csv", "`/srv/a.csv`", True),
        ("path", "/srv/a.csv", "/srv/a.csv2", False),
        ("path", "rows.py", "src/rows.py", True),
        ("ticket", "PAY-48", "PAY-481", False),
        ("url", "https://ex.com/a", "(https://ex.com/a)", True),
    ],
)
def test_when_a_document_holds_one(kind: str, text: str, document: str, stands: bool) -> None:
    assert Identifier.model_validate({"kind": kind, "text": text}).stands_in(document) is stands


def wanted(*parts: object) -> set[str]:
    return {one.text for one in must_survive(conversation(*parts))}  # type: ignore[arg-type]


def test_used_twice_survives_and_used_once_does_not() -> None:
    found = wanted(
        asked("go on"),
        said("I read /srv/a.csv and /srv/b.csv"),
        called("terminal", command="wc -l /srv/a.csv"),
        asked("thanks"),
    )
    assert found == {"/srv/a.csv"}


def test_once_in_the_last_request_or_an_open_todo_is_enough() -> None:
    todos = [{"content": "close PAY-9", "status": "pending"}, {"content": "read /x/y", "status": "completed"}]
    found = wanted(
        asked("first /srv/old.csv"),
        called("todo", "{}", todos=todos),
        asked("now /srv/new.csv on port 8443"),
        said("yes"),
    )
    assert found == {"/srv/new.csv", "8443", "PAY-9"}


def test_what_only_scrolled_by_was_not_used() -> None:
    log = "\n".join(f"GET https://ex.com/{number % 3}" for number in range(300))
    assert wanted(asked("look"), called("terminal", log, command="cat access"), asked("and?")) == set()


def test_the_content_of_a_written_file_was_not_used_but_its_path_was() -> None:
    call = called("write_file", path="/srv/a.py", content="open('/etc/hosts'); open('/etc/hosts')")
    assert wanted(asked("go"), call, call, asked("ok")) == {"/srv/a.py"}


def test_our_own_request_and_what_came_behind_it_does_not_count() -> None:
    request = asked("CONTEXT_HANDOFF_REQUIRED\nDRAFT: /p/memory/handoffs/draft-r1.md")
    found = conversation(asked("count /srv/a.csv"), request, said("/opt/x.py /opt/x.py"))
    assert {one.text for one in must_survive(found, before_row=2)} == {"/srv/a.csv"}
    assert "/p/memory/handoffs/draft-r1.md" not in {one.text for one in must_survive(found)}


def test_what_was_used_long_ago_does_not_count_and_there_is_a_limit() -> None:
    old = [said("/srv/a.csv /srv/a.csv"), *[said("on it")] * LAST_MESSAGES]
    assert wanted(*old, asked("next")) == set()
    assert len(wanted(asked(" ".join(f"/srv/{number}.csv" for number in range(200))))) == MOST


@given(st.text(max_size=300))
def test_a_text_loses_none_of_its_own_identifiers(text: str) -> None:
    assert lost_from(text, identifiers_in(text)) == ()


def test_half_a_surrogate_pair_in_an_argument_can_be_kept_in_the_ledger() -> None:
    """JSON holds what UTF-8 cannot, where an emoji was cut in two."""
    half = called("browser")
    given = half["call"].model_copy(update={"arguments": r'{"url": "http://ex.example/\ud83d/rows"}'})
    half = {**half, "call": given}
    assert [one.model_dump_json() for one in must_survive(conversation(half, half))]


def test_a_command_of_a_megabyte_takes_no_minute() -> None:
    text = "\n".join(f"src/rows/{number}.py" for number in range(40_000))
    began = time.process_time()
    assert len(identifiers_in(text)) == 40_000
    assert time.process_time() - began < 8
    began = time.process_time()
    must_survive(conversation(called("terminal", command=text)))
    assert time.process_time() - began < 2
