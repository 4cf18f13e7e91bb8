"""Agents that are busy, start late or not at all, lose what is typed, and will not end."""

from __future__ import annotations

from tests.faults.case import Case
from tests.faults.cases_agent import _late
from tests.faults.play import Play, is_running


def _waits_for_idle(play: Play) -> None:
    """Busy, nothing is typed; idle, it is renewed."""
    play.stage.behave(held=True)
    play.stage.paste("a long turn [[tokens 70000]]")
    play.stage.press("Enter")
    play.stage.wait_busy()
    before = play.texts()
    play.sweep()
    play.demand(not any("CONTEXT_HANDOFF" in text for text in play.texts()[len(before) :]), "asked in a turn")
    play.stage.behave(held=False)
    play.stage.wait_ready()
    play.recover()


def _queues_over_hard(play: Play) -> None:
    play.stage.fill(95_000)
    play.stage.paste("a long turn [[slow 10]] [[tokens 95000]]")
    play.stage.press("Enter")
    play.stage.wait_busy()
    play.renew()
    play.recover()


def _open_dialog(play: Play) -> None:
    """A dialog is left alone; when a person has answered it, the worker is renewed."""
    play.expect.approved_by_human = True
    play.stage.paste("[[dialog]] [[tokens 70000]]")
    play.stage.press("Enter")
    play.stage.wait(lambda: "Allow once" in play.stage.screen(), 60, "the dialog")
    before = play.stage.rows()
    play.sweep()
    play.renew(by_hand=True, force=True)
    play.demand(play.stage.rows() == before and "Allow once" in play.stage.screen(), "the dialog was touched")
    play.stage.press("1")
    play.stage.wait_ready()
    play.recover()


def _background_ends(play: Play) -> None:
    """A process that the agent runs in the background ends with it; none is left that nobody knows of."""
    child = int((play.profile / "child.pid").read_text())
    play.renew()
    play.recover()
    play.demand(not is_running(child), "a background process outlived its agent")


def _renewed_once(play: Play) -> None:
    """Full again at once, it is left alone for its cooldown: no loop of renewals."""
    play.renew()
    play.recover()
    play.stage.wait_ready()
    play.stage.fill(80_000)
    play.sweep()
    play.sweep()


CASES = [
    Case(
        id="start-slow",
        fault="the new agent needs 4 s to start",
        phase="respawn",
        source="W-21",
        later_manners={"start_delay": 4},
    ),
    Case(
        id="start-late",
        fault="the new agent is ready after the deadline",
        phase="respawn",
        source="W-21",
        later_manners={"start_delay": 6},
        config={"deadlines": {"ready": 3}},
        play=_late,
    ),
    Case(
        id="start-fails-once",
        fault="the first start of the new agent fails",
        phase="respawn",
        source="T14",
        later_manners={"failed_starts": 2},
        third=True,
    ),
    Case(
        id="start-fails-always",
        fault="no start of the new agent succeeds",
        phase="respawn",
        source="T14",
        later_manners={"failed_starts": 99},
        ends=("blocked:not_ready",),
        third=True,
    ),
    Case(
        id="start-never-ready",
        fault="the new agent never shows its input line",
        phase="respawn",
        source="T17",
        later_manners={"never_ready": True},
        config={"deadlines": {"ready": 5}},
        ends=("blocked:not_ready",),
    ),
    Case(
        id="start-heavy",
        fault="the fresh session begins above the soft limit",
        phase="prove",
        source="P",
        later_manners={"baseline": 40_000},
        ends=("blocked:baseline_too_large",),
    ),
    Case(
        id="enter-lost",
        fault="the first Enter does nothing",
        phase="request",
        source="T1",
        later_manners={"lost_enters": 2},
        third=True,
    ),
    Case(
        id="enter-lost-always",
        fault="no Enter does anything",
        phase="request",
        source="T1",
        later_manners={"lost_enters": 99},
        ends=("blocked:not_delivered",),
    ),
    Case(
        id="paste-lost",
        # Each agent counts its own: of the old one the first was the turn that filled it.
        fault="the request's first paste vanishes, and both of the resume prompt's",
        phase="resume",
        source="T16",
        later_manners={"lost_pastes": 2},
        ends=("blocked:not_delivered",),
    ),
    Case(
        id="paste-lost-always",
        fault="every paste vanishes",
        phase="request",
        source="T16",
        later_manners={"lost_pastes": 99},
        ends=("blocked:not_delivered",),
    ),
    Case(
        id="paste-lost-at-resume",
        fault="the resume prompt's paste vanishes",
        phase="resume",
        source="T16",
        later_manners={"lost_pastes": 1},
    ),
    Case(
        id="stop-ignored",
        fault="the agent ignores HUP and TERM",
        phase="stop",
        source="X1",
        manners={"ignore_signals": True},
        config={"deadlines": {"exit": 2, "term": 1}},
        third=True,
    ),
    Case(id="stop-slow", fault="the agent needs 3 s to end", phase="stop", source="W-22", manners={"exit_seconds": 3}),
    Case(
        id="child-tool", fault="a tool runs as the agent's child", phase="stop", source="X1", manners={"child": "tool"}
    ),
    Case(
        id="child-own-session",
        fault="a child in its own session, and the agent ignores TERM",
        phase="stop",
        source="X1",
        manners={"child": "stray", "ignore_signals": True},
    ),
    Case(
        id="child-background",
        fault="a background process of the agent's",
        phase="stop",
        source="B4",
        manners={"child": "background"},
        play=_background_ends,
    ),
    Case(id="busy-turn", fault="a turn is running", phase="detect", source="W-15", play=_waits_for_idle, third=True),
    Case(
        id="busy-over-hard",
        fault="over the hard limit in a turn",
        phase="request",
        source="T11",
        play=_queues_over_hard,
    ),
    Case(id="dialog-open", fault="an approval box is open", phase="detect", source="A1", play=_open_dialog, third=True),
    Case(
        id="full-again", fault="full again right after its renewal", phase="detect", source="W-23", play=_renewed_once
    ),
]
