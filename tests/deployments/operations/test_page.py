"""The page in a real headless Chromium over `afresh serve`, with a scripted agent in a real pane."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.deployments.operations.fleet_page import (
    HOSTILE,
    PATIENCE,
    PHONE,
    Fleet,
    FleetPage,
    chromium,
    opened,
    wait_served,
)

pytestmark = [pytest.mark.operations, pytest.mark.timeout(900)]

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    fleet = Fleet()
    try:
        wait_served(fleet)
        yield fleet
    finally:
        fleet.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def shown(browser: Browser, fleet: Fleet) -> Iterator[FleetPage]:
    with opened(browser, fleet) as shown:
        yield shown


def test_the_fleet_appears_with_the_six_things_that_the_reference_promises(shown: FleetPage) -> None:
    card = shown.card()

    expect(card.locator(".state")).to_have_text("healthy")
    meter = card.get_by_role("meter", name="Context of swarm1")
    expect(meter).to_have_attribute("aria-valuenow", "20000")
    expect(meter).to_have_attribute(
        "aria-valuetext",
        "20,000 tokens, 33 % of the handoff limit (as the agent logged); "
        "limits: soft 30,000 · handoff 60,000 · hard 90,000",
    )
    expect(card.locator(".figures")).to_contain_text("20,000 tokens")
    expect(card.locator(".handoff-age")).to_have_text("No handoff yet")
    expect(card.get_by_role("switch", name="Automatic renewal of swarm1")).not_to_be_checked()
    expect(shown.button("Renew")).to_be_enabled()
    left = [card.locator(f".limit.{name}").bounding_box() for name in ("soft", "handoff", "hard")]
    places = [box["x"] for box in left if box is not None]
    assert places == sorted(places)
    assert len(set(places)) == 3
    expect(shown.page.locator("#summary")).to_have_text("2 workers, 1 blocked")
    expect(shown.page.locator("#connection")).to_have_text("live")


def test_a_change_of_state_arrives_without_a_reload(shown: FleetPage, fleet: Fleet) -> None:
    shown.page.evaluate("window.here = true")

    fleet.stage.fill(35_000)

    expect(shown.card().locator(".state")).to_have_text("watch")
    expect(shown.card().get_by_role("meter")).to_have_attribute("aria-valuenow", "35000")
    assert shown.page.evaluate("window.here") is True


def test_automatic_renewal_is_switched_and_remembered(shown: FleetPage, fleet: Fleet) -> None:
    switch = shown.card().get_by_role("switch")

    switch.click()
    expect(switch).to_be_checked()
    expect(shown.message("automatic renewal of swarm1 is on")).to_be_visible()
    with fleet.ledger() as ledger:
        assert ledger.record("swarm1").automatic is True
    switch.click()
    expect(switch).not_to_be_checked()
    assert ("automatic", {"on": False, "who": "the page over HTTP", "why": ""}) in fleet.events()


def test_with_the_keyboard_alone_a_worker_is_held_and_released(shown: FleetPage) -> None:
    page = shown.page

    def reach(name: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.getAttribute('aria-label')") == name:
                return
        pytest.fail(f"{name} was not reached")

    page.locator("body").press("Home")
    reach("Hold: swarm1")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus is seen"
    page.keyboard.press("Enter")
    expect(shown.card().locator(".state")).to_have_text("held · watch")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Release: swarm1", "focus stays"
    expect(shown.button("Renew")).to_be_disabled()
    page.keyboard.press("Space")
    expect(shown.card().locator(".state")).to_have_text("watch")


def test_renewing_asks_first_and_then_renews_the_real_agent(shown: FleetPage, fleet: Fleet) -> None:
    page, agent = shown.page, fleet.stage.pane_pid
    shown.button("Renew").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Renew swarm1?")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert page.evaluate("document.activeElement.className") == "renew", "focus comes back"

    page.keyboard.press("Enter")
    dialog.get_by_label("Why, for the record").fill("a test of the page")
    dialog.get_by_role("button", name="Renew").click()

    expect(shown.message("Renew swarm1: begun")).to_be_visible()
    expect(shown.card().locator(".state")).to_have_text("healthy")
    expect(shown.card().locator(".generation")).to_have_text("generation 2")
    expect(shown.message("Renew swarm1: Renewed")).to_be_visible()
    assert fleet.stage.pane_pid != agent
    with fleet.ledger() as ledger:
        assert ledger.renewals_of("swarm1")[0].why == "a test of the page"


def test_the_handoff_is_read_and_the_generations_are_drawn(shown: FleetPage) -> None:
    card = shown.card()
    expect(card.locator(".generation")).to_have_text("generation 2")
    expect(card.locator(".handoff-age")).to_contain_text("Last handoff")

    card.get_by_text("Handoff and generations").click()

    expect(card.locator("pre.handoff-text")).to_contain_text('worker: "swarm1"')
    expect(card.locator("pre.handoff-text")).to_contain_text("Next exact action")
    expect(card.locator("figure svg rect.bar")).to_have_count(2)
    drawn = card.locator("figure svg").get_attribute("aria-label") or ""
    assert drawn.startswith("generation 1: 35,000 tokens; generation 2: ")


def test_a_block_comes_with_its_evidence_and_is_answered(shown: FleetPage, fleet: Fleet) -> None:
    card = shown.card()
    fleet.stage.behave(handoff="partial")
    shown.button("Renew").click()
    shown.page.get_by_role("dialog").get_by_role("button", name="Renew").click()

    block = card.get_by_role("group", name="Block of swarm1")
    expect(block).to_be_visible()
    expect(block.locator("h3")).to_contain_text("Blocked: checkpoint_")
    expect(block.locator(".evidence")).not_to_be_empty()
    expect(block.locator(".remedy")).not_to_be_empty()
    expect(shown.message("Renew swarm1: Blocked")).to_be_visible()
    expect(shown.button("Renew")).to_be_disabled()

    fleet.stage.behave(handoff="good")
    block.get_by_role("button", name="Retry").click()
    dialog = shown.page.get_by_role("dialog", name="Retry: swarm1")
    dialog.get_by_label("Why, for the record").fill("it behaves now")
    dialog.get_by_role("button", name="Retry").click()

    expect(card.locator(".generation")).to_have_text("generation 3")
    expect(block).to_be_hidden()
    answered = [detail for kind, detail in fleet.events() if kind == "answered"]
    assert answered == [{"choice": "retry", "who": "the page over HTTP", "why": "it behaves now"}]


def test_what_a_worker_wrote_is_shown_and_never_run(shown: FleetPage) -> None:
    card = shown.card("swarm2")
    card.get_by_text("Handoff and generations").click()

    expect(card.locator("pre.handoff-text")).to_contain_text(HOSTILE)
    expect(card.locator(".block .detail")).to_contain_text(HOSTILE)
    expect(card.locator(".evidence")).to_have_text(HOSTILE)
    expect(card.locator(".session")).to_contain_text(HOSTILE)
    assert card.locator("img, script").count() == 0
    assert shown.page.evaluate("window.owned") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_everything_fits_and_every_text_is_legible(browser: Browser, fleet: Fleet, scheme: str) -> None:
    phone = {"viewport": PHONE, "is_mobile": True, "has_touch": True, "color_scheme": scheme}
    with opened(browser, fleet, **phone, reduced_motion="reduce") as shown:
        for worker_id in ("swarm1", "swarm2"):
            shown.card(worker_id).get_by_text("Handoff and generations").click()
        expect(shown.card("swarm2").locator("pre.handoff-text")).to_be_visible()

        assert shown.widest() == 0
        assert too_faint(shown) == []
        small = shown.page.evaluate(
            "[...document.querySelectorAll('button')].filter(b => b.offsetParent && b.offsetHeight < 44).length"
        )
        assert small == 0, "every button can be hit with a thumb"
        assert shown.page.evaluate("getComputedStyle(document.querySelector('.fill')).transitionProperty") == "none"
        picture(shown, f"page-phone-{scheme}.png")


def test_every_control_has_a_name_and_every_text_is_legible_on_a_wide_screen(browser: Browser, fleet: Fleet) -> None:
    for scheme in ("light", "dark"):
        with opened(browser, fleet, color_scheme=scheme) as shown:
            shown.card().get_by_text("Handoff and generations").click()
            expect(shown.card().locator("pre.handoff-text")).to_be_visible()
            nameless = shown.page.evaluate(
                "[...document.querySelectorAll('button, input, a, [role]')].filter(e => e.offsetParent"
                " && !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).length"
            )
            assert nameless == 0
            assert too_faint(shown) == []
            picture(shown, f"page-{scheme}.png")


def test_the_description_of_the_api_needs_no_internet(shown: FleetPage) -> None:
    shown.page.get_by_role("link", name="API").click()

    expect(shown.page.get_by_role("heading", name="POST /api/swarm-lifecycle", exact=True)).to_be_visible()
    expect(shown.page.get_by_text("auto-sweep, request-handoff, renew")).to_be_visible()
    assert shown.widest() == 0


def test_a_session_that_has_ended_leads_to_the_form(shown: FleetPage) -> None:
    shown.page.get_by_role("button", name="Log out").click()

    expect(shown.page.get_by_label("Token of this home")).to_be_visible()


def too_faint(shown: FleetPage) -> list[str]:
    """Texts whose contrast with what lies behind them is below 4.5 (WCAG 2.2, 1.4.3)."""
    found: list[str] = shown.page.evaluate(CONTRAST)
    return found


CONTRAST = """() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, place) => sum + c * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest("svg, :disabled")) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faint.push(`${element.className || element.tagName}: ${contrast.toFixed(2)}`);
  }
  return faint;
}"""


def picture(shown: FleetPage, name: str) -> None:
    """Keep a picture for the documents where AFRESH_PICTURES names a folder."""
    folder = os.environ.get("AFRESH_PICTURES")
    if folder:
        shown.page.screenshot(path=Path(folder) / name)
