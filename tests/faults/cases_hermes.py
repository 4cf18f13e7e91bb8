"""The real Hermes Agent, in both its faces."""

from __future__ import annotations

from typing import Literal

from tests.agents import hostile
from tests.agents.dictated_model import DictatedModel
from tests.agents.hermes_stage import HermesStage
from tests.faults.case import Act, Case
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
    play.stage.wait(lambda: "Allow once" in play.stage.screen(), 60, "the approval box")
    before = play.stage.rows()
    play.sweep()
    play.renew(by_hand=True, force=True)
    play.demand(kept.is_dir() and "Allow once" in play.stage.screen(), "the approval box was touched")
    play.demand(play.stage.rows() == before, "something was typed")
    play.stage.press("Enter")
    play.stage.wait_ready()
    play.recover()


def _tool_runs(play: Play) -> None:
    """A tool that runs is left to its end."""
    play.stage.say('[[tokens 70000]] [[tool terminal {"command": "sleep 5 && touch undisturbed"}]]')
    play.sweep()
    play.demand(play.renewal is None, "a worker was asked in a tool")
    play.stage.wait_ready()
    play.demand((play.stage.cwd / "undisturbed").exists(), "the tool did not come to its end")
    play.recover()


def _model(play: Play) -> DictatedModel:
    assert isinstance(play.stage, HermesStage)
    assert isinstance(play.stage.model, DictatedModel)
    return play.stage.model


def _writes_hostile(play: Play) -> None:
    """Its handoff holds all that a face, a terminal or a model could take for an order, and ten megabytes more."""
    model = _model(play)
    model.draft, model.block = play.root / "dictated", hostile.BLOCK
    model.draft.write_bytes(hostile.draft())
    play.renew()
    play.recover()
    play.demand(not list(play.root.rglob(hostile.RUN)), "something that the worker wrote was run")
    kept = "".join(path.read_text() for path in (play.home / "archive" / play.stage.worker_id).iterdir())
    play.demand(all(f"\n{keeps or said}\n" in kept for said, keeps in hostile.WORDS.items()), "words were lost")
    play.demand(hostile.SECRET not in kept, "a secret was kept")


def _types_meanwhile(play: Play) -> None:
    """A person begins a text while the handoff is written; it stays in the line, and the worker is not stopped."""
    _model(play).when_asked = lambda: play.stage.paste("half a thou")
    play.renew()
    play.recover()
    play.demand(play.stage.holds("half a thou"), "the person's text is gone")
    play.demand("half a thou" not in play.texts(), "the person's text was sent")


def _meets(status: int, words: str) -> Act:
    def refused(play: Play) -> None:
        _model(play).change(fault=status, fault_words=words, retry_after=0.2)
        play.renew()
        play.recover()

    return refused


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
    Case(
        id="hermes-cli-hostile",
        fault="Hermes cli: ten megabytes of hostile text in the handoff",
        phase="persist",
        source="issue",
        face="cli",
        play=_writes_hostile,
    ),
    Case(
        id="hermes-tui-hostile",
        fault="Hermes tui: ten megabytes of hostile text in the handoff",
        phase="persist",
        source="issue",
        face="tui",
        play=_writes_hostile,
    ),
    Case(
        id="hermes-cli-typed",
        fault="Hermes cli: a person types while the handoff is written",
        phase="stop",
        source="T10",
        face="cli",
        config={"deadlines": {"idle_before_stop": 3}},
        play=_types_meanwhile,
        ends=("blocked:not_idle",),
    ),
    Case(
        id="hermes-cli-limit",
        fault="Hermes cli: a usage limit with a stated end while the handoff is written",
        phase="parse",
        source="U6",
        face="cli",
        play=_meets(429, "Usage limit reached, try again in 2h 42m"),
        ends=("parked",),
    ),
    Case(
        id="hermes-tui-login",
        fault="Hermes tui: the login is lost while the handoff is written",
        phase="parse",
        source="O1",
        face="tui",
        play=_meets(401, "Invalid API key or token expired"),
        ends=("parked",),
    ),
]
