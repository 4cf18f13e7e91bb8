"""A process that looks like a Hermes Agent in its `--cli` face, and does what `script.json` in its profile says.

Standard library only, so that it is up in a blink. It is run through a file named `hermes` (see `stage.py`), so
that its command line is an agent's: `python …/hermes chat --cli`. Orders in a user text: `[[tokens N]]` sets how
full the context is, `[[slow S]]` how long the turn takes, `[[dialog]]` opens an approval box.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from tests.agents.face import Face, failure
from tests.agents.manners import Manners, read_manners
from tests.agents.records import Records
from tests.agents.replies import FOREVER, Step, labelled, orders_in, plan

_SLEEPER = ("sleep", "600")

_SAVED_WITHIN = 30.0
"""Seconds: where nobody saves a handoff, work goes on all the same."""


class Agent:
    """One loop over keys, signals and the steps of the running turn. Nothing in it blocks."""

    def __init__(self, profile: Path, records: Records) -> None:
        self.script = profile / "script.json"
        self.records = records
        self.face = Face(profile, self.manners.context_length)
        self.state = "starting"
        self.tokens: int | None = None
        self.queue: deque[str] = deque()
        self.steps: deque[Step] = deque()
        self.due = time.monotonic() + (FOREVER if self.manners.never_ready else self.manners.start_delay)
        self.begun_at = 0.0
        self.prompted: set[tuple[str, str]] = set()
        self.enters = self.pastes = 0
        self.child: subprocess.Popen[bytes] | None = None
        self.end_at: float | None = None
        self.listening = True

    @property
    def manners(self) -> Manners:
        return read_manners(self.script)

    def run(self) -> None:
        """Live until told to end."""
        wake, waker = os.pipe()
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self._told_to_end())
        while self.end_at is None or time.monotonic() < self.end_at:
            deaf = self.manners.deaf
            typed = self.listening and self.state != "starting" and not deaf
            until = min(self.due, FOREVER if self.end_at is None else self.end_at) - time.monotonic()
            files = [wake, *([sys.stdin.fileno()] if typed else [])]
            ready, _, _ = select.select(files, [], [], max(0.0, min(until, 0.05 if deaf else 60.0)))
            if wake in ready:
                os.read(wake, 64)
            if typed and sys.stdin.fileno() in ready:
                self._read_keys()
            if time.monotonic() >= self.due and self.end_at is None:
                self._go_on()
        self._end()

    def _go_on(self) -> None:
        """What is due: the input line appears, or the running turn takes its next step."""
        if self.state == "starting" and self.manners.held:
            self.due = time.monotonic() + 0.05
            return
        if self.state == "starting":
            self.face.open()
            self.face.say("Welcome to Hermes Agent! Type your message or /help for commands.", "")
            self._have_child()
        else:
            self._take(self.steps.popleft())
        self._plan()

    def _plan(self) -> None:
        self.due = FOREVER
        if self.steps and self.state != "dialog":
            self.due = time.monotonic() + self.steps[0].after
        elif self.queue and not self.steps:
            self._begin_turn(self.queue.popleft())
        elif not self.steps:
            self._show("ready")

    def _begin_turn(self, text: str) -> None:
        self.begun_at = time.time()
        manners, prompt = self.manners, (text.split(maxsplit=1)[0], labelled(text, "RENEWAL_ID"))
        self.records.user(text)
        self.face.say("─" * 40, f"● {text.splitlines()[0]}", "─" * 40)
        grown = (manners.baseline if self.tokens is None else self.tokens) + manners.tokens_per_turn
        self.tokens = int(orders_in(text).get("tokens", grown))
        self.steps.extend(plan(text, manners, again=prompt in self.prompted))
        self.prompted.add(prompt)
        self._show("busy")
        self._plan()

    def _take(self, step: Step) -> None:
        if step.act == "die":
            os._exit(1)  # as a crash: the session stays open for ever
        if step.act == "dialog":
            self._show("dialog")
        elif step.act == "wake":
            self.queue.append(step.text)
        elif step.act == "await":
            if not self._has_saved() and time.time() < self.begun_at + _SAVED_WITHIN:
                self.steps.appendleft(Step(0.05, "await"))
        elif step.act == "hold":
            if self.manners.held:
                self.steps.appendleft(Step(0.05, "hold"))
        elif step.act == "mute":
            self.face.say(*failure(self.manners.trouble))
        elif step.act == "say":
            self.records.api_call(self.tokens or 0, len(step.text) // 4)
            self.records.assistant(step.text)
            self.face.say("╭─ ⚕ Hermes ─╮", *(f"    {line}" for line in step.text.splitlines()), "╰────────────╯")
        else:
            self._use_tool(step)

    def _has_saved(self) -> bool:
        latest = self.records.profile / "memory" / "handoffs" / "latest.md"
        return latest.exists() and latest.stat().st_mtime >= self.begun_at

    def _use_tool(self, step: Step) -> None:
        """A call that really does what its rows say."""
        self.records.api_call(self.tokens or 0, 40)
        if step.act == "write":
            path = Path(step.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text)
            written = {"bytes_written": len(step.text.encode()), "resolved_path": step.path}
            self.records.tool("write_file", {"path": step.path, "content": step.text}, written)
        elif step.act == "read":
            path = Path(step.path)
            content = path.read_text() if path.is_file() else ""
            self.records.tool("read_file", {"path": step.path}, {"content": content})
        else:
            ledger = Path.cwd() / "ledger.txt"
            with ledger.open("a") as lines:
                lines.write(f"{self.records.session_id} call {self.records.calls}\n")
            result: dict[str, object] = {"output": "", "exit_code": 0, "error": None}
            self.records.tool("terminal", {"command": "echo … >> ledger.txt"}, result)

    def _show(self, state: str) -> None:
        self.state = state
        background = self.child is not None and self.manners.child == "background"
        self.face.draw(state, self.tokens, background=background)

    def _read_keys(self) -> None:
        raw = _read_all(sys.stdin.fileno())
        if not raw:  # the terminal is gone
            self.listening = False
            return
        for kind, text in self.face.keys(raw):
            self._press(kind, text)
        self._show(self.state)

    def _press(self, kind: str, text: str) -> None:
        if kind == "paste":
            self.pastes += 1
            if self.pastes > self.manners.lost_pastes:
                self.face.insert(text)
        elif self.state == "dialog" and (text in "\r\n" or text[0] in "1234"):
            self._close_dialog(allowed=text[0] != "4")
        elif kind == "text":
            self.face.draft += text
        elif text in "\r\n":
            self.enters += 1
            if self.enters > self.manners.lost_enters:
                self._submit()
        elif text == "\x15":  # C-u clears the current line only
            self.face.draft = self.face.draft.rpartition("\n")[0]
        elif text in "\x03\x04" and not self.face.draft:  # C-c and C-d on an empty line end the agent
            self.end_at = time.monotonic()

    def _submit(self) -> None:
        text = self.face.take()
        if text and self.state == "ready":
            self._begin_turn(text)
        elif text:
            self.queue.append(text)

    def _close_dialog(self, *, allowed: bool) -> None:
        said = "was approved by the user" if allowed else "was denied by the user"
        result: dict[str, object] = {"output": "", "exit_code": 0, "approval": f"Command required approval and {said}."}
        self.records.tool("terminal", {"command": "rm -rf build"}, result)
        self._show("busy")
        self._plan()

    def _have_child(self) -> None:
        kind = self.manners.child
        if kind == "none":
            return
        self.child = subprocess.Popen(_SLEEPER, stdin=subprocess.DEVNULL, start_new_session=kind != "tool")
        (self.records.profile / "child.pid").write_text(str(self.child.pid))
        if kind == "background":
            self.records.record_background(self.child, " ".join(_SLEEPER))

    def _told_to_end(self) -> None:
        if not self.manners.ignore_signals and self.end_at is None:
            self.end_at = time.monotonic() + self.manners.exit_seconds

    def _end(self) -> None:
        if self.child is not None and self.manners.child == "tool":
            self.child.kill()
            self.child.wait()
        self.records.close()
        self.face.close()


def _read_all(file: int) -> bytes:
    """What was typed, with a paste that is still arriving waited for to its end; empty when the terminal is gone."""
    raw = b""
    while not raw or raw.count(b"\x1b[200~") > raw.count(b"\x1b[201~"):
        try:
            piece = os.read(file, 1 << 16)
        except OSError:
            return b""
        if not piece:
            return b""
        raw += piece
    return raw


def main() -> int:
    """Start as the agent of the profile that HERMES_HOME names; the result is the exit status."""
    profile = Path(os.environ["HERMES_HOME"])
    with (profile / "starts").open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    manners = read_manners(profile / "script.json")
    if len((profile / "starts").read_text().splitlines()) <= manners.failed_starts:
        print("Traceback (most recent call last):\nImportError: no module named 'hermes_cli'")
        return 1
    records = Records(profile, cwd=Path.cwd())
    if not records.take_lease(manners.sessions):
        print(f"Hermes is at the active session limit ({manners.sessions}/{manners.sessions})")
        return 0
    Agent(profile, records).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
