"""How a profile's configuration sets the input line: which text is collapsed, and what becomes of text in a turn."""

from __future__ import annotations

from pathlib import Path

from lifecycle.agents.hermes.config_file import ConfigBroken, read_config
from lifecycle.screen import Face
from lifecycle.value import Value

QUEUE = "queue"


class InputSettings(Value):
    """Defaults are Hermes 0.19's. A threshold of 0 turns collapsing off."""

    busy_input_mode: str | None = None
    collapse_lines: int = 5
    collapse_chars: int = 2000

    def queues(self, face: Face) -> bool:
        """Whether text sent during a turn waits for its end. Without the key the classic face interrupts."""
        return self.busy_input_mode == QUEUE or (self.busy_input_mode is None and face is Face.TUI)

    @property
    def collapses_long_pastes(self) -> bool:
        return self.collapse_lines > 0 or self.collapse_chars > 0

    def collapses(self, text: str) -> bool:
        """Whether a paste of *text* is shown as a placeholder. The TUI counts lines, the classic face line ends."""
        many = 0 < self.collapse_lines <= text.count("\n") + 1
        return many or 0 < self.collapse_chars <= len(text)


def input_settings(profile: Path) -> InputSettings:
    """The settings in force; the defaults where there is no readable configuration, as Hermes does it."""
    try:
        config = read_config(profile)
    except ConfigBroken:
        return InputSettings()
    display = config.get("display")
    mode = display.get("busy_input_mode") if isinstance(display, dict) else None
    defaults = InputSettings()
    return InputSettings(
        busy_input_mode=mode.strip().lower() if isinstance(mode, str) else None,
        collapse_lines=_number(config.get("paste_collapse_threshold"), defaults.collapse_lines),
        collapse_chars=_number(config.get("paste_collapse_char_threshold"), defaults.collapse_chars),
    )


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
