"""What the panes of both faces mean, by recorded screens of the real agent."""

from __future__ import annotations

import pytest

from lifecycle.agents.hermes.face import look
from lifecycle.screen import Face, PaneState
from tests.lifecycle.hermes.screens import FOLDER, PROFILE, agent, looked_at, recorded

BOTH = ("cli", "tui")

STATES = {
    PaneState.READY: [
        *("ready_fresh", "ready_answered", "background", "delegating", "api_failed", "resized", "resized_back"),
        "narrow",
    ],
    PaneState.TYPED: [
        *("typed_short", "typed_three_lines", "typed_wrapped", "typed_wide", "typed_collapsed", "typed_suggestion"),
        *("typed_slash", "typed_at", "typed_spaces", "typed_cursor_home", "typed_flat", "typed_flat_line"),
        "narrow_typed",
    ],
    PaneState.BUSY: [
        *("after_enter", "busy_model", "busy_tool", "busy_typed", "busy_queued", "busy_typed_flat", "api_retrying"),
        "busy_queued_flat",
    ],
    PaneState.COMPACTING: ["compress"],
    PaneState.DIALOG: ["approval", "clarify", "clarify_open", "new_confirm", "model_picker"],
    PaneState.STARTING: ["starting"],
    PaneState.SETUP: ["setup"],
    PaneState.REFUSED: ["refused"],
    PaneState.EXITED: ["exited"],
    PaneState.COPY_MODE: ["copy_mode"],
}
ONLY_TUI = {
    PaneState.READY: ["compressed"],
    PaneState.DIALOG: ["menu_sessions", "menu_history", "menu_status"],
    PaneState.STARTING: ["starting_summoning", "starting_forging", "starting_agent"],
}
CASES = [(f"{face}_{name}", state) for state, names in STATES.items() for name in names for face in BOTH]
CASES += [(f"tui_{name}", state) for state, names in ONLY_TUI.items() for name in names]


@pytest.mark.parametrize(("name", "state"), CASES)
def test_a_recorded_pane_means_what_it_was_recorded_as(name: str, state: PaneState) -> None:
    seen = looked_at(name)
    assert seen.state is state
    assert seen.face is recorded(name)[1]
    assert seen.agent_pid == 4711
    assert bool(seen.dialog) == (state in {PaneState.DIALOG, PaneState.SETUP})


def test_every_recorded_screen_is_claimed() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {name for name, _ in CASES}


@pytest.mark.parametrize("name", [name for name, _ in CASES if "exited" not in name and name != "cli_refused"])
def test_a_pane_without_the_agent_is_never_its_input_line(name: str) -> None:  # W-20: prompts pasted into a shell
    screen, _ = recorded(name)
    assert look(PROFILE, screen, None).state is PaneState.NOT_AN_AGENT


@pytest.mark.parametrize(("name", "state"), CASES)
def test_a_profile_of_another_name_is_never_ready(name: str, state: PaneState) -> None:
    screen, face = recorded(name)
    other = look("builder", screen, agent(face))
    if state in {PaneState.READY, PaneState.TYPED}:
        assert other.state not in {PaneState.READY, PaneState.BUSY}


@pytest.mark.parametrize("face", BOTH)
def test_an_unknown_title_status_or_frame_is_not_ready(face: str) -> None:  # agent-of-empires #3491: a restyled face
    name = f"{face}_ready_answered"
    text = recorded(name)[0].text
    assert looked_at(name, text=text.replace("❯", "⟩")).state not in {PaneState.READY, PaneState.TYPED}
    if face == "tui":
        assert looked_at(name, title="Hermes").state is PaneState.UNKNOWN
        assert looked_at(name, text=text.replace("─ ready", "─ resting")).state is PaneState.UNKNOWN


@pytest.mark.parametrize("face", BOTH)
def test_only_the_part_that_was_typed_counts_as_text(face: str) -> None:
    assert looked_at(f"{face}_typed_suggestion").typed == "hel"
    assert looked_at(f"{face}_typed_short").typed == "hello there"
    assert looked_at(f"{face}_typed_three_lines").typed == "first line\nsecond line\nthird line end"
    assert looked_at(f"{face}_typed_cursor_home").typed == "moved"
    assert looked_at(f"{face}_typed_wide").typed == "# 恢复 of 日本語 end"
    assert looked_at(f"{face}_busy_typed").typed == "typed while busy"
    assert looked_at(f"{face}_busy_model").typed == ""
    assert looked_at(f"{face}_ready_fresh").typed == ""


@pytest.mark.parametrize("face", BOTH)
def test_a_delegate_shows_and_a_background_process_does_not_hinder(face: str) -> None:
    assert looked_at(f"{face}_delegating").background
    assert not looked_at(f"{face}_background").background
    assert not looked_at(f"{face}_ready_answered").background


@pytest.mark.parametrize("face", BOTH)
def test_a_failed_turn_is_noticed_until_a_later_one_is_answered(face: str) -> None:
    assert looked_at(f"{face}_api_failed").notice == "API call failed after 3 retries: HTTP 500: stub error"
    assert looked_at(f"{face}_background").notice == ""


def test_a_lost_login_is_noticed() -> None:
    screen, face = recorded("cli_api_failed")
    text = screen.text.replace("API call failed after 3 retries: HTTP 500: stub error", "")
    text = text.replace("   💀 Final error: HTTP 500: stub error", "")
    text = text.replace(
        "❌ API failed after 3 retries — HTTP 500: stub error",
        "❌ Non-retryable error (HTTP 401): token expired",
    )
    seen = look(PROFILE, screen.model_copy(update={"text": text}), agent(face))
    assert seen.state is PaneState.READY
    assert seen.notice == "❌ Non-retryable error (HTTP 401): token expired"


def test_a_dialog_tells_what_it_asks() -> None:
    for face in BOTH:
        assert "rm -rf /srv/farms/nothing/there" in looked_at(f"{face}_approval").dialog
        assert "Which tree?" in looked_at(f"{face}_clarify").dialog
        assert "What name?" in looked_at(f"{face}_clarify_open").dialog


def test_the_face_is_told_by_the_command_before_the_screen() -> None:
    screen, _ = recorded("tui_starting")
    assert not screen.alternate_on
    assert look(PROFILE, screen, agent(Face.TUI)).face is Face.TUI
    unsaid = agent(Face.TUI).model_copy(update={"command": ("hermes", "chat")})
    assert look(PROFILE, screen, unsaid).face is Face.CLI
    assert look(PROFILE, screen.model_copy(update={"alternate_on": True}), unsaid).face is Face.TUI
    told = unsaid.model_copy(update={"environment": {"HERMES_TUI": "1"}})
    assert look(PROFILE, screen, told).face is Face.TUI
