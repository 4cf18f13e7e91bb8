"""Real tmux on a private socket: the right pane, whole text, nothing typed where it would do harm."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from lifecycle.errors import TerminalError
from lifecycle.launch import LaunchSpec
from lifecycle.processes import Process, is_alive, tree_of
from lifecycle.screen import Screen
from lifecycle.terminal import Terminal
from lifecycle.tmux import TargetGone, Tmux
from lifecycle.waiting import SystemClock, wait_until

CLOCK = SystemClock()
SOON = timedelta(seconds=60)
READER = Path(__file__).with_name("reader.py")
SLEEP = (sys.executable, "-c", "import time; time.sleep(300)")


@pytest.fixture
def socket() -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix="afresh-"))  # a socket's path has to be short
    path = str(folder / "tmux")
    yield path
    subprocess.run(["tmux", "-S", path, "kill-server"], check=False, capture_output=True)
    shutil.rmtree(folder)


@pytest.fixture
def terminal(socket: str) -> Terminal:
    return Terminal(socket)


def launch(cwd: Path, *command: str, **environment: str) -> LaunchSpec:
    return LaunchSpec(command=command or SLEEP, cwd=cwd, environment=environment, source="configured")


def run(socket: str, *args: str) -> str:
    done = subprocess.run(["tmux", "-S", socket, *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def look(terminal: Terminal, pane_id: str) -> Screen:
    screen = terminal.capture(pane_id)
    assert screen is not None
    return screen


def when(terminal: Terminal, pane_id: str, claim: Callable[[Screen], bool]) -> Screen:
    def probe() -> Screen | None:
        screen = terminal.capture(pane_id)
        return screen if screen and claim(screen) else None

    return wait_until(probe, SOON, CLOCK)


def end(screen: Screen) -> None:
    os.kill(screen.pane_pid, signal.SIGTERM)


def sleeps(process: Process) -> bool:
    return process.command == SLEEP


def nothing(_: Process) -> bool:
    return False


def test_a_session_is_found_by_its_whole_name(terminal: Terminal, tmp_path: Path) -> None:  # W-12
    terminal.spawn(launch(tmp_path), session="swarm-swarm10", pane_id=None)
    assert terminal.screen_of("swarm-swarm1", is_agent=sleeps) is None
    small = terminal.spawn(launch(tmp_path), session="swarm-swarm1", pane_id=None)
    found = terminal.screen_of("swarm-swarm1", is_agent=sleeps)
    assert found is not None
    assert found[0].pane_id == small.pane_id


def test_the_agents_pane_is_found_among_windows_of_a_person(terminal: Terminal, socket: str, tmp_path: Path) -> None:
    terminal.spawn(launch(tmp_path, "cat"), session="w", pane_id=None)
    run(socket, "split-window", "-t", "=w:", "cat")
    run(socket, "new-window", "-t", "=w:", "sh", "-c", f"{sys.executable} -c '{SLEEP[2]}'; true")

    def probe() -> tuple[Screen, Process] | None:
        found = terminal.screen_of("w", is_agent=sleeps)
        return (found[0], found[1]) if found and found[1] else None

    screen, agent = wait_until(probe, SOON, CLOCK)
    assert agent.parent == screen.pane_pid
    assert agent.command == SLEEP


def test_without_an_agent_the_first_pane_is_shown_and_no_process(terminal: Terminal, tmp_path: Path) -> None:
    first = terminal.spawn(launch(tmp_path, "cat"), session="w", pane_id=None)
    terminal.spawn(launch(tmp_path, "cat"), session="w", pane_id=None)
    found = terminal.screen_of("w", is_agent=nothing)
    assert found is not None
    assert (found[0].pane_id, found[1]) == (first.pane_id, None)


def test_no_server_is_no_session(terminal: Terminal) -> None:
    assert terminal.screen_of("w", is_agent=sleeps) is None
    assert terminal.capture("%0") is None
    assert terminal.panes() == ()


def test_a_missing_tmux_is_an_error_and_not_an_absent_session(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TerminalError, match="no tmux on PATH"):
        terminal.screen_of("w", is_agent=sleeps)


def test_a_deleted_socket_of_a_living_server_is_an_error(
    terminal: Terminal, socket: str, tmp_path: Path
) -> None:  # tmux #2327, T8
    screen = terminal.spawn(launch(tmp_path), session="w", pane_id=None)
    server = psutil.Process(screen.pane_pid).parent()
    assert server is not None
    Path(socket).unlink()
    with pytest.raises(TerminalError, match="SIGUSR1"):
        terminal.spawn(launch(tmp_path), session="w", pane_id=None)
    server.send_signal(signal.SIGUSR1)
    wait_until(Path(socket).exists, SOON, CLOCK)
    assert look(terminal, screen.pane_id).pane_pid == screen.pane_pid


def test_a_server_that_hangs_is_an_error_in_time(terminal: Terminal, tmp_path: Path) -> None:
    screen = terminal.spawn(launch(tmp_path), session="w", pane_id=None)
    server = psutil.Process(screen.pane_pid).parent()
    assert server is not None
    server.suspend()
    try:
        with pytest.raises(TerminalError, match="did not answer"):
            terminal.capture(screen.pane_id)
    finally:
        server.resume()


def test_a_pane_that_is_gone_shows_nothing(terminal: Terminal, socket: str, tmp_path: Path) -> None:
    terminal.spawn(launch(tmp_path), session="other", pane_id=None)
    screen = terminal.spawn(launch(tmp_path), session="w", pane_id=None)
    run(socket, "kill-pane", "-t", screen.pane_id)
    assert terminal.capture(screen.pane_id) is None
    with pytest.raises(TargetGone):
        terminal.paste(screen.pane_id, "text", buffer="b")
    assert run(socket, "list-buffers") == ""


def test_a_screen_tells_text_cursor_title_and_size(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")  # a service has no better one, and a client then prints ❯ as _
    code = "print('\\x1b]2;✓ title | x\\x07\\x1b[2J\\x1b[3;1Hprompt ❯ ' + 'w' * 300, end='', flush=True); input()"
    started = terminal.spawn(launch(tmp_path, sys.executable, "-X", "utf8", "-c", code), session="w", pane_id=None)
    screen = when(terminal, started.pane_id, lambda screen: "www" in screen.text)
    assert (screen.width, screen.height, screen.alternate_on, screen.dead) == (200, 50, False, False)
    assert screen.title == "✓ title | x"
    assert screen.text.split("\n")[2] == "prompt ❯ " + "w" * 300
    assert (screen.cursor_x, screen.cursor_y) == (109, 3)
    assert screen.last_typed_at is None


def test_a_large_text_arrives_as_one_message(terminal: Terminal, tmp_path: Path) -> None:  # W-19, T2, T4, T18
    text = "\n".join(f"line {i} 恢复 of a long handoff; $HOME `x` #{{pane_id}}" for i in range(2000))
    assert len(text.encode()) > 95_000
    record = tmp_path / "record"
    pane = terminal.spawn(launch(tmp_path, sys.executable, str(READER), str(record)), session="w", pane_id=None).pane_id
    when(terminal, pane, lambda screen: screen.text.startswith(">"))
    assert terminal.paste(pane, text, buffer="afresh-w")
    when(terminal, pane, lambda screen: "line 0" in screen.text)
    assert terminal.press_enter(pane)
    wait_until(record.exists, SOON, CLOCK)
    wait_until(lambda: record.read_text().endswith("\n"), SOON, CLOCK)
    assert [json.loads(line) for line in record.read_text().splitlines()] == [text]


def test_nothing_is_typed_into_copy_mode(terminal: Terminal, socket: str, tmp_path: Path) -> None:  # T5
    record = tmp_path / "record"
    pane = terminal.spawn(launch(tmp_path, sys.executable, str(READER), str(record)), session="w", pane_id=None).pane_id
    when(terminal, pane, lambda screen: screen.text.startswith(">"))
    run(socket, "copy-mode", "-t", pane)
    assert look(terminal, pane).in_mode
    assert not terminal.paste(pane, "lost", buffer="b")
    assert not terminal.press_enter(pane)
    assert run(socket, "list-buffers") == ""
    run(socket, "send-keys", "-t", pane, "-X", "cancel")
    assert terminal.paste(pane, "kept", buffer="b")
    assert terminal.press_enter(pane)
    wait_until(lambda: record.exists() and record.read_text() == '"kept"\n', SOON, CLOCK)


def test_a_dead_pane_is_shown_and_nothing_is_pasted_into_it(terminal: Terminal, tmp_path: Path) -> None:  # W-20
    terminal.spawn(launch(tmp_path), session="bystander", pane_id=None)
    pane = terminal.spawn(launch(tmp_path), session="w", pane_id=None)
    end(pane)
    assert when(terminal, pane.pane_id, lambda screen: screen.dead).pane_id == pane.pane_id
    assert not terminal.paste(pane.pane_id, "text", buffer="b")  # unguarded, this crashes the server of tmux 3.3a
    assert not terminal.press_enter(pane.pane_id)
    assert terminal.screen_of("bystander", is_agent=sleeps) is not None


def test_a_program_that_dies_early_leaves_its_words(terminal: Terminal, tmp_path: Path) -> None:  # T14
    # tmux 3.3a loses the words of one in thirty that end with their first line, and the status of one in twenty.
    screen = terminal.spawn(
        launch(tmp_path, "sh", "-c", "echo no such model; sleep 0.5; exit 3"), session="w", pane_id=None
    )
    dead = when(terminal, screen.pane_id, lambda screen: screen.dead)
    assert dead.exit_status in (3, None)
    assert "no such model" in dead.text


def test_a_kept_pane_is_started_again_beside_other_windows(terminal: Terminal, socket: str, tmp_path: Path) -> None:
    folder = tmp_path / "a #H b's"
    folder.mkdir()
    old = terminal.spawn(launch(tmp_path), session="w", pane_id=None)
    window = run(socket, "new-window", "-d", "-P", "-F", "#{window_id}", "-t", "=w:", "cat")
    terminal.keep_pane(old.pane_id)
    end(old)
    when(terminal, old.pane_id, lambda screen: screen.dead)
    new = terminal.spawn(launch(folder, GREETING="it's #{pane_id} & $HOME"), session="w", pane_id=old.pane_id)
    assert (new.pane_id, new.window_id) == (old.pane_id, old.window_id)
    assert window in run(socket, "list-windows", "-t", "=w:", "-F", "#{window_id}").split()
    agent = wait_until(lambda: next(filter(sleeps, tree_of(new.pane_pid)), None), SOON, CLOCK)
    assert agent.pid == new.pane_pid
    assert agent.cwd == str(folder)
    assert agent.environment["GREETING"] == "it's #{pane_id} & $HOME"


def test_a_pane_that_still_runs_something_is_not_taken(terminal: Terminal, tmp_path: Path) -> None:
    old = terminal.spawn(launch(tmp_path), session="w", pane_id=None)
    identity = tree_of(old.pane_pid)[0].identity
    with pytest.raises(TerminalError, match="still active"):
        terminal.spawn(launch(tmp_path), session="w", pane_id=old.pane_id)
    assert is_alive(identity)


def test_the_idle_shell_of_a_launcher_gives_its_pane_back(terminal: Terminal, socket: str, tmp_path: Path) -> None:
    run(socket, "-f", "/dev/null", "new-session", "-d", "-s", "w", "sh")
    found = terminal.screen_of("w", is_agent=sleeps)
    assert found is not None
    assert found[1] is None
    new = terminal.spawn(launch(tmp_path), session="w", pane_id=found[0].pane_id)
    assert new.pane_id == found[0].pane_id
    wait_until(lambda: terminal.screen_of("w", is_agent=sleeps), SOON, CLOCK)
    assert look(terminal, new.pane_id).pane_pid != found[0].pane_pid


def test_a_lost_pane_is_replaced_by_a_window_of_the_same_session(
    terminal: Terminal, socket: str, tmp_path: Path
) -> None:
    first = terminal.spawn(launch(tmp_path), session="w", pane_id=None)
    new = terminal.spawn(launch(tmp_path, "sh", "-c", "exit 5"), session="w", pane_id="%99")
    assert new.session_id == first.session_id
    assert run(socket, "display-message", "-p", "-t", "=w:", "#{window_id}") == first.window_id
    assert when(terminal, new.pane_id, lambda screen: screen.dead).pane_id == new.pane_id


def test_a_pane_of_another_session_is_never_taken(terminal: Terminal, tmp_path: Path) -> None:
    other = terminal.spawn(launch(tmp_path, "sh", "-c", "exit"), session="swarm-swarm10", pane_id=None)
    when(terminal, other.pane_id, lambda screen: screen.dead)
    new = terminal.spawn(launch(tmp_path), session="swarm-swarm1", pane_id=other.pane_id)
    assert new.pane_id != other.pane_id
    assert look(terminal, other.pane_id).dead


def test_a_name_that_tmux_would_change_is_refused(terminal: Terminal, tmp_path: Path) -> None:  # tmux #5173, T6
    with pytest.raises(TerminalError, match="would rename"):
        terminal.spawn(launch(tmp_path), session="api.2", pane_id=None)
    assert terminal.panes() == ()


def test_a_missing_folder_is_refused_before_anything_starts(terminal: Terminal, tmp_path: Path) -> None:  # W-26
    with pytest.raises(TerminalError, match="no such folder"):
        terminal.spawn(launch(tmp_path / "gone"), session="w", pane_id=None)
    assert terminal.panes() == ()


def test_a_server_that_we_start_knows_nothing_of_us(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # job-hunter-team #214
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:4200/api")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-one")
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(lock, True)
    try:
        screen = terminal.spawn(launch(tmp_path, *SLEEP, HERMES_HOME="/profile"), session="w", pane_id=None)
        server = psutil.Process(screen.pane_pid).parent()
        assert server is not None
        assert os.getsid(server.pid) == server.pid != os.getsid(0)
        assert os.getpgid(server.pid) != os.getpgid(0)
        assert str(tmp_path / "lock") not in {str(link.readlink()) for link in Path(f"/proc/{server.pid}/fd").iterdir()}
        # Between its fork and its exec a program has no environment yet.
        agent = wait_until(lambda: next(filter(sleeps, tree_of(screen.pane_pid)), None), SOON, CLOCK)
        environment = agent.environment
        assert not {"PREFECT_API_URL", "OPENAI_API_KEY"} & (environment.keys() | server.environ().keys())
        assert environment["HERMES_HOME"] == "/profile"
    finally:
        os.close(lock)


def test_an_old_servers_prefect_variables_do_not_reach_the_worker(
    terminal: Terminal, socket: str, tmp_path: Path
) -> None:
    environ = {**os.environ, "PREFECT_API_KEY": "pnu_x", "AFRESH_HOME": "/x", "KEPT": "yes"}
    subprocess.run(["tmux", "-S", socket, "new-session", "-d", "-s", "mine", "cat"], check=True, env=environ)
    screen = terminal.spawn(launch(tmp_path), session="w", pane_id=None)
    agent = wait_until(lambda: next(filter(sleeps, tree_of(screen.pane_pid)), None), SOON, CLOCK)
    assert agent.pid == screen.pane_pid
    assert agent.environment["KEPT"] == "yes"
    assert not {"PREFECT_API_KEY", "AFRESH_HOME"} & agent.environment.keys()


def test_values_of_the_environment_stand_in_no_argument(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    seen = tmp_path / "seen"
    real = shutil.which("tmux")
    shim = folder / "tmux"
    shim.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {seen}\nexec {real} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    screen = terminal.spawn(launch(tmp_path, *SLEEP, API_KEY="sk-secret"), session="w", pane_id=None)
    terminal.paste(screen.pane_id, "typed-secret", buffer="b")
    assert tree_of(screen.pane_pid)[0].environment["API_KEY"] == "sk-secret"
    assert "load-buffer" in seen.read_text()
    assert "secret" not in seen.read_text()


def test_a_client_that_types_is_noticed(terminal: Terminal, socket: str, tmp_path: Path) -> None:  # T12
    screen = terminal.spawn(launch(tmp_path, "cat"), session="w", pane_id=None)
    before = datetime.now(UTC) - timedelta(seconds=2)
    pid, master = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execvp("tmux", ["tmux", "-S", socket, "attach", "-t", "=w"])  # noqa: S606 - a client needs a terminal
    try:
        typed = when(terminal, screen.pane_id, lambda screen: screen.last_typed_at is not None)
        assert typed.last_typed_at is not None
        assert before <= typed.last_typed_at <= datetime.now(UTC)
    finally:
        run(socket, "detach-client", "-s", "=w")
        os.close(master)
        os.waitpid(pid, 0)
    assert look(terminal, screen.pane_id).last_typed_at is None


class Counted(Tmux):
    """tmux, and how often it was called."""

    calls = 0

    def _run(self, *args: Any, **kwargs: Any) -> list[str]:
        Counted.calls += 1
        return super()._run(*args, **kwargs)


def test_an_agent_that_was_found_is_seen_again_in_one_call(
    socket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lifecycle.terminal.Tmux", Counted)
    watched = Terminal(socket)
    new = watched.spawn(launch(tmp_path), session="w", pane_id=None)
    wait_until(lambda: (found := watched.screen_of("w", is_agent=sleeps)) and found[1], SOON, CLOCK)
    before = Counted.calls
    found = watched.screen_of("w", is_agent=sleeps)
    assert Counted.calls == before + 1
    assert found is not None
    assert found[1] is not None
    assert (found[0].pane_id, found[1].pid, found[0].text) == (
        new.pane_id,
        new.pane_pid,
        look(watched, new.pane_id).text,
    )


def test_an_agent_that_was_found_is_lost_when_its_session_has_another_name(
    terminal: Terminal, socket: str, tmp_path: Path
) -> None:
    terminal.spawn(launch(tmp_path), session="w", pane_id=None)
    wait_until(lambda: (found := terminal.screen_of("w", is_agent=sleeps)) and found[1], SOON, CLOCK)
    run(socket, "rename-session", "-t", "=w", "w1")
    assert terminal.screen_of("w", is_agent=sleeps) is None


def test_an_agent_that_was_found_is_followed_to_another_pane(terminal: Terminal, tmp_path: Path) -> None:
    first = terminal.spawn(launch(tmp_path), session="w", pane_id=None)
    wait_until(lambda: (found := terminal.screen_of("w", is_agent=sleeps)) and found[1], SOON, CLOCK)
    second = terminal.spawn(launch(tmp_path), session="w", pane_id=None)
    end(first)
    when(terminal, first.pane_id, lambda screen: screen.dead)
    found = terminal.screen_of("w", is_agent=sleeps)
    assert found is not None
    assert found[1] is not None
    assert (found[0].pane_id, found[1].pid) == (second.pane_id, second.pane_pid)


def test_an_agent_that_was_found_and_became_another_program_is_none(terminal: Terminal, tmp_path: Path) -> None:
    turn = tmp_path / "turn"
    becomes = f"import os, time\nwhile not os.path.exists({str(turn)!r}): time.sleep(0.01)\nos.execvp('cat', ['cat'])"

    def is_agent(process: Process) -> bool:
        return process.command[1:] == ("-c", becomes)

    terminal.spawn(launch(tmp_path, sys.executable, "-c", becomes), session="w", pane_id=None)
    agent = wait_until(lambda: (found := terminal.screen_of("w", is_agent=is_agent)) and found[1], SOON, CLOCK)
    turn.touch()
    wait_until(lambda: (now := tree_of(agent.pid)) and now[0].command == ("cat",), SOON, CLOCK)
    found = terminal.screen_of("w", is_agent=is_agent)
    assert found is not None
    assert found[1] is None
