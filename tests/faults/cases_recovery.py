"""`afresh recover` after a run that was killed, and the host's reboot."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from functools import partial

from tests.agents.ground import has_ended
from tests.faults.case import Act, Case
from tests.faults.play import Expectation, Play
from tests.faults.strike import Step, Strike

_KILLED: tuple[tuple[Step, str], ...] = (
    ("request", "requested"),
    ("persist", "saved"),
    ("stop", "stopped"),
    ("resume", "resumed"),
)


def _recovered(phase: str) -> Act:
    """A dry run says what would go on and does nothing; the command goes on; a second one has nothing to do."""

    def play(play: Play) -> None:
        play.renew()
        stood = play.renewal
        planned = json.loads(play.command("recover", "--dry-run", "--json").stdout)
        play.demand([(one["phase"], one["goes_on"]) for one in planned] == [(phase, True)], f"planned: {planned}")
        play.demand(play.renewal == stood, "the dry run has changed the ledger")
        done = play.command("recover", "--json")
        told = [(one["worker_id"], one["outcome"]) for one in json.loads(done.stdout or "[]")]
        play.demand((done.returncode, told) == (0, [("swarm1", "renewed")]), f"{done.returncode} {done.stderr[-300:]}")
        play.demand(json.loads(play.command("recover", "--json").stdout) == [], "the second one did something")

    return play


def _goes_down(play: Play) -> None:
    """Every agent and the tmux server end at once, and the boot has another name."""
    ground = play.stage.ground
    pids = [int(pid) for pid in ground.tmux("list-panes", "-a", "-F", "#{pane_pid}").split()]
    for pid in pids:
        with suppress(ProcessLookupError):  # a kept pane has outlived its program
            os.kill(pid, signal.SIGKILL)
    ground.tmux("kill-server", check=False)
    for pid in pids:
        play.bystander.wait(partial(has_ended, pid), 60, f"the end of {pid}")
    play.boot = "the-boot-after"


def _rebooted(play: Play) -> None:
    """A worker that a sweep saw alive comes back; a second sweep starts nothing again."""
    play.sweep_healthy()
    play.configure({"policy": {"soft": 90_000, "handoff": 100_000, "hard": 120_000}})
    _goes_down(play)
    play.recover()
    started = play.stage.starts()
    play.sweep()
    play.demand(play.stage.starts() == started, "it was started twice")


def _rebooted_midway(play: Play) -> None:
    """A renewal that the reboot cut off ends with the worker at work."""
    play.sweep_healthy()
    play.renew()
    _goes_down(play)
    play.recover()


def _down() -> Expectation:
    return Expectation(agent_dies=True, bystander_dies=True, window_closes=True)


CASES = [
    *(
        Case(
            id=f"recover-{step}",
            fault=f"kill -9 after {step}, and `afresh recover`",
            phase=step,
            source="R2",
            strike=Strike("KILL", "after", step),
            play=_recovered(phase),
            third=step == "stop",
        )
        for step, phase in _KILLED
    ),
    Case(id="reboot", fault="the host reboots", phase="detect", source="T9", play=_rebooted, expect=_down, third=True),
    *(
        Case(
            id=f"reboot-after-{step}",
            fault=f"kill -9 after {step}, and the host reboots",
            phase=step,
            source="T9",
            strike=Strike("KILL", "after", step),
            play=_rebooted_midway,
            expect=_down,
            third=step == "stop",
        )
        for step in ("request", "persist", "stop", "respawn", "resume")
    ),
]
