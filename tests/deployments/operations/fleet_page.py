"""A fleet whose page is open in a real headless Chromium: one worker that lives, one whose every word is hostile."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Locator, sync_playwright

from deployments.http.access import token_path
from lifecycle.errors import CheckpointRefused
from lifecycle.ledger import Ledger, StoredHandoff
from lifecycle.renewal import Phase, Quality, Renewal, block_of, new_renewal_id
from tests.agents.stage import Stage
from tests.deployments.served import Served
from tests.ports import free_port

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

PATIENCE = 120_000
"""Milliseconds that anything may take on a busy machine; a run of Prefect's is a process of some seconds of work."""

HOSTILE = '<img src=x onerror="window.owned=1"><script>window.owned=1</script>{{!rm}} & "quoted"'

WIDE = {"width": 1200, "height": 900}
PHONE = {"width": 360, "height": 740}


class Fleet:
    """`afresh serve` over swarm1, a scripted agent in a real pane, and swarm2, which is down and blocked."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.stage.start()
        self.stage.wait_ready()
        self.stage.fill(20_000)
        self.port = free_port("127.0.0.1")
        deadlines = "deadlines = { handoff_answer = 60, resume_answer = 60, ready = 60, idle_before_stop = 30 }"
        more = f"http = {{ port = {self.port}, reads_per_minute = 1000 }}\n{deadlines}"
        self.served = Served(self.stage, automatic=False, sweep_interval=3600, more=more)
        self._add_hostile_worker()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return token_path(self.stage.settings()).read_text().strip()

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        with Ledger(self.stage.ground.home / "ledger.db") as ledger:
            yield ledger

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        with self.ledger() as ledger:
            return [(event.kind, event.detail) for event in ledger.events("swarm1")]

    def end(self) -> None:
        try:
            if self.served.process.poll() is None:
                self.served.end()
        finally:
            self.stage.ground.clear()

    def _add_hostile_worker(self) -> None:
        """All that a worker can write and the page shows: title, model, block, evidence, handoff."""
        path = self.served.stage.ground.home / "afresh.toml"
        path.write_text(f"{path.read_text()}\n[workers.swarm2]\n")
        other = self.stage.another("swarm2")
        with closing(sqlite3.connect(self.stage.profile / "state.db")) as source:
            source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            with closing(sqlite3.connect(other.profile / "state.db")) as copy:
                source.backup(copy)
                copy.execute("UPDATE sessions SET title = ?, model = ?", (HOSTILE, HOSTILE))
                copy.commit()
        now = datetime.now(UTC)
        archive = other.paths.archive / "hostile.md"
        archive.parent.mkdir(parents=True)
        archive.write_text(f"# Handoff\n{HOSTILE}\n")
        error = CheckpointRefused(HOSTILE, worker_id="swarm2", evidence=HOSTILE, reason="checkpoint_malformed")
        renewal = Renewal(
            renewal_id=new_renewal_id(now),
            worker_id="swarm2",
            generation=1,
            phase=Phase.REQUESTED,
            opened_at=now,
            updated_at=now,
        )
        with self.ledger() as ledger:
            ledger.open(renewal.model_copy(update={"block": block_of(error, renewal, now)}))
            ledger.add_handoff(
                StoredHandoff(
                    renewal_id=renewal.renewal_id,
                    worker_id="swarm2",
                    generation=1,
                    archive=archive,
                    sha256=hashlib.sha256(archive.read_bytes()).hexdigest(),
                    quality=Quality.WRITTEN,
                    mission_id=None,
                    created_at=now,
                )
            )


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", headless=True, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class FleetPage:
    """The page as one person has it open; what it asks for elsewhere, and what it complains of, is kept."""

    def __init__(self, context: BrowserContext, fleet: Fleet) -> None:
        self.fleet, self.page = fleet, context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.foreign: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)

    def log_in(self) -> None:
        self.page.goto(self.fleet.url)
        self.page.get_by_label("Token of this home").fill(self.fleet.token)
        self.page.get_by_role("button", name="Log in").click()
        self.card().wait_for()

    def card(self, worker_id: str = "swarm1") -> Locator:
        return self.page.locator(f"article#worker-{worker_id}")

    def button(self, words: str, worker_id: str = "swarm1") -> Locator:
        return self.page.get_by_role("button", name=f"{words}: {worker_id}", exact=True)

    def message(self, words: str) -> Locator:
        return self.page.get_by_label("Messages").get_by_text(words)

    def widest(self) -> int:
        """Pixels that the content needs beyond the window's width."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def _note(self, request: Any) -> None:
        if not request.url.startswith(self.fleet.url):
            self.foreign.append(request.url)


@contextmanager
def opened(browser: Browser, fleet: Fleet, **options: Any) -> Iterator[FleetPage]:
    """A person who has logged in. Nothing of the page may be asked of anybody else, and nothing may go wrong."""
    context = browser.new_context(**{"viewport": WIDE, **options})
    try:
        shown = FleetPage(context, fleet)
        shown.log_in()
        yield shown
        assert shown.foreign == []
        assert shown.complaints == []
    finally:
        context.close()


def wait_served(fleet: Fleet) -> None:
    fleet.stage.wait(fleet.served.is_up, 180, f"the server:\n{_tail(fleet.served.log)}")
    fleet.stage.wait(
        lambda: "page and HTTP API" in fleet.served.log.read_text(), 60, f"the page:\n{_tail(fleet.served.log)}"
    )


def _tail(path: Path) -> str:
    return path.read_text()[-2000:]


def told(runtime: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(runtime.read_text())
    return found
