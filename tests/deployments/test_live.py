from __future__ import annotations

import os
import signal
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from deployments import live
from lifecycle.policy import Limits
from lifecycle.status import BlockStatus, WorkerStatus
from tests.deployments.conftest import COMMAND, REPOSITORY, Operator

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def row(**changes: object) -> WorkerStatus:
    return WorkerStatus.model_validate(
        {
            "worker_id": "swarm1", "managed": True, "automatic": True, "agent": "hermes", "session_id": "s",
            "profile": Path("p"), "model": "m",
            "context_window": 200_000, "compaction_point": 150_000, "tokens": 50_000, "tokens_source": "api_log",
            "session_total": 0, "compactions": 0, "context_state": "healthy", "lifecycle_state": "idle",
            "state": "healthy", "recommended_action": "none", "accepting_work": True,
            "policy": Limits(soft=25_000, handoff=50_000, hard=100_000), "signal": "occupancy",
            "last_activity_at": None, "last_handoff_at": None, "handoff_path": Path("h"), "handoff_exists": False,
            "pane_state": "ready", "block": None, "phase": None, "renewal_id": None, "generation": 1,
            "read_at": NOW, "error": None, "why": "healthy", **changes,
        }
    )  # fmt: skip


def drawn(rows: list[WorkerStatus], width: int = 160) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as shown:
        console.print(live.screen(rows, NOW))
    return [line.rstrip() for line in shown.get().splitlines()]


def test_a_bar_is_filled_to_the_hard_limit_and_marks_the_two_others() -> None:
    assert str(live.bar(row(tokens=50_000))) == "██████┃█████┃░░░░░░░░░░░"
    assert str(live.bar(row(tokens=250_000))) == "██████┃█████┃███████████"
    assert str(live.bar(row(tokens=None))) == "░░░░░░┃░░░░░┃░░░░░░░░░░░"


def test_the_figure_that_decides_fills_the_bar() -> None:
    assert "█" not in str(live.bar(row(tokens=90_000, session_total=0, signal="session_total")))


def test_who_waits_for_a_human_comes_first_and_is_counted() -> None:
    block = BlockStatus(reason="not_ready", detail="no READY", phase="stopped", at=NOW, worker_down=True, choices=())
    lines = drawn([row(), row(worker_id="swarm2", block=block, lifecycle_state="blocked")])

    assert lines[0] == "2 workers · 1 blocked · 0 renewing · 0 over a limit · 12:00:00 UTC"
    assert [line.split()[0] for line in lines[3:]] == ["swarm2", "swarm1"]
    assert "not_ready: no READY" in lines[3]


def test_words_of_workers_are_no_markup() -> None:
    assert "[red]stop[/red] [/]" in drawn([row(why="[red]stop[/red] [/]")])[3]


def test_on_a_terminal_the_view_is_live_and_ctrl_c_ends_it_and_gives_the_screen_back(running: Operator) -> None:
    pid, terminal = os.forkpty()
    if pid == 0:
        os.chdir(REPOSITORY)
        os.execve(COMMAND[0], [*COMMAND, "status", "--watch"], running.environment(TERM="xterm-256color"))  # noqa: S606
    try:
        shown = _read_until(terminal, b"swarm1")
        assert b"\x1b[?1049h" in shown
        os.write(terminal, b"\x03")
        assert b"\x1b[?1049l" in _read_until(terminal, b"\x1b[?1049l")
    except BaseException:
        os.kill(pid, signal.SIGKILL)  # else one that goes on would be waited for without end
        raise
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) in (130, -signal.SIGINT)


def _read_until(terminal: int, wanted: bytes) -> bytes:
    shown = b""
    while wanted not in shown:
        shown += os.read(terminal, 4096)
    return shown
