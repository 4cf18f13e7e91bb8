from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from lifecycle.errors import RenewalInProgress
from lifecycle.lock import held, is_held, one_of
from lifecycle.waiting import SystemClock, wait_until

REPOSITORY = Path(__file__).parents[2]

_HOLDS = """\
import sys
from pathlib import Path
from lifecycle.lock import held
with held(Path(sys.argv[1])):
    {meanwhile}
    print("holds", flush=True)
    sys.stdin.read()
"""
_PROBES = """\
import sys
from pathlib import Path
from lifecycle.lock import is_held
print("begins", flush=True)
while True:
    is_held(Path(sys.argv[1]))
"""
_TAKES = """\
import sys
from pathlib import Path
from lifecycle.lock import one_of
print("stands", flush=True)
sys.stdin.readline()
with one_of(Path(sys.argv[1]), int(sys.argv[2])) as taken:
    print(taken, flush=True)
    sys.stdin.read()
"""


@contextmanager
def running(script: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """The script in a process of its own, once it printed its first line."""
    child = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    try:
        assert line_of(child)
        yield child
    finally:
        child.kill()
        child.communicate()


def line_of(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def wait_free(path: Path) -> None:
    wait_until(lambda: not is_held(path), timedelta(seconds=60), SystemClock(), every=timedelta(seconds=0.01))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "afresh" / "locks" / "builder.lock"


def test_a_lock_that_another_process_holds_is_refused_with_the_workers_name(path: Path) -> None:
    with running(_HOLDS.format(meanwhile="pass"), path):
        assert is_held(path)
        with (
            pytest.raises(RenewalInProgress, match="swarm7: another process is at work on it") as refused,
            held(path, worker_id="swarm7"),
        ):
            pytest.fail("two hold it")
        assert refused.value.worker_id == "swarm7"
        with pytest.raises(RenewalInProgress, match="builder: another process"), held(path):
            pytest.fail("two hold it")


def test_a_lock_is_free_when_its_holder_lets_go(path: Path) -> None:
    assert not is_held(path)
    with held(path):
        assert is_held(path)
    assert not is_held(path)
    with held(path):
        pass


def test_a_lock_is_free_when_its_holder_fails(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), held(path):
        raise KeyboardInterrupt
    assert not is_held(path)


def test_a_lock_is_free_when_its_holder_is_killed(path: Path) -> None:
    with running(_HOLDS.format(meanwhile="pass"), path) as child:
        child.send_signal(signal.SIGKILL)
        wait_free(path)
        with held(path):
            pass


def test_a_lock_is_not_inherited_by_what_its_holder_started(path: Path, tmp_path: Path) -> None:
    meanwhile = (
        "import subprocess; child = subprocess.Popen(['sleep', '60'], close_fds=False, start_new_session=True); "
        f"Path({str(tmp_path / 'pid')!r}).write_text(str(child.pid))"
    )
    with running(_HOLDS.format(meanwhile=meanwhile), path) as child:
        heir = int((tmp_path / "pid").read_text())
        try:
            child.send_signal(signal.SIGKILL)
            wait_free(path)
            os.kill(heir, 0)  # it lives, and holds nothing
        finally:
            os.kill(heir, signal.SIGKILL)


def test_two_threads_do_not_hold_one_lock(path: Path) -> None:
    refused: list[bool] = []

    def try_it() -> None:
        try:
            with held(path):
                refused.append(False)
        except RenewalInProgress:
            refused.append(True)

    with held(path):
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join(60)
    assert refused == [True]


def test_to_ask_whether_a_lock_is_held_keeps_nobody_from_taking_it(path: Path) -> None:
    with held(path):
        pass
    with running(_PROBES, path):
        for _ in range(3_000):
            assert not is_held(path), "one that asks takes another for a holder"
            with held(path):
                pass


def test_to_ask_makes_no_file(path: Path) -> None:
    assert not is_held(path)
    assert not path.parent.exists()


def test_the_file_is_its_owners_and_names_who_holds_it(path: Path) -> None:
    with held(path):
        assert path.read_text() == f"{os.getpid()}\n"
        assert is_held(path)
    assert path.read_text() == f"{os.getpid()}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_disk_that_is_full_does_not_keep_a_worker_from_being_locked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with held(path):
        assert is_held(path)


def test_a_link_in_the_place_of_a_lock_is_not_written_through(path: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("words")
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic"), held(path):
        pytest.fail("it was followed")
    assert (tmp_path / "precious").read_text() == "words"


@pytest.mark.parametrize("places", [1, 3])
def test_there_are_as_many_places_as_there_are_to_be(path: Path, places: int) -> None:
    folder = path.parent
    with ExitStack() as stack:
        children = [stack.enter_context(running(_TAKES, folder, places)) for _ in range(places + 1)]
        for child in children:
            assert child.stdin is not None
            child.stdin.write("take\n")
            child.stdin.flush()
        taken = {child.pid: line_of(child) for child in children}
        assert sorted(taken.values()) == ["False"] + ["True"] * places
        with one_of(folder, places) as late:
            assert not late
        leaver = next(child for child in children if taken[child.pid] == "True")
        leaver.send_signal(signal.SIGKILL)
        leaver.wait(60)
        with one_of(folder, places) as late:
            assert late, "a place is free again"
            with one_of(folder, places) as later:
                assert not later
        with one_of(folder, places) as late:
            assert late


def test_a_place_is_given_back_when_its_holder_fails(path: Path) -> None:
    def fail(error: BaseException) -> None:
        with one_of(path.parent, 1) as taken:
            assert taken
            raise error

    for error in (KeyboardInterrupt(), RenewalInProgress("inside")):
        with pytest.raises(type(error)):
            fail(error)
    with one_of(path.parent, 1) as taken:
        assert taken
