"""tmux: modes, clients, names and windows, and people who type."""

from __future__ import annotations

import os
import pty
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.faults.case import Case, renew_and_recover
from tests.faults.play import HUMAN_WORD, Play
from tests.faults.strike import run_at


def nothing_happens(play: Play, why: str, sweeps: int = 2) -> None:
    """Sweeps that may not touch the worker."""
    before = play.stage.rows()
    for _ in range(sweeps):
        play.sweep()
    play.demand(play.stage.rows() == before and play.renewal is None, f"something was done {why}")


def _copy_mode(play: Play) -> None:
    play.run("{tmux} copy-mode -t {pane}")
    nothing_happens(play, "in copy mode")
    play.demand(play.stage.format("#{pane_in_mode}") == "1", "copy mode was left")
    play.run("{tmux} send-keys -t {pane} -X cancel")
    play.recover()


def _half_typed(play: Play) -> None:
    play.run("{tmux} send-keys -t {pane} -l '" + HUMAN_WORD + "'")
    play.stage.wait(lambda: HUMAN_WORD in play.stage.screen(), 60, "the half-typed text")
    nothing_happens(play, "with text in the input line")
    play.demand(HUMAN_WORD in (play.stage.input_line() or ""), "the half-typed text is gone")
    play.run("{tmux} send-keys -t {pane} C-u")
    play.recover()
    play.demand(not any(HUMAN_WORD in text for text in play.texts()), "the half-typed text was sent")


@contextmanager
def _attached(play: Play) -> Iterator[int]:
    """A person's terminal on the worker's session."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (51, 200))  # the window and the status line below it keep their size
    command = ["tmux", "-u", "-S", play.stage.ground.socket, "attach", "-t", f"={play.stage.session}"]
    environment = {name: play.stage.ground.environment[name] for name in ("PATH", "HOME", "LANG", "TERM")}
    client = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    try:
        yield ours
    finally:
        client.kill()
        client.wait()
        os.close(ours)


def _typing_client(play: Play) -> None:
    with _attached(play) as keys:
        play.stage.wait(lambda: play.stage.format("#{session_attached}") == "1", 60, "the client")
        for key in (b"x", b"\x15"):
            with suppress(BlockingIOError):
                os.read(keys, 1 << 16)
            os.write(keys, key)
        play.stage.wait_ready()
        nothing_happens(play, "while a person typed")
    play.recover()


def _other_window(play: Play) -> None:
    play.run("{tmux} select-window -t ={session}:notes")
    renew_and_recover(play)


CASES = [
    Case(id="copy-mode", fault="the pane is scrolled back", phase="detect", source="T5", play=_copy_mode, third=True),
    Case(
        id="copy-mode-after-paste",
        fault="copy mode between paste and Enter",
        phase="request",
        source="T5",
        strike=run_at("begun", "request", "{tmux} copy-mode -t {pane}"),
        ends=("blocked:interfered",),
        third=True,
    ),
    Case(
        id="copy-mode-before-resume",
        fault="copy mode before the resume prompt",
        phase="resume",
        source="T5",
        strike=run_at("before", "resume", "{tmux} copy-mode -t {pane}"),
        ends=("blocked:not_delivered",),
    ),
    Case(id="half-typed", fault="text in the input line", phase="detect", source="T10", play=_half_typed, third=True),
    Case(
        id="half-typed-before-resume",
        fault="a person types before the resume prompt",
        phase="resume",
        source="T10",
        strike=run_at("before", "resume", "{tmux} send-keys -t {pane} -l '" + HUMAN_WORD + "'"),
        ends=("blocked:not_delivered",),
    ),
    Case(
        id="typed-into-ours",
        fault="a person types between our paste and Enter",
        phase="request",
        source="T12",
        strike=run_at("begun", "request", "{tmux} send-keys -t {pane} -l '" + HUMAN_WORD + "'"),
        ends=("resumed", "blocked:not_delivered", "blocked:interfered"),
    ),
    Case(id="client-typing", fault="an attached client types", phase="detect", source="T12", play=_typing_client),
    Case(id="window-active", fault="another window is active", phase="request", source="W-15", play=_other_window),
    *(
        Case(
            id=f"renamed-after-{step}",
            fault=f"the session is renamed after {step}",
            phase=step,
            source="T6",
            strike=run_at("after", step, "{tmux} rename-session -t ={session} elsewhere"),
            ends=("resumed", "blocked:agent_gone", "blocked:interfered", "blocked:terminal", "blocked:not_delivered"),
            third=step == "persist",
        )
        for step in ("detect", "request", "persist", "stop", "respawn")
    ),
]
