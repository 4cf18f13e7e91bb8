"""Folders and processes of tests that were killed are gone when the next run begins."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.agents.ground import clear_abandoned_grounds, has_ended
from tests.agents.stage import Stage
from tests.folders import clear_abandoned, give_up, own_folder

ROOT = Path(__file__).parents[2]
KILLED = """
import os, signal
from tests.agents.stage import Stage
stage = Stage()
stage.start()
stage.wait_ready()
print(stage.root, stage.pane_pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_left_is_ended_and_removed_and_a_living_one_is_left_alone(stage: Stage) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    root, pid = done.stdout.split()
    assert not has_ended(int(pid))

    cleared = clear_abandoned_grounds()

    assert Path(root) in cleared
    assert not Path(root).exists()
    assert has_ended(int(pid))
    assert stage.is_ready()
    assert stage.root not in cleared


def test_a_folder_of_a_living_process_is_abandoned_when_that_process_dies() -> None:
    program = "from tests.folders import own_folder; print(own_folder('afresh-test-lives-'), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        assert clear_abandoned("afresh-test-lives-") == []
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
        assert clear_abandoned("afresh-test-lives-") == [folder]


def test_a_folder_of_ones_own_is_not_cleared() -> None:
    folder = own_folder("afresh-test-own-")
    try:
        assert clear_abandoned("afresh-test-own-") == []
        assert folder.exists()
    finally:
        give_up(folder)
