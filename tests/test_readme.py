"""The README's commands are run, and what it says they print is what they print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lifecycle.settings import Settings, load_settings
from tests.agents.stage import Stage

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def _block(language: str, containing: str) -> str:
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return next(block for block in blocks if containing in block)


def _shape(line: str) -> str:
    """A line without what differs from run to run: numbers, ids, paths, spaces."""
    line = re.sub(r"(flow-run/)[0-9a-f-]+", r"\1ID", line)
    line = re.sub(r"\S*afresh-demo-\w+", "FOLDER", line.replace("(/", "( /"))
    line = re.sub(r"\d+(?:[.,:]\d+)*", "N", line)
    return " ".join(line.split())


def _prints(printed: list[str], promised: list[str]) -> str | None:
    """The first promised line that does not come in its place; `…` stands for any lines."""
    at, may_skip = 0, False
    for line in promised:
        if line.strip() == "…":
            may_skip = True
            continue
        wanted = _shape(line)
        found = next((i for i in range(at, len(printed)) if _shape(printed[i]) == wanted), None)
        if found is None or (found > at and not may_skip):
            return f"{line!r} (next is {printed[at : at + 1]})"
        at, may_skip = found + 1, False
    return None


@pytest.mark.hermes
@pytest.mark.prefect
def test_make_demo_prints_what_the_readme_says_and_leaves_nothing_behind(hermes: Path, tmp_path: Path) -> None:
    recipe = (ROOT / "Makefile").read_text()
    assert re.search(r"^demo:.*\n\t@\$\(BIN\)/afresh demo", recipe, re.MULTILINE), "what `make demo` runs"
    environment = {
        **os.environ,
        "AFRESH_DEMO_HERMES": str(hermes),
        "TMPDIR": str(tmp_path),
        "COLUMNS": "200",
        "PYTHONPATH": str(ROOT),
    }

    done = subprocess.run(
        [sys.executable, "-m", "deployments.cli", "demo"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=180,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert _prints(done.stdout.splitlines(), _block("text", "one sweep:").splitlines()) is None, done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_two_commands_of_the_first_screen_are_targets() -> None:
    commands = re.findall(r"^\$ make (\w+)", README, re.MULTILINE)

    assert commands[:2] == ["demo", "test"]
    for target in commands:
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target


def test_the_configuration_that_the_readme_shows_is_valid(tmp_path: Path) -> None:
    text = _block("toml", "[policy]")
    path = tmp_path / "afresh.toml"
    path.write_text(text)
    path.chmod(0o600)

    settings = load_settings(path, {"AFRESH_HOME": str(tmp_path), "HOME": str(tmp_path)})

    assert isinstance(settings, Settings)
    assert set(tomllib.loads(text)) <= set(Settings.model_fields)


EXPECTED = {
    "status": 0, "adopt": 0, "doctor": 0, "enable": 0, "renew": 0, "recover": 0, "blocked": 0, "answer": 2,
    "history": 0, "handoff": 1, "files": 2, "undo": 1,
}  # fmt: skip
"""Exit codes over one healthy worker: there is nothing to answer, to search or to compare. `serve` has its own test."""


@pytest.mark.prefect
def test_the_commands_of_the_operators_path_work_in_their_order(stage: Stage) -> None:
    stage.fill(20_000)
    configuration = stage.ground.home / "afresh.toml"
    configuration.write_text(
        f'[workers.swarm1]\ncwd = "{stage.cwd}"\ncommand = ["{stage.command[0]}", "chat", "--cli"]\n'
    )
    configuration.chmod(0o600)
    text = _block("console", "afresh status") + _block("console", "afresh history")
    commands = [shlex.split(line) for line in re.findall(r"^\$ afresh (.*?)(?:\s+#.*)?$", text, re.MULTILINE)]
    assert {words[0] for words in commands} == {*EXPECTED, "serve"}

    for words in commands:
        if words[0] == "serve":
            continue
        done = subprocess.run(
            [sys.executable, "-m", "deployments.cli", *words],
            env={**stage.ground.environment, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode in (0, EXPECTED[words[0]]), (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr


def test_every_document_that_the_readme_links_exists() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), target
