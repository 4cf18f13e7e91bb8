"""A process of its own that is signalled while a worker of it is down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from lifecycle.shield import HELD, bringing_back_first, signals_heard

REPOSITORY = Path(__file__).parents[2]
NUMBERS = pytest.mark.parametrize("number", HELD, ids=lambda number: number.name)

_HEAD = """\
import os, select, signal, sys, threading, time
from lifecycle.shield import bringing_back_first, signals_heard

def say(word):
    os.write(1, word.encode() + b"\\n")

def work():
    "Goes on until the test says so on standard input; an interruption may come at any moment."
    say("down")
    while (letter := os.read(0, 1)) != b"u":
        also.get(letter, lambda: say("works"))()
    say("up")

def asleep():
    "Python does not hear a signal that comes in the moment before its main thread falls asleep, until it wakes."
    while True:
        threading.Event().wait(1)

also = {}

"""
ONE = """\
with bringing_back_first():
    work()
say("goes on")
time.sleep(60)
"""
NESTED = """\
with bringing_back_first():
    with bringing_back_first():
        work()
    say("inner ended")
    work()
say("goes on")
time.sleep(60)
"""
FAILING = """\
try:
    with bringing_back_first():
        work()
        raise ValueError("it did not start")
finally:
    say("unwound")
"""
IN_A_THREAD = """\
def renew():
    with bringing_back_first():
        work()
    say("thread ended")
    time.sleep(60)

with signals_heard():
    threading.Thread(target=renew, daemon=True).start()
    asleep()
"""
TWO_THREADS = """\
one_up, both_down = threading.Event(), threading.Barrier(2)
also[b"f"] = one_up.set

def first():
    with bringing_back_first():
        both_down.wait(10)
        one_up.wait(10)
    say("first is up")

def second():
    with bringing_back_first():
        both_down.wait(10)
        work()
    time.sleep(60)

with signals_heard():
    threads = [threading.Thread(target=target, daemon=True) for target in (first, second)]
    [thread.start() for thread in threads]
    asleep()
"""
HEARD_ONLY = """\
with signals_heard():
    say("down")
    time.sleep(60)
"""


class Shielded:
    """The process, and the words that it said."""

    def __init__(self, body: str, before: str = "") -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-c", _HEAD + before + body],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )

    def hears(self, word: str) -> None:
        assert self.child.stdout is not None
        found = self.child.stdout.readline().decode().strip()
        assert found == word, found or self.child.communicate(timeout=60)[1].decode()

    def is_told(self, number: int) -> None:
        """Send a signal and read the answer in words."""
        self.child.send_signal(number)
        assert self.child.stderr is not None
        said = self.child.stderr.readline().decode()
        assert said == f"{signal.Signals(number).name}: bringing the worker back first\n"

    def works(self) -> None:
        self.tells(b"w")
        self.hears("works")

    def comes_up(self) -> None:
        self.tells(b"u")

    def ended(self) -> tuple[int, str, str]:
        """The status, and what it still said on both streams."""
        out, err = self.child.communicate(timeout=60)
        return self.child.returncode, out.decode(), err.decode()

    def tells(self, letter: bytes) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(letter)
        self.child.stdin.flush()


@contextmanager
def shielded(body: str, before: str = "") -> Iterator[Shielded]:
    process = Shielded(body, before)
    try:
        yield process
    finally:
        process.child.kill()
        with suppress(ValueError):
            process.child.communicate()


def honoured(number: int, status: int, err: str) -> bool:
    """INT ends Python by a KeyboardInterrupt, TERM by the signal itself; both show as the signal to the parent."""
    assert not any(line.startswith("SIG") and line.endswith("first") for line in err.splitlines()), "it was told twice"
    return status == -number and ("KeyboardInterrupt" in err) == (number == signal.SIGINT)


@NUMBERS
def test_the_first_signal_is_answered_in_words_and_honoured_when_the_worker_is_back(number: int) -> None:
    with shielded(ONE) as process:
        process.hears("down")
        process.is_told(number)
        process.works()
        process.comes_up()
        status, out, err = process.ended()
    assert out == "up\n"
    assert honoured(number, status, err)


@NUMBERS
@pytest.mark.parametrize("first", HELD)
def test_the_second_signal_is_honoured_at_once(number: int, first: int) -> None:
    with shielded(ONE) as process:
        process.hears("down")
        process.is_told(first)
        process.child.send_signal(number)
        status, out, err = process.ended()
    assert out == ""
    assert honoured(number, status, err)
    assert err.count("KeyboardInterrupt\n") <= 1, "and the first one is not honoured on top of it"


def test_a_second_signal_whose_handler_goes_on_leaves_no_signal_waiting() -> None:
    before = "signal.signal(signal.SIGTERM, lambda *_: say('handled'))\n"
    with shielded(ONE, before) as process:
        process.hears("down")
        process.is_told(signal.SIGINT)
        process.child.send_signal(signal.SIGTERM)
        process.hears("handled")
        process.child.send_signal(signal.SIGTERM)
        process.hears("handled")
        process.comes_up()
        process.hears("up")
        process.hears("goes on")


@NUMBERS
def test_a_signal_in_a_nested_block_waits_for_the_outer_one(number: int) -> None:
    with shielded(NESTED) as process:
        process.hears("down")
        process.is_told(number)
        process.comes_up()
        process.hears("up")
        process.hears("inner ended")
        process.hears("down")
        process.works()
        process.comes_up()
        status, out, err = process.ended()
    assert out == "up\n"
    assert honoured(number, status, err)


@NUMBERS
def test_a_signal_is_honoured_also_when_the_block_fails(number: int) -> None:
    with shielded(FAILING) as process:
        process.hears("down")
        process.is_told(number)
        process.comes_up()
        process.hears("up")
        status, _, err = process.ended()
    assert honoured(number, status, err)


@NUMBERS
def test_a_block_in_a_thread_is_waited_for(number: int) -> None:
    with shielded(IN_A_THREAD) as process:
        process.hears("down")
        process.is_told(number)
        process.works()
        process.comes_up()
        process.hears("up")
        status, _, err = process.ended()
    assert honoured(number, status, err)


def test_a_signal_waits_until_the_last_of_several_threads_is_done() -> None:
    with shielded(TWO_THREADS) as process:
        process.hears("down")
        process.is_told(signal.SIGTERM)
        process.tells(b"f")
        process.hears("first is up")
        process.works()
        process.comes_up()
        # The main thread honours it as soon as the last block ends, maybe before that thread has said so.
        assert process.ended()[0] == -signal.SIGTERM


@NUMBERS
def test_a_signal_while_no_worker_is_down_goes_where_it_always_went(number: int) -> None:
    with shielded(HEARD_ONLY) as process:
        process.hears("down")
        process.child.send_signal(number)
        status, _, err = process.ended()
    assert honoured(number, status, err)
    assert "first" not in err


@pytest.mark.parametrize("script", [HEARD_ONLY, ONE])
def test_a_signal_that_was_ignored_stays_ignored(script: str) -> None:
    with shielded(script, "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n") as process:
        process.hears("down")
        for _ in range(2):
            process.child.send_signal(signal.SIGTERM)
        if script == ONE:
            process.works()
            process.comes_up()
            process.hears("up")
            process.hears("goes on")
        assert process.child.poll() is None


def test_a_handler_of_the_program_is_called_once_the_worker_is_back() -> None:
    with shielded(ONE, "signal.signal(signal.SIGTERM, lambda *_: say('handled'))\n") as process:
        process.hears("down")
        process.is_told(signal.SIGTERM)
        process.comes_up()
        process.hears("up")
        process.hears("handled")
        process.hears("goes on")


def test_the_next_block_holds_the_next_signal_again() -> None:
    twice = "signal.signal(signal.SIGTERM, lambda *_: say('handled'))\n" + ONE.partition("time")[0] * 2
    with shielded(twice) as process:
        for _ in range(2):
            process.hears("down")
            process.is_told(signal.SIGTERM)
            process.comes_up()
            process.hears("up")
            process.hears("handled")
            process.hears("goes on")
            process.child.stderr.readline()  # type: ignore[union-attr] # that it is honoured now


def test_a_signal_at_the_very_moment_of_bookkeeping_does_not_hang() -> None:
    body = """\
import lifecycle.shield
with bringing_back_first(), lifecycle.shield._down._lock:
    signal.raise_signal(signal.SIGTERM)
"""
    with shielded(body) as process:
        assert process.ended()[0] == -signal.SIGTERM


def test_signals_in_a_hail_neither_hang_nor_hurt() -> None:
    hail = """\
signal.signal(signal.SIGTERM, lambda *_: None)
say("down")
rounds = 0
while rounds < 1_000 or not select.select([sys.stdin], [], [], 0)[0]:
    rounds += 1
    with signals_heard(), bringing_back_first():
        with bringing_back_first():
            pass
signal.signal(signal.SIGTERM, signal.SIG_IGN)
"""
    with shielded(hail) as process:
        process.hears("down")
        for _ in range(10_000):
            process.child.send_signal(signal.SIGTERM)
            assert process.child.poll() is None
        process.comes_up()
        assert process.child.wait(60) == 0


def test_the_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in HELD]
    with signals_heard(), bringing_back_first():
        assert [signal.getsignal(number) for number in HELD] != before
        with bringing_back_first():
            pass
    assert [signal.getsignal(number) for number in HELD] == before
    with pytest.raises(ValueError, match="x"), bringing_back_first():
        raise ValueError("x")  # noqa: EM101
    assert [signal.getsignal(number) for number in HELD] == before
