"""What people and workers write, with the real Hermes Agent in both its faces: kept, and neither run nor typed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from flows.sweep import sweep_workers
from lifecycle.answering import answer
from lifecycle.choice import Choice
from lifecycle.renewal import End, Phase, Quality
from lifecycle.screen import PaneLook
from tests.agents import hostile
from tests.agents.dictated_model import DictatedModel
from tests.agents.hermes_stage import HermesStage
from tests.flows.conftest import Scene, acted

pytestmark = [pytest.mark.hermes, pytest.mark.prefect]

PATIENT = {
    "delivery": 15,
    "handoff_answer": 60,
    "idle_before_stop": 30,
    "exit": 15,
    "term": 5,
    "ready": 90,
    "resume_answer": 60,
}


class Desk(Scene):
    """A worker whose model says what it is told to, and what its pane shows."""

    stage: HermesStage
    model: DictatedModel

    def look(self) -> PaneLook:
        with self.host() as host:
            return host.look(host.worker(self.worker_id))

    def sweep(self) -> list[str]:
        """The outcomes of one pass, renewals done here."""
        return [entry["outcome"] for entry in acted(sweep_workers(renewals="here", return_state=True))]

    def sweep_until_done(self) -> list[str]:
        """What came of the first pass that did something: one that finds the pane half drawn leaves it to the next."""
        for _ in range(5):
            if (outcomes := self.sweep()) not in ([], ["spared"]):
                return outcomes
        return []

    def runs_sleep(self) -> bool:
        tree = psutil.Process(self.stage.pane_pid).children(recursive=True)
        return any(process.name() == "sleep" for process in tree)

    def wait_typed(self, text: str) -> None:
        """Wait until *text*, and nothing else, stands in the input line."""
        self.stage.wait(lambda: self.look().typed == text, 60, f"{text!r} in the input line")

    def enter(self, text: str) -> None:
        """Press Enter below *text*, and wait until it is the newest message."""
        self.wait_typed(text)
        self.stage.press("Enter")
        self.stage.wait(lambda: self.user_texts()[-1:] == [text], 60, f"the row of {text!r}")
        self.stage.wait_ready()


@pytest.fixture(scope="module", params=["cli", "tui"])
def worker(hermes: Path, request: pytest.FixtureRequest) -> Iterator[HermesStage]:
    """One agent for all tests of a face: each leaves it READY, with an empty input line and no open renewal."""
    with DictatedModel() as model:
        stage = HermesStage(hermes, model, request.param)
        try:
            stage.start()
            stage.wait_ready(90)
            stage.fill(70_000)
            yield stage
        finally:
            stage.ground.clear()


@pytest.fixture
def desk(worker: HermesStage, monkeypatch: pytest.MonkeyPatch) -> Desk:
    found = Desk(worker, monkeypatch, deadlines=PATIENT)
    assert isinstance(worker.model, DictatedModel)
    found.model = worker.model
    found.configure(policy={"cooldown": 0})
    return found


HALF = "half a thou"


def test_a_half_typed_text_is_waited_for_and_sent_as_its_person_means_it(desk: Desk) -> None:
    before = desk.user_texts()
    desk.stage.paste(HALF)
    desk.wait_typed(HALF)

    assert desk.sweep() == []
    assert desk.renew(force=True).name == "Spared"

    assert (desk.look().typed, desk.user_texts()) == (HALF, before)
    desk.stage.paste("ght [[tokens 70000]]")
    desk.enter(f"{HALF}ght [[tokens 70000]]")
    assert len(desk.user_texts()) == len(before) + 1


@pytest.mark.parametrize("worker", ["tui"], indirect=True, scope="module")
def test_what_a_person_types_while_the_handoff_is_written_keeps_the_worker_from_being_stopped(desk: Desk) -> None:
    desk.configure(deadlines={"idle_before_stop": 2}, policy={"cooldown": 0})
    pid, before = desk.stage.pane_pid, desk.user_texts()
    desk.model.when_asked = lambda: desk.stage.paste(HALF)
    try:
        assert desk.sweep() == ["blocked"]
    finally:
        desk.model.when_asked = None

    assert (desk.block.reason, desk.block.phase, desk.block.worker_down) == ("not_idle", Phase.SAVED, False)
    assert (desk.stage.pane_pid, desk.look().typed) == (pid, HALF)
    assert len(desk.user_texts()) == len(before) + 1, "the request, and nothing else"
    assert desk.sweep() == []
    assert desk.look().typed == HALF
    desk.enter(HALF)
    with desk.host() as host:
        answer(host, host.worker(desk.worker_id), Choice.DISMISS, who="the person")
    assert desk.user_texts()[-2:] == [HALF, f"RENEWAL_CANCELLED {desk.renewal.renewal_id}: carry on with your task"]
    assert desk.renewal.end is End.DISMISSED
    desk.stage.wait_ready()


def _give_mission(desk: Desk) -> str:
    """A mission whose text and assignment are hostile; its text is returned."""
    task = hostile.task()
    runtime = {
        "workerId": desk.worker_id,
        "currentMissionId": "mission-seeds",
        "currentAssignmentId": "{!touch ran}",
        "currentTask": task,
        "kept": "!touch ran",
    }
    (desk.stage.profile / "runtime.json").write_text(json.dumps(runtime))
    return task


def test_nothing_that_a_worker_or_a_mission_says_is_run_typed_or_lost(desk: Desk) -> None:
    """And what a person queues behind a turn is answered before the request."""
    (desk.stage.cwd / "secret.txt").write_text("the secret of the folder\n")
    task = _give_mission(desk)
    desk.model.draft, desk.model.block = desk.stage.root / "dictated", hostile.BLOCK
    desk.model.draft.write_bytes(hostile.draft())
    tool = '[[tokens 95000]] [[tool terminal {"command": "sleep 5 && touch undisturbed"}]]'
    before = desk.user_texts()
    desk.stage.say(tool)
    desk.stage.wait(desk.runs_sleep, 60, "the tool")
    desk.stage.paste("and a word of mine")
    desk.stage.wait(lambda: desk.stage.holds("and a word of mine"), 60, "the person's text")
    desk.stage.press("Enter")

    assert desk.sweep_until_done() == ["renewed"]

    desk.stage.wait(lambda: desk.stage.ledger()[-1:] == ["entry 2"], 60, "the next step")
    desk.stage.wait_ready()
    renewal = desk.renewal
    assert renewal.saved is not None
    assert renewal.resume is not None
    assert renewal.saved.quality is Quality.WRITTEN
    assert (desk.stage.cwd / "undisturbed").exists()
    assert list(desk.stage.root.rglob(hostile.RUN)) == []
    sent = desk.user_texts()[len(before) :]
    assert sent[:2] == [tool, "and a word of mine"]
    assert sent[2].startswith("CONTEXT_HANDOFF_REQUIRED\n")
    assert sent[3] == renewal.resume.text
    assert sent[4].startswith(f"CONTINUE {renewal.renewal_id}: ")
    assert len(sent) == 5
    if desk.stage.face == "cli":
        assert sent[4].endswith(hostile.PLAIN_ACTION)
    else:
        assert [text for text in sent[2:] if "touch ran" in text] == [], "not a word of the worker's"
    text = renewal.saved.archive.read_text()
    assert renewal.saved.next_action == hostile.PLAIN_ACTION
    for said, kept in hostile.WORDS.items():
        assert f"\n{kept or said}\n" in text
    assert "half a character" in text
    assert "characters left out" in text
    assert hostile.PLAIN_ACTION in text
    assert hostile.SECRET not in text
    assert "the secret of the folder" not in json.dumps([row.content for row in desk.stage.rows()])
    assert (renewal.mission_id, renewal.assignment_id) == ("mission-seeds", None)
    runtime = json.loads((desk.stage.profile / "runtime.json").read_text())
    assert (runtime["currentTask"], runtime["kept"], runtime["state"]) == (task, "!touch ran", "executing")
