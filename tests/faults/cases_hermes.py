"""The real Hermes Agent, in both its faces."""

from __future__ import annotations

from typing import Literal

from tests.faults.case import Case
from tests.faults.play import Expectation, Play
from tests.faults.strike import Strike

_Face = Literal["cli", "tui"]


def _dialog(play: Play) -> None:
    """An approval box is left alone; when a person has answered it, the worker is renewed."""
    play.expect.approved_by_human = True
    config = play.profile / "config.yaml"
    config.write_text(f"{config.read_text()}approvals: {{mode: manual}}\n")
    kept = play.stage.cwd / "seeds"
    kept.mkdir()
    play.stage.say(f'[[tokens 70000]] [[tool terminal {{"command": "rm -rf {kept}"}}]]')
    play.stage.wait(lambda: "Allow once" in play.stage.screen(), 30, "the approval box")
    before = play.stage.rows()
    play.sweep()
    play.renew(by_hand=True, force=True)
    play.demand(kept.is_dir() and "Allow once" in play.stage.screen(), "the approval box was touched")
    play.demand(play.stage.rows() == before, "something was typed")
    play.stage.press("Enter")
    play.stage.wait_ready(60)
    play.recover()


def _tool_runs(play: Play) -> None:
    """A tool that runs is left to its end."""
    play.stage.say('[[tokens 70000]] [[tool terminal {"command": "sleep 5 && touch undisturbed"}]]')
    play.sweep()
    play.demand(play.renewal is None, "a worker was asked in a tool")
    play.stage.wait_ready(60)
    play.demand((play.stage.cwd / "undisturbed").exists(), "the tool did not come to its end")
    play.recover()


def _struck(face: _Face, strike: Strike) -> Case:
    return Case(
        id=f"hermes-{face}-{strike.act.lower()}-{strike.where}-{strike.step}",
        fault=f"Hermes {face}: {strike}",
        phase=strike.step,
        source="R2" if strike.act == "KILL" else "issue",
        strike=strike,
        face=face,
        third=(face, strike.step) == ("cli", "stop"),
    )


CASES = [
    _struck("cli", Strike("KILL", "inside", "request")),
    _struck("cli", Strike("KILL", "begun", "stop")),
    _struck("cli", Strike("KILL", "inside", "stop")),
    _struck("cli", Strike("KILL", "inside", "respawn")),
    _struck("cli", Strike("KILL", "begun", "resume")),
    _struck("cli", Strike("KILL", "inside", "prove")),
    _struck("cli", Strike("TERM", "inside", "respawn")),
    _struck("tui", Strike("KILL", "begun", "request")),
    _struck("tui", Strike("KILL", "inside", "respawn")),
    _struck("tui", Strike("KILL", "inside", "resume")),
    Case(
        id="hermes-cli-dialog",
        fault="Hermes cli: an approval box is open",
        phase="detect",
        source="A2",
        face="cli",
        play=_dialog,
    ),
    Case(
        id="hermes-tui-refused",
        fault="Hermes tui: the checkpoint of another renewal",
        phase="parse",
        source="W-10",
        face="tui",
        model={"handoff": "wrong_id"},
        ends=("blocked:checkpoint_wrong_renewal",),
    ),
    Case(
        id="hermes-cli-killed",
        fault="Hermes cli: the agent is killed while it is asked",
        phase="request",
        source="F2",
        face="cli",
        model={"handoff_delay": 5},
        strike=Strike("run", "after", "request", "kill -9 {pid}"),
        ends=("blocked:agent_gone",),
        expect=lambda: Expectation(agent_dies=True),
    ),
    Case(
        id="hermes-cli-tool",
        fault="Hermes cli: a tool is running",
        phase="detect",
        source="W-15",
        face="cli",
        play=_tool_runs,
    ),
]
