"""afresh checkpoint parse: what the parser makes of a text."""

from __future__ import annotations

import pytest

from tests.deployments.conftest import Operator

REPLY = """Here it is.

**STATE:** HANDOFF
FILES_CHANGED: src/a.py, src/b.py
COMMANDS_RUN: pytest -q
RESULT: 14 tests pass
BLOCKER: none
NEXT_ACTION: rename Depot to Store in src/c.py
RENEWAL_ID: r260801120000-abc123
"""


@pytest.mark.parametrize("source", ["standard input", "dash", "file"])
def test_a_reply_is_read_from_a_file_or_standard_input(afresh: Operator, source: str) -> None:
    file = afresh.stage.root / "reply.txt"
    file.write_text(REPLY)
    words = {"standard input": [], "dash": ["-"], "file": [str(file)]}[source]

    done = afresh("checkpoint", "parse", *words, "--json", stdin=REPLY)

    assert (done.code, done.err) == (0, "")
    assert done.json == {
        "ok": True,
        "state": "HANDOFF",
        "runtime_state": done.json["runtime_state"],
        "checkpoint_status": "handoff",
        "files_changed": "src/a.py, src/b.py",
        "commands_run": "pytest -q",
        "result": "14 tests pass",
        "blocker": "none",
        "next_action": "rename Depot to Store in src/c.py",
        "renewal_id": "r260801120000-abc123",
    }


def test_people_read_the_fields_under_each_other(afresh: Operator) -> None:
    lines = afresh("checkpoint", "parse", stdin=REPLY).out.splitlines()

    assert lines[0] == "state:              HANDOFF"
    assert "next_action:        rename Depot to Store in src/c.py" in lines


def test_a_refusal_is_a_document_with_reason_and_missing_labels(afresh: Operator) -> None:
    done = afresh("checkpoint", "parse", "--json", stdin="STATE: DONE\nRESULT: all of it\n")

    assert done.code == 1
    assert done.json == {
        "ok": False,
        "reason": "checkpoint_incomplete",
        "detail": done.json["detail"],
        "missing": ["FILES_CHANGED", "COMMANDS_RUN", "BLOCKER", "NEXT_ACTION"],
    }
    assert done.json["detail"]


def test_a_refusal_tells_people_on_standard_error(afresh: Operator) -> None:
    done = afresh("checkpoint", "parse", stdin="all good")

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("refused (checkpoint_missing): ")


def test_the_renewal_and_the_worker_that_it_must_belong_to_are_checked(afresh: Operator) -> None:
    other = afresh("checkpoint", "parse", "--renewal-id", "r260801120000-ffffff", "--json", stdin=REPLY)
    own = afresh("checkpoint", "parse", "--renewal-id", "r260801120000-abc123", "--worker", "swarm1", stdin=REPLY)

    assert (other.code, other.json["reason"]) == (1, "checkpoint_wrong_renewal")
    assert own.code == 0


def test_a_file_that_is_not_there_is_wrong_usage(afresh: Operator) -> None:
    assert (
        afresh("checkpoint", "parse", "/nowhere/reply.txt").refusal == "/nowhere/reply.txt: No such file or directory"
    )


def test_bytes_that_are_no_text_are_refused_and_not_a_traceback(afresh: Operator) -> None:
    file = afresh.stage.root / "reply.bin"
    file.write_bytes(bytes(range(256)) * 4)

    assert afresh("checkpoint", "parse", str(file)).code == 1
