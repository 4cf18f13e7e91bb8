"""The scripted agent's face: what it draws, and what it makes of the keys, as Hermes's `--cli` does in 0.19.0."""

from __future__ import annotations

import os
import re
import shutil
import sys
import termios
import time
import tty
from pathlib import Path

_STREAM = re.compile(rb"\x1b\[200~(.*?)\x1b\[201~|\x1b\[[0-9;]*[A-Za-z~]|\x1b.?|[\x20-\x7e\x80-\xff]+|.", re.DOTALL)
_HINT = "msg=interrupt · /queue · /bg · /steer · Ctrl+C cancel"
_BOX = (
    "╭────────────────────────────────────────────────╮",
    "│ ⚠️  Dangerous Command                          │",
    "│                                                │",
    "│ rm -rf build                                   │",
    "│                                                │",
    "│ ❯ 1. Allow once                                │",
    "│   2. Allow for this session                    │",
    "│   3. Add to permanent allowlist                │",
    "│   4. Deny                                      │",
    "╰────────────────────────────────────────────────╯",
    "  ↑/↓ to select, Enter to confirm  (57s)",
)


class Face:
    """The bottom of the screen: status bar, two rules as wide as the pane, the input line between them."""

    def __init__(self, profile: Path, context_length: int, model: str = "scripted-model") -> None:
        self.profile, self.context_length, self.model = profile, context_length, model
        self.transcript: list[str] = []
        self.draft = ""
        self._pasted = 0
        self._shown_as: dict[str, str] = {}
        self._began = time.monotonic()

    def open(self) -> None:
        """From here on keys are ours. What came before is lost, and a multi-line paste would have been torn."""
        tty.setraw(sys.stdin.fileno(), termios.TCSAFLUSH)
        _write("\x1b[?2004h")

    def close(self) -> None:
        _write("\x1b[?2004l\r\n")

    def say(self, *lines: str) -> None:
        self.transcript.extend(lines)

    def keys(self, raw: bytes) -> list[tuple[str, str]]:
        """Split what arrived into pastes, texts and single keys. tmux turns a paste's LF into CR."""
        found = []
        for match in _STREAM.finditer(raw):
            piece = match.group(0)
            if match.group(1) is not None:
                text = match.group(1).decode(errors="replace")
                found.append(("paste", text.replace("\r\n", "\n").replace("\r", "\n")))
            elif piece[:1] >= b" " and piece != b"\x7f":
                found.append(("text", piece.decode(errors="replace")))
            elif not piece.startswith(b"\x1b"):
                found.append(("key", piece.decode()))
        return found

    def insert(self, text: str) -> None:
        """Take a paste; a long one shows as a placeholder, and its text lies in a file, until it is sent."""
        lines = text.count("\n") + 1
        if lines > 5 or len(text) >= 2000:
            self._pasted += 1
            folder = self.profile / "pastes"
            folder.mkdir(exist_ok=True)
            file = folder / f"paste_{self._pasted}_{time.strftime('%H%M%S')}.txt"
            file.write_text(text)
            shown = f"[Pasted text #{self._pasted}: {lines} lines → {file}]"
            self._shown_as[shown] = text
            text = shown
        self.draft += text

    def take(self) -> str:
        """The whole text of the input line, which is empty afterwards."""
        text, self.draft = self.draft, ""
        for shown, whole in self._shown_as.items():
            text = text.replace(shown, whole)
        return text.strip()

    def draw(self, state: str, tokens: int | None, *, background: bool = False) -> None:
        """Show *state*: `ready`, `busy` or `dialog`."""
        width, height = shutil.get_terminal_size((80, 24))
        symbol = {"busy": "⚕ ❯ ", "dialog": "⚠ ❯ "}.get(state, f"{self.profile.name} ❯ ")
        hint = _HINT if state == "busy" and not self.draft else ""
        rows = _wrapped(symbol + (self.draft or hint), width)
        frame = [self._status(state, tokens, background), "─" * width, *rows, "─" * width]
        above = [*self.transcript, *(_BOX if state == "dialog" else ())]
        room = max(height - len(frame) - 1, 0)
        lines = [*above[len(above) - min(room, len(above)) :], *frame]
        body = "\r\n".join(f"{line[:width]}\x1b[K" for line in lines)
        at_row, at_column = len(lines) - 1, (len(symbol) if hint else len(rows[-1])) + 1
        _write(f"\x1b[H{body}\x1b[J\x1b[{at_row};{at_column}H")

    def _status(self, state: str, tokens: int | None, background: bool) -> str:
        share = "--" if tokens is None else f"{100 * tokens // self.context_length}%"
        used = "ctx --" if tokens is None else f"{tokens / 1000:.1f}K/{self.context_length // 1000}K"
        clock = "⏲ 0s" if state == "ready" else "⏱ 1s"
        age = f"{time.monotonic() - self._began:.0f}s"
        parts = [f" ⚕ {self.model}", used, f"[░░░░░░░░░░] {share}", *(["⚙ 1"] if background else []), age, clock]
        return " │ ".join(parts)


def failure(summary: str) -> list[str]:
    """What Hermes draws below a turn that its provider did not answer; nothing where there is no *summary*."""
    if not summary:
        return []
    if "401" in summary:
        head = [f"❌ Non-retryable error (HTTP 401): {summary}", "❌ Non-retryable client error (HTTP 401). Aborting."]
        return [*head, "   💡 Your API key was rejected by the provider. Check:"]
    ended = "Rate limited" if "429" in summary else "API failed"
    box = [" ─  ⚕ Hermes  " + "─" * 40, f"     API call failed after 3 retries: {summary}", " " + "─" * 54]
    return [f"❌ {ended} after 3 retries — {summary}", f"   💀 Final error: {summary}", *box]


def _wrapped(text: str, width: int) -> list[str]:
    rows = []
    for line in text.split("\n"):
        rows += [line[start : start + width] for start in range(0, max(len(line), 1), width)]
    return rows


def _write(text: str) -> None:
    raw = text.encode()
    try:
        while raw:
            raw = raw[os.write(sys.stdout.fileno(), raw) :]
    except OSError:
        return  # the terminal is gone; the agent may outlive it
