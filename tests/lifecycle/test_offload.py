from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lifecycle import artifacts
from lifecycle.offload import keep_results, show_command, summary_of
from lifecycle.trail import LargeResult

AT = datetime(2026, 8, 1, 12, tzinfo=UTC)


def result(
    text: str = "one\ntwo", *, tool: str = "terminal", told: str = "make test", code: int | None = 0
) -> LargeResult:
    return LargeResult(tool=tool, told=told, text=text, size=len(text), exit_code=code, at=AT)


@pytest.mark.parametrize(
    ("found", "summary"),
    [
        (result(), "ran `make test` -> exit 0, 2 lines"),
        (result("ok\n0 errors\nE   AssertionError: 1", code=1),
         "ran `make test` -> exit 1, 3 lines; line 3: E AssertionError: 1"),
        (result("FAILED tests/a.py", code=0), "ran `make test` -> exit 0, 1 line"),
        (result("all is well", code=1), "ran `make test` -> exit 1, 1 line"),
        (result("a\nTraceback (most recent call last):", tool="web_extract", told="https://a.example", code=None),
         "`https://a.example`, 2 lines; line 2: Traceback (most recent call last):"),
        (result(told="echo `date`", code=None), "ran `echo 'date'`, 2 lines"),
    ],
)  # fmt: skip
def test_a_summary_says_what_was_called_how_it_ended_and_the_first_complaint(found: LargeResult, summary: str) -> None:
    assert summary_of(found) == summary


def test_a_summary_is_one_short_line_without_secrets() -> None:
    token = "ghp_" + "a1B2" * 9
    found = summary_of(result(f"error: {token} " + "x" * 5_000, told="curl " + "y" * 5_000 + "\nrm", code=1))
    assert token not in found
    assert "\n" not in found
    assert len(found) < 400


def test_each_result_is_kept_and_named_by_its_handle(tmp_path: Path) -> None:
    (kept,) = keep_results(tmp_path, [result("first\nsecond")])
    assert artifacts.read(tmp_path, kept.handle) == "first\nsecond"
    assert (kept.tool, kept.characters, kept.summary) == ("terminal", 12, "ran `make test` -> exit 0, 2 lines")


def test_the_command_that_shows_one_names_the_folder_and_quotes_it() -> None:
    words = show_command(Path("/home/me/my afresh"))
    assert words.startswith("AFRESH_HOME='/home/me/my afresh' /")
    assert words.endswith("afresh artifact show")
