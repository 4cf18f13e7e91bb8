"""Process trees are recognised again, ended whole, and nothing else is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lifecycle.processes import (
    Process,
    ProcessId,
    ask_to_exit,
    boot_id,
    end,
    endable_tree_of,
    find,
    is_alive,
    runs_below,
    tree_of,
)
from lifecycle.waiting import SystemClock, wait_until

CLOCK = SystemClock()
SOON = timedelta(seconds=60)
AT_ONCE = timedelta(0)
SLEEP = [sys.executable, "-c", "import time; time.sleep(300)"]
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(300)"
FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(300)
"""


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    programs: list[subprocess.Popen[str]] = []
    yield programs
    for program in programs:
        for member in reversed(tree_of(program.pid)):
            os.kill(member.pid, signal.SIGKILL)
        program.wait()
        for pipe in (program.stdin, program.stdout):
            if pipe:
                pipe.close()


def start(started: list[subprocess.Popen[str]], code: str | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code] if code else SLEEP
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    started.append(program)
    return program


def line_of(program: subprocess.Popen[str]) -> str:
    assert program.stdout
    return program.stdout.readline().strip()


def identity_of(pid: int) -> ProcessId:
    return tree_of(pid)[0].identity


def test_a_tree_names_the_parent_before_a_child_in_its_own_session(started: list[subprocess.Popen[str]]) -> None:
    parent = start(started, FAMILY)
    child = int(line_of(parent))
    tree = tree_of(parent.pid)
    assert [process.pid for process in tree] == [parent.pid, child]
    assert tree[1].parent == parent.pid
    assert tree[0].command[0] == sys.executable
    assert tree[0].cwd == os.getcwd()  # noqa: PTH109 - the very call that a process is asked about


def test_an_environment_can_be_read_and_is_not_shown() -> None:
    own = Process(
        pid=1, parent=0, started_at=CLOCK.now(), identity=ProcessId(pid=1, started=1.0), environment={"TOKEN": "s3cret"}
    )
    assert "s3cret" not in repr(own)
    assert tree_of(os.getpid())[0].environment["PATH"]


def test_a_process_that_has_ended_is_not_found(started: list[subprocess.Popen[str]]) -> None:
    program = start(started)
    identity = identity_of(program.pid)
    assert find(identity) is not None
    program.kill()
    program.wait()
    assert not is_alive(identity)
    assert find(identity) is None
    assert tree_of(program.pid) == ()


def test_a_zombie_is_dead(started: list[subprocess.Popen[str]]) -> None:  # hermes-agent #20015, X3
    program = start(started)
    identity = identity_of(program.pid)
    program.kill()  # and not waited for
    wait_until(lambda: not is_alive(identity), SOON, CLOCK)
    assert os.kill(program.pid, 0) is None  # type: ignore[func-returns-value]  # the pid is still taken
    assert tree_of(program.pid) == ()


def test_a_reused_pid_is_another_process_and_is_left_alone(started: list[subprocess.Popen[str]]) -> None:  # X1
    program = start(started)
    older = ProcessId(pid=program.pid, started=identity_of(program.pid).started - 3600)
    assert not is_alive(older)
    ask_to_exit([older])
    assert end([older], term_after=AT_ONCE, kill_after=AT_ONCE, clock=CLOCK) == ()
    assert program.poll() is None


def test_processes_that_exit_by_themselves_get_no_signal(started: list[subprocess.Popen[str]]) -> None:
    program = start(started, "import sys; sys.stdin.read(); raise SystemExit(7)")
    identity = identity_of(program.pid)
    assert program.stdin
    program.stdin.close()
    assert end([identity], term_after=SOON, kill_after=SOON, clock=CLOCK) == ()
    assert program.wait() == 7


def test_a_tree_is_ended_whole(started: list[subprocess.Popen[str]]) -> None:
    parent = start(started, FAMILY)
    child = int(line_of(parent))
    identities = [process.identity for process in tree_of(parent.pid)]
    assert end(identities, term_after=AT_ONCE, kill_after=SOON, clock=CLOCK) == ()
    assert not any(map(is_alive, identities))
    assert parent.wait() == -signal.SIGTERM
    assert child in {identity.pid for identity in identities}


def test_a_child_that_was_not_recorded_is_ended_with_its_parent(started: list[subprocess.Popen[str]]) -> None:
    parent = start(started, FAMILY)
    child = identity_of(int(line_of(parent)))
    assert end([identity_of(parent.pid)], term_after=AT_ONCE, kill_after=SOON, clock=CLOCK) == ()
    assert not is_alive(child)


def test_a_process_deaf_to_term_is_killed(started: list[subprocess.Popen[str]]) -> None:
    program = start(started, DEAF)
    assert line_of(program) == "deaf"
    begun = time.monotonic()
    span = timedelta(seconds=0.5)
    assert end([identity_of(program.pid)], term_after=AT_ONCE, kill_after=span, clock=CLOCK) == ()
    assert program.wait() == -signal.SIGKILL
    assert time.monotonic() - begun >= span.total_seconds()


def test_afresh_ends_neither_itself_nor_its_ancestors() -> None:
    own, parent = identity_of(os.getpid()), identity_of(os.getppid())
    ask_to_exit([own, parent])
    assert is_alive(own)
    assert is_alive(parent)


def test_a_tmux_server_in_a_tree_lives_on_with_its_sessions(
    started: list[subprocess.Popen[str]], tmp_path: Path
) -> None:  # X5
    command = ["tmux", "-S", str(tmp_path / "s"), "-f", "/dev/null"]
    code = f"import subprocess, time; print(subprocess.Popen({[*command, '-D']}).pid, flush=True); time.sleep(300)"
    parent = start(started, code)
    server = int(line_of(parent))
    try:
        wait_until(lambda: "tmux: server" in _name(server), SOON, CLOCK)
        identities = [process.identity for process in tree_of(parent.pid)]
        assert server in {identity.pid for identity in identities}
        subprocess.run([*command, "new-session", "-d", "sleep 300"], check=True, capture_output=True)
        assert len(tree_of(server)) == 2, "their program runs in it"
        assert [process.pid for process in endable_tree_of(parent.pid)] == [parent.pid]
        assert endable_tree_of(server) == ()
        assert end(identities, term_after=AT_ONCE, kill_after=SOON, clock=CLOCK) == ()
        assert is_alive(next(identity for identity in identities if identity.pid == server))
        assert len(tree_of(server)) == 2
    finally:
        subprocess.run([*command, "kill-server"], check=False, capture_output=True)


def _name(pid: int) -> str:
    import psutil  # noqa: PLC0415 - the test looks behind the adapter

    return psutil.Process(pid).name()


def test_what_an_agent_runs_below_is_told_from_what_it_started(started: list[subprocess.Popen[str]]) -> None:
    """Its list of background processes is a file, and what it names is ended."""
    program = start(started, FAMILY)
    child = int(line_of(program))
    assert runs_below(child, program.pid)
    assert runs_below(child, child)
    assert not runs_below(program.pid, child)
    assert not runs_below(child, start(started).pid)


def test_the_boot_has_a_name() -> None:
    assert boot_id() == boot_id() != ""
