"""The tail of agent.log, found by its marks: it says what a walk over all its lines says."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lifecycle.agents.hermes import log
from lifecycle.agents.hermes.log import LogTail, read_log_tail
from tests.lifecycle.hermes.hermes_profile import MAIN, START, call, compaction_done, line

OTHER = "20261129_999999_zzzzzz"
INITIALIZED = "agent.context_compressor: Context compressor initialized: model=m"
TRIGGERED = "agent.context_compressor: Context compression triggered"


def _lines() -> some.SearchStrategy[str]:
    session, at = some.sampled_from([MAIN, MAIN, OTHER]), some.integers(0, 900)
    calls = some.builds(call, some.integers(1, 12), some.integers(1_000, 99_000), at, session=session)
    window = some.sampled_from([128_000, 400_000])
    told = some.builds(
        lambda tag, at, size: line(
            at, f"{INITIALIZED} context_length={size} threshold={size // 2} (x)", tag=tag
        ),
        some.sampled_from([None, MAIN, OTHER]), at, window,
    )  # fmt: skip
    triggered = some.builds(
        lambda tag, at, size: line(at, f"{TRIGGERED} (9 tokens >= {size} threshold)", tag=tag),
        session, at, window,
    )  # fmt: skip
    return some.one_of(
        calls,
        calls,
        calls.map(lambda text: text[:-30]),
        calls.map(lambda text: line(9, f"agent.turn_context: conversation turn: msg='{text}'", tag=MAIN)),
        some.just(line(5, START)),
        some.just(line(5, f"agent.turn_context: msg=' {START}'", tag=MAIN)),
        some.builds(compaction_done, at, session),
        some.just(line(5, f"agent.turn_context: msg='{compaction_done(4)}'", tag=MAIN)),
        told,
        triggered,
        some.just(line(3, "tools.terminal: compressed 3 files")),
        some.just("Traceback: a line without a stamp"),
    )


def walked(text: str) -> LogTail:
    """The same by each line in turn."""
    processes: list[list[tuple[int, int, re.Match[bytes]]]] = [[]]
    compacted, threshold, window = -1, None, None
    for place, words in enumerate(text.encode().splitlines()):
        found = log._CALL.match(words)
        if log._PROCESS_START.match(words):
            processes.append([])
            threshold = window = None
        elif found and found[3] == MAIN.encode():
            processes[-1].append((int(found[4]), -place, found))
        elif done := log._COMPACTED.match(words):
            compacted = place if done[3] == MAIN.encode() else compacted
        elif told := log._threshold(words, MAIN.encode()):
            threshold, window = told[0], told[1] or window
    made = [max(calls, key=lambda one: one[:2]) for calls in processes if calls]
    is_valid = made and -made[-1][1] > compacted
    return LogTail(call=log._logged(made[-1][2]) if is_valid else None, threshold=threshold, window=window)


@given(lines=some.lists(_lines(), max_size=30), cut=some.integers(0, 30), windows=some.booleans())
def test_any_log_says_what_all_its_lines_say(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], cut: int, windows: bool
) -> None:
    folder = tmp_path_factory.mktemp("profile")
    (folder / "logs").mkdir()
    older, newer = ("".join(f"{one}\n" for one in part) for part in (lines[:cut], lines[cut:]))
    for name, part in (("agent.log.1", older), ("agent.log", newer)):
        (folder / "logs" / name).write_bytes((part.replace("\n", "\r\n") if windows else part).encode())

    assert read_log_tail(folder, MAIN, begun=0) == walked(older + newer)


def test_lines_far_behind_the_last_call_are_those_of_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "BLOCK", 700)
    (tmp_path / "logs").mkdir()
    text = "\n".join(
        [line(1, START), *(call(number, 5_000 + number, number) for number in range(1, 40)), call(1, 7, 50)]
    )
    (tmp_path / "logs" / "agent.log").write_text(text + "\n")

    assert read_log_tail(tmp_path, MAIN, begun=0) == walked(text)


@pytest.mark.parametrize("ending", ["in=? out=5", "in=9 out=5 total=14 latency=1.0s"], ids=["malformed", "well-formed"])
def test_a_log_full_of_calls_is_read_in_time_that_grows_with_it(tmp_path: Path, ending: str) -> None:
    (tmp_path / "logs").mkdir()
    said = "agent.conversation_loop: API call #{number}: model=x provider=y {ending}"
    lines = (line(1, said.format(number=number, ending=ending), tag=MAIN) for number in range(60_000))
    (tmp_path / "logs" / "agent.log").write_text(
        "\n".join([*lines, line(2, said.format(number=99_999, ending="?"), tag=MAIN)])
    )
    began = time.process_time()
    read_log_tail(tmp_path, MAIN, begun=0)
    assert time.process_time() - began < 5  # each number by itself: minutes


@pytest.mark.parametrize(
    "word", ["x", "Context compressor initialized: ", f"[{MAIN}] agent.conversation_loop: API call #1: "]
)
def test_a_line_without_an_end_is_left_alone(tmp_path: Path, word: str) -> None:
    (tmp_path / "logs").mkdir()
    text = "\n".join(
        [line(1, START), call(3, 16_000, 2), line(3, "agent.x: " + word * (6_000_000 // len(word)), tag=MAIN)]
    )
    (tmp_path / "logs" / "agent.log").write_text(text)
    began = time.process_time()
    found = read_log_tail(tmp_path, MAIN, begun=0)
    assert found.call is not None
    assert found.call.prompt == 16_000
    assert time.process_time() - began < 5
