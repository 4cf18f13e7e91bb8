"""Folders that cannot be written and files that cannot be read, by the modes and owners that the kernel enforces."""

from __future__ import annotations

import os
from pathlib import Path

from tests.faults.case import Act, Case
from tests.faults.play import Play
from tests.faults.strike import Strike, run_at
from tests.privileges import ANOTHER, why_modes_stop_nobody

_PLACES = {
    "archive": "{home}/archive/swarm1",
    "profile": "{profile}/memory/handoffs",
    "shared": "{root}/memory-root/memory/handoffs/swarm",
}


def _shut(place: str) -> str:
    return f"mkdir -p {place}; chmod 500 {place}"


def _bound(play: Play) -> None:
    play.bound = True


def _shut_before(place: str) -> Act:
    def before(play: Play) -> None:
        _bound(play)
        play.run(_shut(place))

    return before


def _another_owns(play: Play) -> None:
    """The archive belongs to another user, as after a run with sudo."""
    _bound(play)
    place = Path(_PLACES["archive"].format_map(play.names()))
    place.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(place, ANOTHER, ANOTHER)
    else:
        place.chmod(0o500)


def _untouched(play: Play, words: str) -> None:
    """Nothing was typed, stopped or opened by *words*."""
    play.demand(play.renewal is None, f"a renewal was opened: {words}")
    play.demand(play.stage.is_ready() and len(play.watch.living(play.stage)) == 1, f"the worker was touched: {words}")


def _said_in_a_line(play: Play, name: str, *words: str) -> None:
    """The command ends in one line that names the file."""
    done = play.command(*words)
    lines = [line for line in done.stderr.splitlines() if line.startswith("afresh: ")]
    play.demand(done.returncode in (1, 2) and "Traceback" not in done.stderr, f"{words}: {done.stderr[-300:]}")
    play.demand(len(lines) == 1 and name in lines[0], f"{words}: not one line that names {name}: {done.stderr[-300:]}")


def _locked_out(name: str, path: str, mode: str, usual: str) -> Act:
    """Commands and runs say in a line what is wrong and touch nobody; when it is put right, the worker is renewed."""

    def play(play: Play) -> None:
        _bound(play)
        rows = play.stage.rows()
        play.run(f"chmod {mode} {path}")
        for words in (("status",), ("sweep", "--dry-run"), ("renew", "swarm1", "--dry-run")):
            _said_in_a_line(play, name, *words)
        code = play.renew()
        play.demand(code not in (0, None), "a run went on")
        said = play.log.read_text()
        play.demand(name in said, f"its log does not name {name}: {said[-300:]}")
        play.run(f"chmod {usual} {path}")
        play.demand(play.stage.rows() == rows, "something was typed")
        _untouched(play, name)
        play.recover()

    return play


def _unreadable_database(play: Play) -> None:
    """A worker whose database nobody may read is unknown, with the reason, and is left alone."""
    _bound(play)
    rows = play.stage.rows()
    if os.geteuid() == 0:
        play.run(f"chown {ANOTHER} {{profile}}/state.db; chmod 600 {{profile}}/state.db")
    else:
        play.run("chmod 000 {profile}/state.db")
    play.sweep()
    play.sweep()
    shown = play.command("status", "--json").stdout
    play.demand('"context_state": "unknown"' in shown and "state.db" in shown, f"status: {shown[:300]}")
    play.run(f"chown {os.geteuid()} {{profile}}/state.db; chmod 600 {{profile}}/state.db")
    play.demand(play.stage.rows() == rows, "something was typed")
    _untouched(play, "unreadable database")
    play.recover()


def _roster(play: Play) -> None:
    (play.root / "memory-root" / "swarm.yaml").write_text("workers:\n  - id: swarm1\n")
    _locked_out("swarm.yaml", "{root}/memory-root/swarm.yaml", "000", "600")(play)


def _no_ledger(play: Play) -> None:
    """AFRESH_HOME may be read and not be written, before there is a ledger."""
    _locked_out("ledger.db", "{home}", "500", "700")(play)


def _shut_profile(play: Play) -> None:
    _bound(play)
    play.run("mkdir -p {profile}/memory/handoffs; chmod 500 {profile}")


CASES = [
    *(
        Case(
            id=f"unwritable-{name}",
            fault=f"the folder of the {name} copy may not be written",
            phase="detect",
            source="E1",
            before=_shut_before(place),
            ends=("blocked:preflight_failed",),
            third=name == "profile",
            cannot=why_modes_stop_nobody,
        )
        for name, place in _PLACES.items()
    ),
    *(
        Case(
            id=f"unwritable-{name}-midway",
            fault=f"the folder of the {name} copy may not be written from persist on",
            phase="persist",
            source="E1",
            before=_bound,
            strike=run_at("before", "persist", _shut(place)),
            ends=("blocked:handoff_not_saved",),
            third=name == "shared",
            cannot=why_modes_stop_nobody,
        )
        for name, place in _PLACES.items()
    ),
    Case(
        id="another-owns-archive",
        fault="the archive belongs to another user",
        phase="detect",
        source="E1",
        before=_another_owns,
        ends=("blocked:preflight_failed",),
        cannot=why_modes_stop_nobody,
    ),
    Case(
        id="unwritable-home",
        fault="AFRESH_HOME may not be written, and holds no ledger yet",
        phase="detect",
        source="E1",
        play=_no_ledger,
        third=True,
        cannot=why_modes_stop_nobody,
    ),
    Case(
        id="unwritable-home-midway",
        fault="AFRESH_HOME may not be written from stop on",
        phase="stop",
        source="E1",
        before=_bound,
        strike=Strike("run", "before", "stop", "chmod 500 {home}; (sleep 4; chmod 700 {home}) >/dev/null 2>&1 &"),
        cannot=why_modes_stop_nobody,
    ),
    Case(
        id="unreadable-configuration",
        fault="afresh.toml may not be read",
        phase="detect",
        source="E1",
        play=_locked_out("afresh.toml", "{home}/afresh.toml", "000", "600"),
        cannot=why_modes_stop_nobody,
    ),
    Case(
        id="unreadable-roster",
        fault="the roster may not be read",
        phase="detect",
        source="E1",
        play=_roster,
        cannot=why_modes_stop_nobody,
    ),
    Case(
        id="unreadable-database",
        fault="state.db belongs to another user",
        phase="detect",
        source="Q2",
        play=_unreadable_database,
        third=True,
        cannot=why_modes_stop_nobody,
    ),
    Case(
        id="unwritable-profile-itself",
        fault="the profile's own folder, with runtime.json, may not be written",
        phase="detect",
        source="E1",
        before=_shut_profile,
        ends=("blocked:preflight_failed",),
        cannot=why_modes_stop_nobody,
    ),
]
