"""Disks that are really full, at every write: a small file system of its own in the place of each folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.faults.case import Act, Case
from tests.faults.play import Play
from tests.faults.strike import STEPS, Step, run_at

SIZE = "24m"
"""Over the 16 MiB that must be free before a worker is asked."""

_PLACES = {"home": "{home}", "profile": "{profile}/memory", "shared": "{root}/memory-root"}

_FILL = "dd if=/dev/zero of=%s/filler bs=64k; dd if=/dev/zero of=%s/filling bs=1 count=65536; true"


@cache
def why_nothing_is_mounted() -> str:
    """Why no file system can be made here; empty where one can. Short files of a limited process stand in then."""
    if os.geteuid() != 0:
        return "only root mounts a file system; a limit on the size of files stands in"
    with tempfile.TemporaryDirectory(prefix="afresh-mount-") as folder:
        done = subprocess.run(["mount", "-t", "tmpfs", "none", folder], capture_output=True, text=True, check=False)
        if done.returncode:
            return f"no file system can be mounted: {done.stderr.strip()}"
        subprocess.run(["umount", folder], check=True)
    return ""


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", folder], check=True)


def _disk(place: str) -> Act:
    """Put a small disk in the place of the folder, until after the verdict; the configuration is written anew."""

    def before(play: Play) -> None:
        folder = Path(place.format_map(play.names()))
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "none", folder], check=True)
        play.lasting.callback(_unmount, folder)
        play.configure()

    return before


def _freed(place: str) -> Act:
    """The fault, a sweep while the disk is still full, and those that follow when there is room again."""

    def play(play: Play) -> None:
        play.renew()
        free = shutil.disk_usage(place.format_map(play.names())).free
        play.demand(free < 4096, f"the disk has {free} bytes left")
        said = play.log.read_text()
        play.demand(
            "disk is full" in said or "No space left" in said, f"nobody said that the disk is full: {said[-500:]}"
        )
        play.sweep()
        play.demand(len(play.watch.living(play.stage)) <= 1, "a full disk led to two agents")
        play.run(f"rm -f {place}/filler {place}/filling")
        play.recover()

    return play


def _full_from_the_start(place: str) -> Act:
    def before(play: Play) -> None:
        _disk(place)(play)
        play.run(_FILL % (place, place))

    return before


def _case(name: str, step: Step) -> Case:
    place = _PLACES[name]
    return Case(
        id=f"disk-{name}-before-{step}",
        fault=f"the disk of the {name} folder is full before {step}",
        phase=step,
        source="D4",
        strike=run_at("before", step, _FILL % (place, place)),
        before=_disk(place),
        play=_freed(place),
        ends=("resumed", "blocked:handoff_not_saved", "blocked:preflight_failed"),
        third=(name, step) in {("home", "persist"), ("home", "respawn"), ("shared", "persist")},
        cannot=why_nothing_is_mounted,
    )


CASES = [
    *(_case("home", step) for step in STEPS),
    *(_case(name, "persist") for name in ("profile", "shared")),
    *(
        Case(
            id=f"disk-{name}-full",
            fault=f"the disk of the {name} folder is full from the start",
            phase="detect",
            source="D1",
            before=_full_from_the_start(_PLACES[name]),
            ends=("blocked:preflight_failed",),
            cannot=why_nothing_is_mounted,
        )
        for name in ("profile", "shared")
    ),
]
