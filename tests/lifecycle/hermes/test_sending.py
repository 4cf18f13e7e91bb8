"""Text is typed only where the face takes it as written, and is recognised in the input line."""

from __future__ import annotations

from pathlib import Path

import pytest

from lifecycle.agents.hermes.sending import check_sendable, queues_while_busy, shows_text
from lifecycle.errors import TextNotSendable
from lifecycle.screen import Face, PaneLook, PaneState
from tests.lifecycle.hermes.screens import looked_at

BOTH = [Face.CLI, Face.TUI]
REQUEST = """CONTEXT_HANDOFF_REQUIRED
WORKER: swarm1
DRAFT: /srv/farms/profiles/swarm1/memory/handoffs/draft-r1.md
# Handoff — swarm1 — none
Reply with STATE: HANDOFF; e-mail a@b.c is no reference, a/b is no end.
This is the end of the request."""


def profile(folder: Path, config: str = "") -> Path:
    (folder / "config.yaml").write_text(config or "model: {default: m}\n")
    return folder


@pytest.mark.parametrize("face", BOTH)
def test_a_request_of_ours_is_sendable(face: Face, tmp_path: Path) -> None:
    check_sendable(REQUEST, face, profile(tmp_path), busy=False)
    check_sendable(f"\n{REQUEST}\n\tend\n", face, profile(tmp_path), busy=False)


@pytest.mark.parametrize("face", BOTH)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "/new",
        "/compress now please",
        "/srv/notes.md says it",
        "~/notes.md says it",
        "./run this",
        "'/srv/a b.md' says it",
        "file:///srv/notes.md is there",
        "C:\\notes are there",
        "a\x00b end",
        "a\x1b[201~b end",
        "press\rEnter now",
        "bell\x07 end",
        "c1 \x9b end",
        "half \ud83d a pair",
        "a leaked [200~ mark end",
        "a report <35;20;10M of a mouse end",
    ],
)
def test_text_that_either_face_would_take_for_something_else_is_refused(text: str, face: Face, tmp_path: Path) -> None:
    with pytest.raises(TextNotSendable):
        check_sendable(text, face, profile(tmp_path), busy=False)


@pytest.mark.parametrize(
    "text",
    [
        "the branch is {!git branch} end",
        "{!rm -rf x}",
        "!ls",
        "look at notes/plan.md",
        "look at /srv/farms/plan.md",
        "look at ../plan",
        "ask @builder",
        "mail to a@b",
        "go on \\",
    ],
)
def test_text_that_the_tui_runs_or_completes_is_refused_there_alone(text: str, tmp_path: Path) -> None:
    with pytest.raises(TextNotSendable):
        check_sendable(text, Face.TUI, profile(tmp_path), busy=False)
    check_sendable(text, Face.CLI, profile(tmp_path), busy=False)


@pytest.mark.parametrize("text", ["see @file:notes.md now", "see @diff now", "@url:http://x.y/ end"])
def test_a_reference_that_the_classic_face_expands_is_refused_there(text: str, tmp_path: Path) -> None:
    with pytest.raises(TextNotSendable):
        check_sendable(text, Face.CLI, profile(tmp_path), busy=False)
    check_sendable(text, Face.TUI, profile(tmp_path), busy=False)


UNCOLLAPSED = "paste_collapse_threshold: 0\npaste_collapse_char_threshold: 0"


@pytest.mark.parametrize("text", ["a\nb\nc\nd\nend", "x " * 1000 + "end"])
def test_a_long_text_is_lost_in_a_busy_tui_unless_collapsing_is_off(text: str, tmp_path: Path) -> None:
    with pytest.raises(TextNotSendable, match="placeholder"):
        check_sendable(text, Face.TUI, profile(tmp_path), busy=True)
    check_sendable(text, Face.TUI, profile(tmp_path), busy=False)
    check_sendable(text, Face.CLI, profile(tmp_path), busy=True)
    flat = profile(tmp_path, UNCOLLAPSED)
    check_sendable(text, Face.TUI, flat, busy=True)
    check_sendable("a\nb\nc\nend", Face.TUI, profile(tmp_path), busy=True)


def test_the_reason_of_a_refusal_names_the_face(tmp_path: Path) -> None:
    with pytest.raises(TextNotSendable, match=r"Hermes's tui: \{! runs a command"):
        check_sendable("{!x} end", Face.TUI, profile(tmp_path), busy=False)


@pytest.mark.parametrize(
    ("config", "cli", "tui"),
    [
        (f"display: {{busy_input_mode: queue}}\n{UNCOLLAPSED}", True, True),
        (f"display: {{busy_input_mode: interrupt}}\n{UNCOLLAPSED}", False, False),
        (f"display: {{busy_input_mode: steer}}\n{UNCOLLAPSED}", False, False),
        (f"model: {{default: m}}\n{UNCOLLAPSED}", False, True),
        (f"display: off\n{UNCOLLAPSED}", False, True),
        ("display: {busy_input_mode: queue}", True, False),
        ("display: {busy_input_mode: queue}\npaste_collapse_threshold: 0", True, False),
        ("model: {default: m}", False, False),
        ("model: [broken", False, False),
    ],
)
def test_a_face_queues_our_prompts_if_the_profile_says_so_and_no_paste_is_collapsed(
    config: str, cli: bool, tui: bool, tmp_path: Path
) -> None:
    folder = profile(tmp_path, config)
    assert queues_while_busy(folder, Face.CLI) is cli
    assert queues_while_busy(folder, Face.TUI) is tui


LONG = "\n".join(f"line {i} of a long paste with words" for i in range(23))
FLAT = "\n".join(f"row {i} of a long paste with several words to fill it up a bit more" for i in range(30))
FLAT += "\nand it ends here"


@pytest.mark.parametrize("face", BOTH)
@pytest.mark.parametrize(
    ("screen", "text"),
    [
        ("typed_short", "hello there"),
        ("typed_three_lines", "first line\nsecond line\nthird line end"),
        ("typed_wrapped", "word " * 70 + "end"),
        ("narrow_typed", "hello narrow pane with words that are many enough to wrap over lines here"),
        ("typed_wide", "# 恢复 of 日本語 end"),
        ("typed_collapsed", LONG),
        ("typed_flat", FLAT),
        ("typed_flat_line", "x " * 1500 + "end"),
        ("busy_typed", "typed while busy"),
        ("busy_typed_flat", FLAT),
        ("typed_slash", "/compress"),
    ],
)
def test_our_text_is_recognised_in_the_line(face: Face, screen: str, text: str) -> None:
    seen = looked_at(f"{face}_{screen}")
    assert shows_text(seen, text)
    assert shows_text(seen, f"\n{text}\n")
    assert not shows_text(seen, text + "\nand more")
    assert not shows_text(seen, "and more\n" + text) or screen == "typed_flat_line"


@pytest.mark.parametrize("face", BOTH)
def test_another_paste_is_not_ours(face: Face) -> None:
    assert not shows_text(looked_at(f"{face}_typed_collapsed"), LONG.replace("line 22", "LINE 22") + "\nmore")
    assert not shows_text(looked_at(f"{face}_ready_fresh"), "hello there")
    assert not shows_text(looked_at(f"{face}_ready_fresh"), "")


def cli_line(text: str) -> PaneLook:
    return PaneLook(state=PaneState.TYPED, face=Face.CLI, typed=text)


def test_the_file_behind_a_placeholder_decides(tmp_path: Path) -> None:
    path = tmp_path / "paste_1_120000.txt"
    path.write_text("a person's\n5\nlines\nand\nmore")
    shown = cli_line(f"[Pasted text #1: 5 lines → {path}]")
    assert shows_text(shown, "a person's\n5\nlines\nand\nmore")
    assert not shows_text(shown, "ours\nis\nas\nmany\nlines")


def test_a_placeholder_behind_a_persons_words_is_not_ours() -> None:  # gascity #5192, T10
    assert not shows_text(cli_line("wait\n[Pasted text #1: 23 lines → /gone]"), LONG)
    assert shows_text(cli_line("[Pasted text #1: 23 lines → /gone]"), LONG)


@pytest.mark.parametrize(
    ("token", "text"),
    [
        ("[[ a b c d end [5 lines] ]]", "a\nb\nc\nd\nend"),
        ("[[ x x x x x x x x.. [1.2k lines] .. x x x x x x x x x x x x x x ]]", "x\n" * 1199 + "x"),
        ("[[ CONTEXT_HANDOFF_.. [6 lines] .. s is the end of the request. ]]", REQUEST),
    ],
)
def test_a_token_of_the_tui_is_recognised(token: str, text: str) -> None:
    look = PaneLook(state=PaneState.TYPED, face=Face.TUI, typed=token)
    assert shows_text(look, text)
    assert not shows_text(look, text + "\nmore")
