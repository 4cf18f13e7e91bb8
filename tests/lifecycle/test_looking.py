from __future__ import annotations

import pytest

from lifecycle.looking import only_looks


@pytest.mark.parametrize(
    "command",
    [
        "cat a.txt",
        "git status --short",
        "git branch -a",
        "git branch",
        "grep -rn page src | head -20",
        "find . -name '*.py' 2>/dev/null | sort | wc -l",
        "sed -n 1,80p src/rows.py",
    ],
)
def test_a_look_and_looks_joined_by_pipes_change_nothing(command: str) -> None:
    assert only_looks(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "make",
        "cat a > b",
        "cat a | tee b",
        "find . -delete",
        "find . -name x -exec rm {} +",
        "sed -n -i 1d rows.py",
        "sort -o rows.txt rows.txt",
        "git branch -D main",
        "git branch new",
        "cat $(rm x)",
        "ls; rm x",
        "ls || rm x",
        "pytest -q",
    ],
)
def test_what_writes_or_runs_something_else_is_no_look(command: str) -> None:
    assert not only_looks(command)
