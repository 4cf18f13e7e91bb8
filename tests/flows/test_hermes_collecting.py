"""What is collected of the real Hermes Agent: its own tools wrote the rows."""

from __future__ import annotations

import pytest

from lifecycle.artifacts import read
from lifecycle.collected_text import read_collected
from tests.agents.hermes_stage import HermesStage
from tests.flows.conftest import Scene
from tests.flows.test_hermes import PATIENT
from tests.lifecycle.repositories import Tree

pytestmark = [pytest.mark.hermes, pytest.mark.prefect]

TO_DOS = (
    '[{"id": "1", "content": "count drawer three", "status": "in_progress"}, '
    '{"id": "2", "content": "count drawer two", "status": "completed"}]'
)
TURNS = (
    '[[tool terminal {"command": "seq 1 3000; echo ValueError: drawer three; exit 3"}]]',
    '[[tool write_file {"path": "notes.md", "content": "a note"}]]',
    '[[tool read_file {"path": "notes.md"}]]',
    f'[[tool todo {{"todos": {TO_DOS}}}]]',
)


def test_the_real_agents_work_is_in_the_archive(hermes_stage: HermesStage, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(hermes_stage.cwd)
    scene = Scene(hermes_stage, monkeypatch, deadlines=PATIENT)
    for turn in TURNS:
        hermes_stage.answer_to(hermes_stage.say(turn, 60), 60)
        hermes_stage.wait_ready()

    assert scene.renew().name == "Renewed"

    saved = scene.renewal.saved
    assert saved is not None
    found = read_collected(saved.archive.read_text())
    assert found is not None
    assert found == scene.renewal.collected
    assert found.troubles == ()
    assert found.cwd == hermes_stage.cwd
    assert found.git is not None
    assert "notes.md" in found.git.untracked
    assert tree.in_commit("refs/afresh/swarm1/1")["notes.md"] == "a note"
    assert [(command.command, command.exit_code) for command in found.commands] == [
        ("seq 1 3000; echo ValueError: drawer three; exit 3", 3)
    ]
    assert {file.path: file.acts for file in found.files}[str(tree.root / "notes.md")] == ("written", "read")
    assert [(todo.text, todo.status) for todo in found.todos] == [("count drawer three", "in_progress")]
    (kept,) = found.results
    assert kept.summary.startswith("ran `seq 1 3000; echo ValueError: drawer three; exit 3` -> exit 3, 3,00")
    assert "\n2999\n3000\nValueError: drawer three" in read(hermes_stage.ground.home / "artifacts", kept.handle)
