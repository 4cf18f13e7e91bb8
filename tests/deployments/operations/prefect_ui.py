"""Prefect's own UI (V1) in a real headless Chromium, as an operator uses it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, TimeoutError, expect, sync_playwright  # noqa: A004

from lifecycle.waiting import SystemClock, wait_until

CHROMIUM = "/usr/bin/chromium"

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

PATIENCE = 60_000
"""Milliseconds that a page or a state may take on a busy machine."""


SETTLES = 1_000
"""Milliseconds after which a form that was drawn anew would show it."""


@contextmanager
def browser(profile: Path, *, width: int = 1200, height: int = 760) -> Iterator[Page]:
    """A page of a Chromium that has nothing of anybody's: *profile* is a new folder."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=CHROMIUM,
            headless=True,
            args=list(FLAGS),
            viewport={"width": width, "height": height},
        )
        try:
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            yield page
        finally:
            context.close()


class PrefectUi:
    """What an operator does in it. The page stays open between the steps."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.asked: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url))

    def log_in(self, user: str, password: str) -> None:
        self.page.goto(self.url)
        self.page.locator("input[type=password]").fill(f"{user}:{password}")
        self.page.get_by_role("button", name="Login").click()
        self.page.wait_for_url("**/dashboard*")

    def open_form(self, deployment: str, *, field: str = "worker_id") -> None:
        """From the list of deployments to the form of one. A server that has just started lists none yet."""
        link = self.page.locator("a[href*='/deployments/deployment/']", has_text=deployment).first

        def listed() -> bool:
            self.page.goto(f"{self.url}/deployments")
            with suppress(TimeoutError):
                link.wait_for(timeout=PATIENCE / 6)
                return True
            return False

        wait_until(listed, timedelta(milliseconds=3 * PATIENCE), SystemClock())
        link.click()
        self.page.wait_for_url("**/deployments/deployment/*")
        self.page.goto(f"{self.page.url.partition('?')[0]}/run")
        self.page.get_by_text(field).first.wait_for()

    def field(self, name: str) -> Locator:
        """The text box below the parameter's name."""
        label = f"normalize-space(.)='{name}' or normalize-space(.)='{name} (Optional)'"
        return self.page.locator(f"xpath=//*[{label}]/following::textarea[1]").first

    def fill(self, name: str, text: str) -> None:
        """Fill the box, and see that it stays so: the form is drawn anew when its values have come."""
        box = self.field(name)
        box.fill(text)
        self.page.wait_for_timeout(SETTLES)
        if box.input_value() != text:
            box.fill(text)
        expect(box).to_have_value(text, timeout=PATIENCE)

    def submit(self) -> str:
        """Send the form and open its run; returns the run's id."""
        with self.page.expect_response(lambda answer: answer.url.endswith("/create_flow_run")) as created:
            self.page.get_by_role("button", name="Submit").click()
        run_id = str(created.value.json()["id"])
        self.open_run(run_id)
        return run_id

    def open_run(self, run_id: str) -> None:
        self.page.goto(f"{self.url}/runs/flow-run/{run_id}")

    def await_state(self, name: str) -> None:
        """The badge of the open run, which changes while one looks.

        The run is a process that starts first and has a worker to wait for: on a busy machine that takes minutes.
        """
        try:
            self.page.get_by_text(name, exact=True).first.wait_for(timeout=5 * PATIENCE)
        except TimeoutError:
            pytest.fail(f"the run did not become {name}; its page says:\n{self.page.inner_text('body')}")

    def tab(self, name: str) -> None:
        self.page.get_by_text(name, exact=True).first.click()

    def open_artifact(self, key: str) -> None:
        """That of the open run."""
        self.tab("Artifacts")
        self.page.locator("a[href*='/artifacts/artifact/']", has_text=key).first.click()
        self.page.wait_for_url("**/artifacts/artifact/*")
