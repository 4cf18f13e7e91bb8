"""The terminal interface: each of its three signs lies alone."""

from __future__ import annotations

import re

import pytest

from lifecycle.screen import PaneState
from tests.lifecycle.hermes.screens import looked_at, recorded

READY = "tui_ready_answered"


def with_status(status: str) -> str:
    return recorded(READY)[0].text.replace("─ ready", f"─ {status}")


def test_a_calm_title_alone_is_not_ready() -> None:
    for name in ("tui_compress", "tui_starting_agent", "tui_new_confirm", "tui_model_picker"):
        assert recorded(name)[0].title.startswith("✓")
        assert looked_at(name).state is not PaneState.READY


def test_a_ready_status_alone_is_not_ready() -> None:
    for name in ("tui_new_confirm", "tui_refused"):
        assert "─ ready │" in recorded(name)[0].text
        assert looked_at(name).state is not PaneState.READY


def test_the_cursor_alone_is_not_ready() -> None:
    for name in ("tui_busy_model", "tui_compress", "tui_starting_agent"):
        assert recorded(name)[0].cursor_x == 10
        assert looked_at(name).state is not PaneState.READY


@pytest.mark.parametrize(
    "placeholder",
    [
        "Ask me anything…",
        'Try "explain this codebase"',
        'Try "write a test for…"',
        'Try "/help" for commands',
        'Try "how does the config loader work?"',
    ],
)
def test_every_placeholder_of_the_face_is_no_text(placeholder: str) -> None:
    text = recorded("tui_ready_fresh")[0].text.replace('Try "refactor the auth module"', placeholder)
    assert looked_at("tui_ready_fresh", text=text).state is PaneState.READY
    assert looked_at("tui_ready_fresh", text=text, title="⏳ first turn").typed == ""


def test_the_placeholder_is_no_text_and_the_same_words_typed_are() -> None:
    assert 'Try "' in recorded("tui_ready_fresh")[0].text
    assert looked_at("tui_ready_fresh").state is PaneState.READY
    assert looked_at("tui_ready_fresh", cursor_x=36).state is PaneState.TYPED


@pytest.mark.parametrize("status", ["sudo password needed", "secret input needed", "waiting for input…"])
def test_every_question_is_a_dialog(status: str) -> None:
    assert looked_at(READY, text=with_status(status)).state is PaneState.DIALOG


def test_a_menu_that_leaves_the_prompt_is_a_dialog() -> None:
    assert looked_at(READY, cursor_x=0).state is PaneState.DIALOG


def test_an_editor_on_the_alternate_screen_is_unknown() -> None:
    assert looked_at(READY, text="~\n~ an editor", cursor_x=3).state is PaneState.UNKNOWN


def test_a_process_without_a_session_that_was_not_refused_is_starting() -> None:
    screen = recorded("tui_refused")[0]
    text = screen.text.replace("Hermes is at the active session limit", "one moment")
    assert looked_at("tui_refused", text=text).state is PaneState.STARTING


def test_a_background_turn_shows() -> None:
    text = recorded(READY)[0].text.replace("│ 1 session", "│ 1 session │ 2 bg")
    assert looked_at(READY, text=text).background


def test_a_quoted_status_line_in_the_transcript_does_not_count() -> None:
    text = " ─ (◔_◔) musing… │ stub model │ 1s\n swarm1 ❯ quoted\n" + recorded(READY)[0].text
    assert looked_at(READY, text=text).state is PaneState.READY


@pytest.mark.parametrize(
    ("since", "state"),
    [
        ("✓ 5s", PaneState.READY),
        ("✓ 1m 0s", PaneState.READY),
        ("✓ 0s", PaneState.UNKNOWN),
        ("⏱ 5s", PaneState.UNKNOWN),
    ],
)
def test_a_status_that_missed_the_end_of_its_turn_is_told_by_the_time_since(since: str, state: PaneState) -> None:
    """Seen with the real agent under load: `running…` for minutes, the title calm, the composer free."""
    text, turns = re.subn("✓ [0-9hms ]+s", since, with_status("running…"))
    assert turns == 1
    assert looked_at(READY, text=text).state is state


def test_a_running_turn_is_not_taken_for_one_that_is_over() -> None:
    text = re.sub("✓ [0-9hms ]+s", "✓ 9s", with_status("running…"))
    assert looked_at(READY, text=text, title="⏳ a turn").state is PaneState.BUSY
    busy = text.replace("swarm1 ❯", "swarm1 ❯ Ctrl+C to interrupt…")
    assert looked_at(READY, text=busy).state is not PaneState.READY
