from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.collected import (
    BackgroundProcess,
    Collected,
    Command,
    KeptResult,
    OpenCall,
    ToDo,
    TouchedFile,
    WorkTree,
)
from lifecycle.collected_text import HEADING, read_collected, render, shortened
from lifecycle.handoff import Handoff, compose, read_handoff
from lifecycle.prompts import one_line
from lifecycle.tokens import counter

AT = datetime(2026, 8, 1, 12, tzinfo=UTC)
COUNT = counter()


def everything(**changes: object) -> Collected:
    found = Collected(
        at=AT,
        cwd=Path("/orchard/repo/src"),
        git=WorkTree(
            root=Path("/orchard/repo"),
            branch="drawer/three",
            head="a" * 40,
            dirty=(".M src/rows.py", "D. old name.txt"),
            untracked=("note: one.md",),
            left_out=3,
            snapshot="refs/afresh/swarm1/3",
            commit="b" * 40,
            not_stored=("big.bin: 12,000,000 bytes, over 5,242,880",),
        ),
        files=(TouchedFile(path="/orchard/repo/src/rows.py", acts=("read", "patched"), times=4, last=AT),),
        commands=(
            Command(command="make test: unit", exit_code=2, at=AT),
            Command(command="(in the background) npm run dev", at=AT, cwd='/a "b": c'),
        ),
        todos=(ToDo(text="count drawer three", status="in_progress"),),
        interrupted=(OpenCall(tool="terminal", told="make deploy: live", at=AT),),
        background=(BackgroundProcess(pid=4_711, command="node server.js --port 8123"),),
        sessions=("20260801_110000_aaaaaa", "20260801_115900_bbbbbb"),
        results=(
            KeptResult(handle="0123456789ab", tool="terminal", characters=48_211, summary="ran `make` -> exit 2"),
        ),
        troubles=("the transcript: is locked",),
    )
    return found.model_copy(update=changes)


def document(collected: Collected, budget: int = 10**6) -> str:
    supplement = render(collected, budget=budget, count=COUNT)
    return compose(Handoff(worker_id="swarm1", renewal_id="r1", generation=3, created_at=AT, supplement=supplement))


def test_all_that_was_collected_stands_in_the_handoff_and_is_read_back_from_it() -> None:
    text = document(everything())
    assert read_collected(text) == everything()
    assert read_handoff(text).intact is True


def test_it_stands_behind_the_line_after_which_nothing_is_the_workers() -> None:
    found = read_handoff(document(everything()))
    assert found.sections == {}
    assert f"\n{HEADING}\n\nBy the machine at 2026-08-01T12:00:00Z" in found.body


def test_what_can_hurt_stands_first() -> None:
    text = render(everything(), budget=10**6, count=COUNT)
    titles = [line for line in text.splitlines() if line.startswith("###")]
    assert titles[:4] == [
        "### Where it stood",
        "### Interrupted calls: effect unknown, verify first",
        "### Open to-dos",
        "### Uncommitted changes",
    ]


def test_a_work_tree_without_branch_commit_or_snapshot_is_read_back_as_that() -> None:
    bare = WorkTree(root=Path("/orchard/repo"))
    assert read_collected(document(everything(git=bare, cwd=None))) == everything(git=bare, cwd=None)
    assert read_collected(document(everything(git=None))) == everything(git=None)


def test_a_document_without_the_part_has_none() -> None:
    assert read_collected("# Handoff\n\n## Completed\nall\n") is None
    assert read_collected(f"x\n{HEADING}\n\nnothing of ours\n") is None


@pytest.mark.parametrize(
    "line",
    ["- 2026-99-99T12:00:00Z terminal: x", '- 2026-08-01T12:00:00Z exit 1 in "\\u12": x', "- pid x: y", "no bullet"],
)
def test_a_line_that_cannot_be_read_never_raises(line: str) -> None:
    text = document(everything()).replace("### Open to-dos", f"{line}\n### Open to-dos")
    found = read_collected(text)
    assert found is None or found.todos == everything().todos


def many(number: int) -> Collected:
    return everything(
        files=tuple(
            TouchedFile(
                path=f"/orchard/repo/src/module_{at}/rows.py", acts=("written",), last=AT + timedelta(seconds=at)
            )
            for at in range(number)
        ),
        commands=tuple(
            Command(command=f"pytest tests/test_{at}.py", exit_code=at % 3, at=AT + timedelta(seconds=at))
            for at in range(number)
        ),
    )


def test_the_oldest_lines_of_the_longest_lists_are_left_out_and_their_number_is_said() -> None:
    text = render(many(300), budget=3_000, count=COUNT)
    assert COUNT(text) <= 3_000
    kept = read_collected(f"\n{HEADING}\n{text}")
    assert kept is not None
    assert kept.files == many(300).files[-len(kept.files) :]
    assert kept.commands == many(300).commands[-len(kept.commands) :]
    assert f"- ({300 - len(kept.files)} older ones left out)" in text
    assert (kept.interrupted, kept.todos, kept.git) == (everything().interrupted, everything().todos, everything().git)


def mixed(number: int) -> Collected:
    """One file in ten was written, one command in ten does something."""
    found = many(number)
    return found.model_copy(
        update={
            "files": tuple(
                file.model_copy(update={"acts": ("written",) if at % 10 == 0 else ("read",)})
                for at, file in enumerate(found.files)
            ),
            "commands": tuple(
                command if at % 10 == 0 else command.model_copy(update={"command": f"cat rows_{at}.txt | head -3"})
                for at, command in enumerate(found.commands)
            ),
        }
    )


def test_what_only_looked_is_left_out_before_what_did_something() -> None:
    text = render(mixed(300), budget=3_500, count=COUNT)
    kept = read_collected(f"\n{HEADING}\n{text}")
    assert kept is not None
    assert [file for file in kept.files if "written" in file.acts] == list(mixed(300).files[::10])
    assert [command for command in kept.commands if "pytest" in command.command] == list(mixed(300).commands[::10])
    assert kept.files == tuple(sorted(kept.files, key=lambda file: file.last)), "in their order"
    assert f"- ({300 - len(kept.files)} left out, first those that only looked)" in text


def test_what_was_done_again_with_other_numbers_is_left_out_before_what_was_done_once() -> None:
    once = [Command(command=f"make {word}", exit_code=0, at=AT) for word in ("plant", "water", "reap")]
    again = [Command(command=f"python show.py {number}", exit_code=0, at=AT) for number in range(200)]
    text = render(everything(commands=(*once, *again)), budget=1_500, count=COUNT)
    kept = read_collected(f"\n{HEADING}\n{text}")
    assert kept is not None
    assert kept.commands[:3] == tuple(once)
    assert kept.commands[-1] == again[-1]


def test_a_part_that_is_shortened_further_counts_on_and_keeps_what_can_hurt() -> None:
    once = render(mixed(300), budget=3_500, count=COUNT)
    twice = shortened(once, 1_200, COUNT)
    kept = read_collected(f"\n{HEADING}\n{twice}")
    assert kept is not None
    assert COUNT(twice) <= 1_200
    assert (kept.interrupted, kept.todos, kept.git) == (everything().interrupted, everything().todos, everything().git)
    assert not any(file.is_lesser for file in kept.files)
    assert kept.files == mixed(300).files[::10][-len(kept.files) :]
    assert f"- ({300 - len(kept.files)} left out, first those that only looked)" in twice
    assert shortened("no part of ours", 1_200, COUNT) == ""


@given(st.integers(0, 60), st.integers(500, 4_000))
def test_the_budget_is_never_exceeded(number: int, budget: int) -> None:
    assert COUNT(render(many(number), budget=budget, count=COUNT)) <= budget


PRINTABLE = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=40).map(one_line)


@given(st.lists(st.tuples(PRINTABLE, st.one_of(st.none(), st.integers(-300, 300)), st.one_of(st.none(), PRINTABLE))))
def test_commands_of_any_shape_are_read_back(found: list[tuple[str, int | None, str | None]]) -> None:
    commands = tuple(Command(command=text, exit_code=code, cwd=cwd, at=AT) for text, code, cwd in found)
    text = render(everything(commands=commands), budget=10**6, count=COUNT)
    read = read_collected(f"\n{HEADING}\n{text}")
    assert read is not None
    assert read.commands == commands
