"""The operator's screen: the renew button, the page of a block and the answer form, in a real browser.

`KEEP_IMAGES=docs/images make test-operations` keeps its pictures there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from lifecycle.ledger import Ledger
from tests.agents.stage import Stage
from tests.deployments.operations.prefect_ui import PATIENCE, PrefectUi, browser
from tests.deployments.served import Served

pytestmark = [pytest.mark.operations, pytest.mark.timeout(900)]

LARGEST = 150_000
"""Bytes of a picture that a document carries."""

EIGHT_TASKS = (
    "detect pressure of swarm1",
    "request handoff of swarm1",
    "parse checkpoint of swarm1",
    "persist handoff of swarm1",
    "stop swarm1",
    "respawn swarm1",
    "send resume prompt to swarm1",
    "mark swarm1 healthy",
)

CONFIGURATION = """
host_name = "greenhouse"
deadlines = { handoff_answer = 60, resume_answer = 60, ready = 60 }
"""


@pytest.fixture
def served(stage: Stage) -> Iterator[Served]:
    """Sweeps are an hour apart and automatic renewal is off: what happens here, the operator does."""
    stage.fill(70_000)
    running = Served(stage, sweep_interval=3600, automatic=False, more=CONFIGURATION)
    try:
        stage.wait(running.is_up, 120, "the server")
        yield running
    finally:
        if running.process.poll() is None:
            running.end()


@pytest.fixture
def ui(served: Served, tmp_path: Path) -> Iterator[PrefectUi]:
    with browser(tmp_path / "chromium") as page:
        prefect = PrefectUi(page, f"http://127.0.0.1:{served.port}")
        prefect.log_in("afresh", served.password())
        yield prefect


def _picture(ui: PrefectUi, name: str) -> None:
    wanted = os.environ.get("KEEP_IMAGES")
    if not wanted:
        return
    path = Path(wanted) / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    ui.page.screenshot(path=path)
    assert path.stat().st_size < LARGEST


def _generation(served: Served) -> int:
    with Ledger(served.stage.ground.home / "ledger.db") as ledger:
        return ledger.record("swarm1").generation


def test_an_operator_renews_a_worker_and_answers_a_block_in_the_prefect_ui(served: Served, ui: PrefectUi) -> None:
    # A name that nobody manages: one line, which says who is.
    ui.open_form("renew")
    for told in ("The worker, a managed one.", "End a busy turn too", "Why, for the record."):
        ui.page.get_by_text(told).first.wait_for()
    ui.fill("worker_id", "swarm9")
    ui.submit()
    ui.await_state("Refused")
    ui.page.get_by_text("worker swarm9 is unknown; managed workers: swarm1").first.wait_for()

    # The renew button.
    ui.open_form("renew")
    ui.fill("worker_id", "swarm1")
    ui.fill("why", "before the night shift")
    _picture(ui, "renew-form")
    ui.submit()
    ui.await_state("Renewed")
    ui.tab("Task Runs")
    for name in EIGHT_TASKS:
        ui.page.get_by_role("link", name=name).first.wait_for()
    _picture(ui, "renewed-run")
    assert _generation(served) == 2

    # A block, and the way from its run to its answer.
    served.stage.behave(handoff="old_id")
    ui.open_form("renew")
    ui.fill("worker_id", "swarm1")
    ui.submit()
    ui.await_state("Blocked")
    served.stage.behave(handoff="good")
    ui.open_artifact("afresh-block-swarm1")
    ui.page.get_by_text("swarm1 is blocked: checkpoint_wrong_renewal").first.wait_for()
    ui.page.get_by_text("afresh answer swarm1 retry").wait_for()
    _picture(ui, "block")
    form = ui.page.get_by_role("link", name="retry", exact=True).get_attribute("href")
    assert form is not None
    ui.page.goto(form)
    ui.fill("why", "it answered the renewal before")
    expect(ui.field("worker_id")).to_have_value("swarm1", timeout=PATIENCE)
    _picture(ui, "answer-form")
    ui.submit()
    ui.await_state("Renewed")
    assert _generation(served) == 3

    # The fleet, as a sweep leaves it.
    ui.open_form("sweep", field="worker_ids")
    ui.submit()
    ui.await_state("Completed")
    ui.open_artifact("afresh-fleet-greenhouse")
    for told in ("accepting work", "swarm1", "healthy"):
        ui.page.get_by_text(told, exact=True).first.wait_for()

    with Ledger(served.stage.ground.home / "ledger.db") as ledger:
        (answered,) = [event for event in ledger.events("swarm1") if event.kind == "answered"]
    assert (answered.detail["choice"], answered.detail["why"]) == ("retry", "it answered the renewal before")
    elsewhere = [url for url in ui.asked if not url.startswith((ui.url, "blob:", "data:"))]
    assert elsewhere == [], "the browser asks nobody else"
