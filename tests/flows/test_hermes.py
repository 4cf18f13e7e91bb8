"""The real Hermes Agent, in both its faces, through the real flows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import psutil
import pytest
from prefect import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import State

from flows.sweep import sweep_workers
from lifecycle.renewal import End, Phase, Quality, Renewal
from lifecycle.screen import PaneLook, PaneState
from tests.agents.ground import has_ended
from tests.agents.hermes_stage import HermesStage
from tests.flows.conftest import Scene, acted

pytestmark = [pytest.mark.hermes, pytest.mark.prefect]

both_faces = pytest.mark.parametrize("hermes_stage", ["cli", "tui"], indirect=True)

PATIENT = {
    "delivery": 15,
    "handoff_answer": 60,
    "idle_before_stop": 30,
    "exit": 15,
    "term": 5,
    "ready": 90,
    "resume_answer": 60,
}
"""Deadlines in seconds for an agent of some hundred megabytes on a shared machine."""

RULES = """\
1. One line an entry, in order, no number twice.
2. Never delete or rewrite a line of the ledger.
3. Never leave this folder."""
MISSION = (
    f"Mission: keep the seed ledger of this folder, ledger.txt. Rules that always hold:\n{RULES}\nBegin with entry 1."
)
OWN_SECONDS = 20
"""What a renewal may cost besides the agent's own time before something is wrong: about 2.5 s on a quiet machine, where
`make bench` measures it, and several times that where others work on it."""


class HermesScene(Scene):
    """A scene whose stage holds the real agent, and the model that it asks."""

    stage: HermesStage

    def look(self) -> PaneLook:
        with self.host() as host:
            return host.look(host.worker(self.worker_id))

    def sweep(self) -> list[str]:
        """The outcomes of one pass, renewals done here."""
        state: State[Any] = sweep_workers(renewals="here", return_state=True)
        return [entry["outcome"] for entry in acted(state)]

    def begin(self, text: str, state: PaneState) -> None:
        """Send *text* and wait until the pane shows *state*."""
        self.stage.say(text)
        self.stage.wait(lambda: self.look().state is state, 60, str(state))

    def begin_tool(self, tokens: int, command: str) -> None:
        """Let the agent run *command*, with so many tokens by its log, and wait until it does."""
        self.begin(f"[[tokens {tokens}]] {_tool(command)}", PaneState.BUSY)
        self.stage.wait(lambda: any(process.name() == "sleep" for process in _tree(self.stage.pane_pid)), 60, "sleep")

    def wait_for_work(self, entries: int) -> None:
        self.stage.wait(lambda: len(self.stage.ledger()) >= entries, 60, f"entry {entries} of the mission")
        self.stage.wait_ready()


@pytest.fixture
def scene(hermes_stage: HermesStage, monkeypatch: pytest.MonkeyPatch) -> HermesScene:
    return HermesScene(hermes_stage, monkeypatch, deadlines=PATIENT)


@pytest.fixture
def working(scene: HermesScene) -> HermesScene:
    """A worker that has begun its mission."""
    scene.stage.answer_to(scene.stage.say(MISSION))
    scene.stage.wait_ready()
    return scene


@pytest.fixture
def full(working: HermesScene) -> HermesScene:
    """A worker that has begun its mission and is over its handoff limit."""
    working.stage.fill(70_000)
    return working


def _tool(command: str) -> str:
    return f'[[tool terminal {{"command": "{command}"}}]]'


def _tree(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


async def _span_of_run(run_id: str) -> tuple[datetime, datetime | None]:
    """From the flow run's Running to the end of its last task; no end while a task's is not yet known."""
    async with get_client() as client:
        run = await client.read_flow_run(UUID(run_id))
        tasks = await client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[run.id])))
    ends = [task.end_time for task in tasks if task.end_time is not None]
    assert run.start_time is not None
    return run.start_time, max(ends) if len(ends) == 8 else None


def _phases(scene: HermesScene, renewal: Renewal) -> dict[str, float]:
    """Seconds of each phase; `total` is the run's, `own` is that without the agent's exit, start and answers."""
    run_id = renewal.flow_run_id
    assert run_id is not None
    began, ended = scene.stage.wait(
        lambda: span if (span := asyncio.run(_span_of_run(run_id)))[1] else None, 60, "the end of the eight tasks"
    )
    assert ended is not None
    times = {Phase(name): at for name, at in renewal.phase_times.items()}
    spans = {
        later.value: (times[later] - times[earlier]).total_seconds()
        for earlier, later in zip(list(Phase), list(Phase)[1:], strict=False)
    }
    total = (ended - began).total_seconds()
    agents = sum(spans[phase] for phase in (Phase.PARSED, Phase.STOPPED, Phase.RESPAWNED, Phase.PROVED))
    return {**spans, "total": total, "own": total - agents}


@both_faces
def test_a_full_worker_is_renewed_and_goes_on_with_its_mission(
    full: HermesScene, record_property: Callable[[str, object], None]
) -> None:
    old_tree, old_rows = _tree(full.stage.pane_pid), full.stage.rows()
    assert full.stage.ledger() == ["entry 1"]

    assert full.sweep() == ["renewed"]

    full.wait_for_work(2)
    renewal = full.renewal
    assert (renewal.phase, renewal.end, renewal.generation) == (Phase.PROVED, End.RENEWED, 1)
    assert renewal.saved is not None
    assert renewal.resume is not None
    assert renewal.acknowledgement is not None
    assert renewal.saved.quality is Quality.WRITTEN
    assert RULES in renewal.saved.archive.read_text(), "the mission's rules, word for word"
    session = renewal.acknowledgement.session_id
    assert session not in {row.session_id for row in old_rows}
    new_rows = [row for row in full.stage.rows() if row.session_id == session]
    asked = [row.content for row in new_rows if row.role == "user"]
    assert asked[0] == renewal.resume.text, "one row, as written"
    assert [text.partition(":")[0] for text in asked[1:]] == [f"CONTINUE {renewal.renewal_id}"]
    assert [row.role for row in new_rows].count("tool") == 2, "it read its handoff, and took the next step"
    assert full.stage.ledger() == ["entry 1", "entry 2"]
    assert all(has_ended(process.pid) for process in old_tree)
    phases = _phases(full, renewal)
    print({name: round(seconds, 2) for name, seconds in phases.items()})
    for name, seconds in phases.items():
        record_property(name, round(seconds, 2))
    assert phases["own"] < OWN_SECONDS


@pytest.mark.parametrize(
    ("hermes_stage", "manner", "reason"),
    [("cli", "wrong_id", "checkpoint_wrong_renewal"), ("tui", "partial", "checkpoint_incomplete")],
    indirect=["hermes_stage"],
)
def test_a_handoff_that_is_refused_leaves_the_worker_alive_and_working(
    full: HermesScene, manner: str, reason: str
) -> None:
    full.stage.model.change(handoff=manner)
    pid = full.stage.pane_pid

    assert full.sweep() == ["blocked"]

    full.wait_for_work(2)
    assert (full.block.reason, full.block.phase, full.block.worker_down) == (reason, Phase.REQUESTED, False)
    assert full.stage.pane_pid == pid
    texts = full.user_texts()
    assert texts[-1] == f"RENEWAL_CANCELLED {full.renewal.renewal_id}: carry on with your task"
    assert sum(text.startswith("CONTEXT_HANDOFF_REQUIRED") for text in texts) == 2, "one request, one correction"
    assert full.stage.ledger() == ["entry 1", "entry 2"]


@both_faces
def test_a_handoff_that_is_only_stored_leaves_the_worker_alive_and_working(full: HermesScene) -> None:
    full.configure(policy={"renew_on_handoff": False})
    pid = full.stage.pane_pid

    assert full.sweep() == ["requested"]

    full.wait_for_work(2)
    assert (full.renewal.end, full.stage.pane_pid) == (End.SPARED, pid)
    assert full.stage.paths.shared_latest.exists()


@both_faces
def test_nothing_is_typed_into_an_approval_dialog_and_a_human_is_told_once(scene: HermesScene) -> None:
    config = scene.stage.profile / "config.yaml"
    config.write_text(f"{config.read_text()}approvals: {{mode: manual}}\n")
    kept = scene.stage.cwd / "seeds"
    kept.mkdir()
    scene.begin(f"[[tokens 70000]] {_tool(f'rm -rf {kept}')}", PaneState.DIALOG)
    scene.stage.wait(lambda: "Deny" in scene.look().dialog, 60, "the whole dialog")
    rows, dialog = scene.stage.rows(), scene.look().dialog

    assert scene.sweep() == []
    assert scene.sweep() == []
    assert scene.renew(force=True).name == "Spared"

    assert (scene.stage.rows(), scene.look().state, scene.look().dialog) == (rows, PaneState.DIALOG, dialog)
    assert "Allow once" in scene.stage.screen()
    assert kept.is_dir()
    assert len(scene.notices()) == 1


@both_faces
def test_a_worker_in_a_tool_is_left_alone_and_renewed_when_it_is_idle(working: HermesScene) -> None:
    working.begin_tool(70_000, "sleep 2 && touch undisturbed")
    before = working.user_texts()

    assert working.sweep() == []

    assert (working.user_texts(), working.look().typed) == (before, "")
    working.stage.wait_ready()
    assert (working.stage.cwd / "undisturbed").exists()
    assert working.sweep() == ["renewed"]


def test_a_worker_whose_automatic_renewal_is_off_is_only_reported(full: HermesScene) -> None:
    full.configure(automatic=False)
    rows = full.stage.rows()

    assert full.sweep() == []
    assert full.sweep() == []

    assert (full.stage.rows(), full.look().state) == (rows, PaneState.READY)
    assert len(full.notices()) == 1
    with full.host() as host:
        keys = [str(event.detail["key"]) for event in host.ledger.events(full.worker_id) if event.kind == "notice"]
    assert [key.partition(":")[0] for key in keys] == ["would_renew"]


@both_faces
def test_force_ends_a_busy_turn_after_a_synthesized_handoff(working: HermesScene) -> None:
    working.configure(deadlines={"exit": 2})
    working.begin_tool(20_000, "sleep 300")
    tree = _tree(working.stage.pane_pid)

    assert working.renew(force=True).name == "Renewed"

    saved = working.renewal.saved
    assert saved is not None
    assert saved.quality is Quality.SYNTHESIZED
    text = saved.archive.read_text()
    assert "> 2. Never delete or rewrite a line of the ledger." in text, "the order that the worker works on"
    assert "sleep 300 — no result was written" in text
    assert [process for process in tree if not has_ended(process.pid)] == []


@both_faces
def test_over_the_hard_limit_the_request_is_queued_once_and_answered_after_the_turn(working: HermesScene) -> None:
    before = working.stage.rows()
    working.begin_tool(95_000, "sleep 2 && touch undisturbed")

    assert working.sweep() == ["renewed"]

    turn_ended = (working.stage.cwd / "undisturbed").stat().st_mtime
    assert working.renewal.opened_at.timestamp() < turn_ended
    rows = working.stage.rows()[len(before) :]
    requests = [number for number, row in enumerate(rows) if row.content.startswith("CONTEXT_HANDOFF_REQUIRED")]
    assert requests == [4]
    assert [row.role for row in rows[:4]] == ["user", "assistant", "tool", "assistant"], "the turn came to its end"


@pytest.mark.parametrize("hermes_stage", ["tui"], indirect=True)
def test_a_face_that_collapses_long_pastes_is_asked_only_when_it_is_idle(scene: HermesScene) -> None:
    """Sent during a turn, the model would get the placeholder and the text would be lost."""
    scene.stage.stop()
    config = scene.stage.profile / "config.yaml"
    config.write_text(
        "".join(line for line in config.read_text().splitlines(keepends=True) if not line.startswith("paste_collapse"))
    )
    scene.stage.start()
    scene.stage.wait_ready(90)
    scene.stage.answer_to(scene.stage.say("write the first entry"))
    scene.stage.wait_ready()
    scene.begin_tool(95_000, "sleep 2")
    before = scene.user_texts()

    assert scene.sweep() == []

    assert (scene.user_texts(), scene.look().typed) == (before, "")
    scene.stage.wait_ready()
    assert scene.sweep() == ["renewed"]


HOSTILE = [
    "{!touch ran} append entry 2 as @file:secret.txt says in /etc/hostname",
    "!touch ran",
    "/new and then append entry 4 \\",
]
"""What Hermes's TUI would run, what either face would attach, complete or take for a command."""


@both_faces
def test_three_renewals_in_a_row_end_nothing_but_the_agent_and_run_nothing_that_it_wrote(full: HermesScene) -> None:
    full.configure(policy={"cooldown": 0})
    (full.stage.cwd / "secret.txt").write_text("the secret\n")
    target, shown = f"={full.stage.session}:", ("-F", "#{window_id} #{pane_pid}")
    notes = full.stage.ground.tmux("new-window", "-dP", *shown, "-t", target, "sleep 600").strip()
    ended: list[psutil.Process] = []
    done: list[Renewal] = []
    for number, action in enumerate(HOSTILE, start=2):
        if done:
            full.stage.fill(70_000)
        ended += _tree(full.stage.pane_pid)
        full.stage.model.change(next_action=action)
        assert full.sweep() == ["renewed"]
        full.wait_for_work(number)
        done.append(full.renewal)
    assert [renewal.generation + 1 for renewal in done] == [2, 3, 4]
    assert len({renewal.acknowledgement.session_id for renewal in done if renewal.acknowledgement}) == 3
    assert len(list((full.stage.ground.home / "archive" / full.worker_id).iterdir())) == 3
    assert [process for process in ended if not has_ended(process.pid)] == []
    assert notes in full.stage.ground.tmux("list-windows", "-t", target, *shown).splitlines(), "another window"
    assert not has_ended(int(notes.split()[1]))
    texts = full.user_texts()
    for action, renewal in zip(HOSTILE, done, strict=True):
        assert renewal.saved is not None
        assert renewal.resume is not None
        assert renewal.saved.next_action == action
        assert action in renewal.saved.archive.read_text()
        assert texts.count(renewal.resume.text) == 1
    assert not any("the secret" in text for text in texts)
    assert list(full.stage.root.rglob("ran")) == []
