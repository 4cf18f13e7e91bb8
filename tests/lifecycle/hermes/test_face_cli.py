"""The classic face: cases that no recording shows."""

from __future__ import annotations

import pytest

from lifecycle.screen import PaneState
from tests.lifecycle.hermes.screens import looked_at, recorded

READY = "cli_ready_answered"
PROMPT = "swarm1 ❯"


@pytest.mark.parametrize("icon", ["⚠", "?", "✎", "🔐", "🔑", "⚠\ufe0f"])
def test_every_question_is_a_dialog(icon: str) -> None:
    text = recorded(READY)[0].text.replace(PROMPT, f"{icon} ❯ type something")
    assert looked_at(READY, text=text).state is PaneState.DIALOG


@pytest.mark.parametrize("icon", ["⚠", "?", "✎"])
def test_a_narrow_pane_shows_a_dialog_by_its_icon_alone(icon: str) -> None:
    text = recorded("cli_narrow")[0].text.replace(PROMPT, icon)
    assert looked_at("cli_narrow", text=text).state is PaneState.DIALOG


def test_a_running_command_takes_no_text_even_if_it_is_not_compress() -> None:
    text = recorded(READY)[0].text.replace(PROMPT, "⠙ ❯ ⠙ Reloading tools...")
    assert looked_at(READY, text=text).state is PaneState.UNKNOWN


def test_voice_mode_is_not_ready() -> None:
    text = recorded(READY)[0].text.replace(PROMPT, "🎤 ❯ type or Ctrl+B to record")
    assert looked_at(READY, text=text).state is PaneState.UNKNOWN


def test_a_prompt_without_a_profile_is_ready_too() -> None:
    text = recorded(READY)[0].text.replace(PROMPT, "❯")
    assert looked_at(READY, text=text, cursor_x=2).state is PaneState.READY


def test_a_hidden_status_line_hides_neither_ready_nor_a_menu() -> None:
    lines = recorded(READY)[0].text.split("\n")
    hidden = "\n".join("" if line.startswith(" ⚕ stub-model │") else line for line in lines)
    assert looked_at(READY, text=hidden).state is PaneState.READY
    assert looked_at("cli_model_picker").state is PaneState.DIALOG


def test_rules_of_the_transcript_are_no_frame() -> None:
    rule = "─" * 200
    text = recorded(READY)[0].text.replace(rule, "─" * 199)
    quoted = text + f"\n{rule}\nswarm1 says ❯\n{rule}\n"
    assert looked_at(READY, text=quoted).state is PaneState.UNKNOWN
    assert looked_at(READY, text=text).state is PaneState.STARTING


def test_another_program_on_the_alternate_screen_is_unknown() -> None:
    assert looked_at(READY, text="~\n~\n~ an editor", alternate_on=True).state is PaneState.UNKNOWN


def test_a_scrolled_text_during_a_turn_is_busy() -> None:
    scrolled = recorded("cli_typed_flat_line")[0].text
    assert "⏲" in scrolled
    assert looked_at("cli_typed_flat_line").typed.count("\n") == 7
    assert looked_at("cli_typed_flat_line", text=scrolled.replace("⏲", "⏱")).state is PaneState.BUSY


def test_blank_lines_in_the_input_are_text() -> None:
    text = recorded(READY)[0].text.replace(PROMPT, f"{PROMPT}\n")
    assert looked_at(READY, text=text).state is PaneState.TYPED
