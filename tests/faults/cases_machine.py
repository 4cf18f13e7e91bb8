"""The machine: disks, databases, clocks, files of others, process ids."""

from __future__ import annotations

import json
import subprocess
import sys

from lifecycle.ledger import Ledger
from lifecycle.processes import ProcessId, identity_of
from lifecycle.waiting import SystemClock
from tests.agents.replies import document
from tests.faults.case import Case, renew_and_recover
from tests.faults.play import Play
from tests.faults.strike import PROGRAM, STEPS, Act, Step, Strike, run_at

_LOCK = (
    f"rm -f {{root}}/locked; ({PROGRAM}lock_database %s %s {{root}}/locked &) ; "
    "i=0; while [ ! -e {root}/locked ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done"
)


def _lock(file: str, seconds: int) -> str:
    return _LOCK % (file, seconds)


def _lock_ledger(play: Play) -> None:
    with Ledger(play.home / "ledger.db"):
        pass
    play.run(_lock("{home}/ledger.db", 4))


_CHECKPOINT = f"{PROGRAM}checkpoint_database {{profile}}/state.db; "
"""As the agent does from time to time: what is in its write-ahead log would be read past a broken file."""

_BREAK = {
    "zero": "cp {profile}/state.db {root}/kept.db; : > {profile}/state.db",
    "truncated": _CHECKPOINT + "cp {profile}/state.db {root}/kept.db; truncate -s 5000 {profile}/state.db",
    "garbage": _CHECKPOINT
    + "cp {profile}/state.db {root}/kept.db; "
    + "dd if=/dev/urandom of={profile}/state.db bs=4096 count=1 conv=notrunc",
    "missing": "mv {profile}/state.db {profile}/kept.db",
}
_MEND = {
    **dict.fromkeys(("zero", "truncated", "garbage"), "cat {root}/kept.db > {profile}/state.db"),
    "missing": "mv {profile}/kept.db {profile}/state.db",
}


def _unreadable(kind: str) -> Case:
    """An unreadable worker is unknown, never healthy, and nothing is done to it; readable again, it is renewed."""

    def play(play: Play) -> None:
        rows = play.stage.rows()
        play.run(_BREAK[kind])
        play.sweep()
        play.sweep()
        play.demand(play.renewal is None, "an unreadable worker was renewed")
        play.demand(
            len(play.watch.living(play.stage)) == 1 and play.stage.is_ready(), "an unreadable worker was touched"
        )
        play.run(_MEND[kind])
        play.demand(play.stage.rows() == rows, "the transcript is not what it was")
        play.recover()

    return Case(
        id=f"database-{kind}", fault=f"state.db is {kind}", phase="detect", source="Q2", play=play, third=kind == "zero"
    )


CLOCK_STEPS: tuple[Step, ...] = ("request", "parse", "stop", "prove")
JUMPS: tuple[tuple[Act, int], ...] = (("clock", 3600), ("clock", -3600), ("nap", 600))


def _clock(act: Act, seconds: int, step: Step) -> Case:
    """A jump may cost a deadline; what then turns up clears the block."""
    words = "the process sleeps for" if act == "nap" else "the wall clock jumps by"
    return Case(
        id=f"{act}-{'back' if seconds < 0 else 'on'}-before-{step}",
        fault=f"{words} {seconds} s before {step}",
        phase=step,
        source="K1",
        strike=Strike(act, "before", step, str(seconds)),
        # One that answers while it is being told to carry on has been told so: the block is left to a human.
        ends=("resumed", "blocked:handoff_timeout") if step == "parse" and seconds > 0 else ("resumed",),
        play=_clear,
        third=(act, step) in (("clock", "parse"), ("nap", "stop")) and seconds > 0,
    )


def _clear(play: Play) -> None:
    play.renew()
    for _ in range(3):
        play.settle()
        if play.renewal is not None and play.renewal.end is not None:
            return
        play.sweep()


def _torn_runtime(play: Play) -> None:
    (play.profile / "runtime.json").write_text('{"state": "executing", "curren')
    renew_and_recover(play)


def _unknown_enums(play: Play) -> None:
    path = play.profile / "runtime.json"
    path.write_text(json.dumps({"state": "levitating", "phase": 7, "checkpointStatus": [], "theirs": {"keep": "me"}}))
    renew_and_recover(play)
    play.demand(json.loads(path.read_text())["theirs"] == {"keep": "me"}, "a key of others is lost")


_WRITER = """
import json, os, sys, time
path, n = sys.argv[1], 0
while os.path.exists(sys.argv[2]):
    try: doc = json.loads(open(path).read())
    except (OSError, ValueError): doc = {}
    n += 1
    doc["beat"] = n
    with open(path + ".other", "w") as f: f.write(json.dumps(doc))
    os.replace(path + ".other", path)
    time.sleep(0.005)
"""


def _other_writers(play: Play) -> None:
    """Another program rewrites runtime.json two hundred times a second for the whole renewal."""
    path, flag = play.profile / "runtime.json", play.root / "writing"
    path.write_text('{"theirs": "kept"}')
    flag.touch()
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path), str(flag)])
    try:
        renew_and_recover(play)
    finally:
        flag.unlink()
        writer.wait(timeout=60)
    play.demand(json.loads(path.read_text()).get("theirs") == "kept", "a key of others is lost")


def _reused_pid(play: Play) -> None:
    """The pid of a process that was to be ended belongs to the neighbour by now, who started at another time."""
    play.renew()
    neighbour = identity_of(play.neighbour_pid)
    assert neighbour is not None
    with Ledger(play.home / "ledger.db") as ledger:
        renewal = ledger.open_renewals()[0]
        faked = ProcessId(pid=neighbour.pid, started=neighbour.started - 600)
        ledger.put(renewal.model_copy(update={"stopping": (*renewal.stopping, faked)}))
    play.recover()


def _old_note(play: Play) -> None:
    """Last month's `latest` is there, and the worker does not answer."""
    latest = play.stage.paths.shared_latest
    latest.parent.mkdir(parents=True, exist_ok=True)
    latest.write_text(document("WORKER: swarm1\nMISSION: none\n", "do what was done long ago"))
    renew_and_recover(play)
    play.demand("long ago" in latest.read_text(), "the old note was overwritten without a new one")


def _archive_is_file(play: Play) -> None:
    play.run("mkdir -p {home}/archive; touch {home}/archive/swarm1")


def _held(play: Play) -> None:
    """Held by its operator: hands off, until released."""
    with Ledger(play.home / "ledger.db") as ledger:
        ledger.remember("swarm1", held_since=SystemClock().now(), held_why="mine")
    rows = play.stage.rows()
    play.sweep()
    play.sweep()
    play.demand(play.stage.rows() == rows, "a held worker was touched")
    with Ledger(play.home / "ledger.db") as ledger:
        ledger.remember("swarm1", held_since=None, held_why="")
    play.recover()


CASES = [
    *(
        Case(
            id=f"full-before-{step}",
            fault=f"disk full before {step}",
            phase=step,
            source="D4",
            strike=Strike("full", "before", step),
            ends=("resumed", "blocked:handoff_not_saved", "blocked:preflight_failed"),
            third=step in ("persist", "respawn"),
        )
        for step in STEPS
    ),
    Case(
        id="archive-is-file",
        fault="the archive folder is a file",
        phase="detect",
        source="E1",
        before=_archive_is_file,
        ends=("blocked:preflight_failed",),
        third=True,
    ),
    Case(
        id="archive-is-file-midway",
        fault="the archive folder becomes a file before persist",
        phase="persist",
        source="H9",
        strike=run_at("before", "persist", "rm -rf {home}/archive/swarm1; touch {home}/archive/swarm1"),
        ends=("blocked:handoff_not_saved",),
        third=True,
    ),
    Case(
        id="shared-is-file-midway",
        fault="the shared handoff folder becomes a file before persist",
        phase="persist",
        source="D4",
        strike=run_at("before", "persist", "rm -rf {root}/memory-root/memory; touch {root}/memory-root/memory"),
        ends=("blocked:handoff_not_saved",),
    ),
    Case(
        id="archive-lost-before-resume",
        fault="the archived handoff is deleted before the resume prompt",
        phase="resume",
        source="H2",
        strike=run_at("before", "resume", "rm -f {home}/archive/swarm1/*.md"),
        ends=("resumed", "blocked:handoff_not_saved"),
    ),
    Case(
        id="ledger-locked",
        fault="the ledger is locked for 4 s",
        phase="detect",
        source="Q2",
        before=_lock_ledger,
        third=True,
    ),
    *(
        Case(
            id=f"ledger-locked-after-{step}",
            fault=f"the ledger is locked for 8 s after {step}",
            phase=step,
            source="Q2",
            strike=run_at("after", step, _lock("{home}/ledger.db", 8)),
        )
        for step in ("request", "stop", "resume")
    ),
    *map(_unreadable, _BREAK),
    Case(
        id="database-locked",
        fault="state.db is held by a writer for 2 s",
        phase="parse",
        source="Q2",
        strike=run_at("before", "parse", _lock("{profile}/state.db", 2)),
    ),
    *(_clock(act, seconds, step) for step in CLOCK_STEPS for act, seconds in JUMPS),
    Case(
        id="runtime-torn", fault="runtime.json is torn", phase="detect", source="W-33", play=_torn_runtime, third=True
    ),
    Case(
        id="runtime-unknown",
        fault="runtime.json with unknown values",
        phase="detect",
        source="W-33",
        play=_unknown_enums,
        third=True,
    ),
    Case(
        id="runtime-writers",
        fault="others write runtime.json all the time",
        phase="detect",
        source="W-33",
        play=_other_writers,
    ),
    Case(
        id="pid-reused",
        fault="a pid that was to be ended is another's",
        phase="stop",
        source="X1",
        strike=Strike("KILL", "begun", "stop"),
        play=_reused_pid,
        third=True,
    ),
    Case(
        id="old-note",
        fault="last month's handoff lies there, no answer comes",
        phase="parse",
        source="W-9",
        manners={"handoff": "silent"},
        config={"deadlines": {"handoff_answer": 4}},
        ends=("blocked:handoff_timeout",),
        play=_old_note,
        third=True,
    ),
    Case(id="held", fault="the operator said hands off", phase="detect", source="W-35", play=_held),
]
