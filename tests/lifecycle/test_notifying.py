from __future__ import annotations

import json
import logging
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

import lifecycle.sinks
from lifecycle.host import Host
from lifecycle.notifying import WORTH_TELLING, notify, notify_host, tell_again
from lifecycle.settings import Settings
from lifecycle.waiting import SystemClock, wait_until
from lifecycle.worker import Worker

TOKEN = "ghp_" + "a1B2" * 9


class Room:
    """A host with folders of its own, and a worker on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.worker = Worker(worker_id="builder", profile=root / "profile", session="swarm-builder")

    @contextmanager
    def host(self, **sinks: Any) -> Iterator[Host]:
        given = {"home": self.root / "afresh", "hermes_root": self.root, "memory_root": self.root, "notify": sinks}
        with Host.opened(Settings.model_validate(given)) as host:
            yield host


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle.sinks, "SINK_TIMEOUT", timedelta(seconds=60))


def script(*lines: str) -> tuple[str, str, str]:
    return sys.executable, "-c", "\n".join(["import os, sys, subprocess, time", *lines])


def failures(host: Host) -> list[dict[str, Any]]:
    return [event.detail for event in host.ledger.events() if event.kind == "notice.failed"]


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Webhook(ThreadingHTTPServer):
    """A real server on loopback that keeps what it was sent."""

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.status = status
        self.received: list[Received] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Answers(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.received.append(Received(self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        pass


@contextmanager
def webhook(status: int = 204) -> Iterator[Webhook]:
    with Webhook(status) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(60)


@contextmanager
def speaking(answer: bytes | None) -> Iterator[str]:
    """The address of a server that answers with these bytes, or takes the request and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                if answer is None:
                    over.wait(600)
                else:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        finally:
            over.set()
            thread.join(60)


def test_the_command_gets_one_json_document_on_its_standard_input(room: Room) -> None:
    told = room.root / "told.jsonl"
    with room.host(command=("tee", "-a", str(told))) as host:
        assert notify(host, room.worker, "k", "blocked: not_ready", "no input line → café", remedy="Answer it.")
        assert failures(host) == []
        document = json.loads(told.read_text())
        assert document.pop("at") == host.ledger.events()[0].at.isoformat()
    assert document == {
        "worker_id": "builder",
        "key": "k",
        "subject": "builder: blocked: not_ready",
        "body": "no input line → café\nAnswer it.",
    }


def test_the_webhook_gets_the_same_document(room: Room) -> None:
    with webhook() as server, room.host(webhook=server.address) as host:
        assert notify(host, room.worker, "k", "renewed", "generation 2 answered")
        assert failures(host) == []
    [received] = server.received
    assert received.path == "/hook"
    assert received.headers["Content-Type"] == "application/json"
    assert "urllib" not in received.headers["User-Agent"].lower(), "some services turn it away"
    assert json.loads(received.body)["body"] == "generation 2 answered"


def test_a_key_is_told_once_for_each_worker(room: Room) -> None:
    other = room.worker.model_copy(update={"worker_id": "swarm1"})
    with webhook() as server, room.host(webhook=server.address) as host:
        sent = [notify(host, worker, "absent:s1", "s", "b") for worker in (room.worker, room.worker, other)]
        assert sent == [True, False, True]
        assert notify(host, room.worker, "absent:s2", "s", "b")
    assert [json.loads(received.body)["worker_id"] for received in server.received] == ["builder", "swarm1", "builder"]


def test_a_notice_about_the_host_names_no_worker(room: Room) -> None:
    with webhook() as server, room.host(webhook=server.address) as host:
        assert [notify_host(host, "k", "the disk is full", "b") for _ in range(2)] == [True, False]
    assert [json.loads(received.body)["subject"] for received in server.received] == ["the disk is full"]


def test_without_sinks_a_notice_is_an_event_and_a_line_of_the_log(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "lifecycle"), room.host() as host:
        assert notify(host, room.worker, "k", "blocked: x", "why")
        [event] = host.ledger.events()
    assert (event.kind, event.worker_id) == ("notice", "builder")
    assert event.detail == {"key": "k", "subject": "blocked: x", "body": "why"}
    assert "builder" in caplog.text


def test_a_secret_is_told_to_nobody(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    told = room.root / "told.json"
    with webhook() as server, room.host(webhook=server.address, command=("tee", str(told))) as host:
        notify(host, room.worker, "k", "blocked", f"it said GITHUB_TOKEN={TOKEN}", remedy=f"curl -H 'x: {TOKEN}'")
        everything = told.read_text() + server.received[0].body.decode() + str(host.ledger.events()) + caplog.text
    assert "GITHUB_TOKEN=[redacted" in everything
    assert TOKEN not in everything


def test_a_text_that_cannot_be_encoded_is_told_all_the_same(room: Room) -> None:
    with webhook() as server, room.host(webhook=server.address) as host:
        assert notify(host, room.worker, "k", "blocked", "no such file: caf\udce9.md")
        assert failures(host) == []
        assert host.ledger.events()
    assert len(server.received) == 1


FAILING_COMMANDS = {
    "it fails": (script("print('no route', file=sys.stderr)", "sys.exit(3)"), "ended with status 3: no route"),
    "it fails and says nothing": (script("sys.exit(1)"), "ended with status 1"),
    "it is killed": (script("os.kill(os.getpid(), 9)"), "ended with status -9"),
    "there is none": (("/nowhere/at/all",), "cannot be run: No such file or directory"),
    "it is no program": (("/",), "cannot be run: Permission denied"),
    "it says a secret": (
        script(f"print('token={TOKEN}', file=sys.stderr)", "sys.exit(1)"),
        "ended with status 1: token=[redacted:github-token]",
    ),
}


@pytest.mark.parametrize(("command", "why"), FAILING_COMMANDS.values(), ids=FAILING_COMMANDS)
def test_a_command_that_fails_is_recorded_and_hurts_nobody(room: Room, command: tuple[str, ...], why: str) -> None:
    with room.host(command=command) as host:
        assert notify(host, room.worker, "k", "s", "b")
        assert failures(host) == [{"sink": "command", "failure": why}]


def test_the_arguments_of_a_command_are_told_to_nobody(room: Room) -> None:
    with room.host(command=(*script("sys.exit(1)"), "hunter2")) as host:
        notify(host, room.worker, "k", "s", "b")
        assert "hunter2" not in str(host.ledger.events())


def test_a_command_that_does_not_read_is_no_failure(room: Room) -> None:
    with room.host(command=("true",)) as host:
        notify(host, room.worker, "k", "s", "b" * 1_000_000)
        assert failures(host) == []


def test_a_command_that_leaves_something_running_is_not_waited_for(room: Room) -> None:
    note = f"open({str(room.root / 'pid')!r}, 'w').write(str(child.pid))"
    leaves = script("child = subprocess.Popen(['sleep', '600'])", note)
    with room.host(command=leaves) as host:
        notify(host, room.worker, "k", "s", "b")
        assert failures(host) == []
    left = psutil.Process(int((room.root / "pid").read_text()))
    assert left.cmdline() == ["sleep", "600"], "it runs still"
    left.kill()


def test_a_command_that_hangs_is_ended_with_what_it_started(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle.sinks, "SINK_TIMEOUT", timedelta(seconds=2))
    pids = room.root / "pids"
    hangs = ("/bin/sh", "-c", f"sleep 600 & echo $$ $! > {pids}; wait")
    with room.host(command=hangs) as host:
        assert notify(host, room.worker, "k", "s", "b" * 1_000_000)
        assert failures(host) == [{"sink": "command", "failure": "was not done after 2 s and was ended"}]
    for pid in map(int, pids.read_text().split()):
        wait_until(partial(_has_ended, pid), timedelta(seconds=60), SystemClock())


def _has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("status", [301, 307, 404, 500])
def test_a_webhook_that_refuses_is_recorded_and_hurts_nobody(room: Room, status: int) -> None:
    with webhook(status) as server, room.host(webhook=server.address) as host:
        assert notify(host, room.worker, "k", "s", "b")
        [failure] = failures(host)
    assert failure["sink"] == "webhook"
    assert str(status) in failure["failure"]


NONSENSE = [b"", b"garbage\r\n\r\n", b"HTTP/1.1 what\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200 + b"\r\n"]


@pytest.mark.parametrize("answer", NONSENSE)
def test_a_webhook_that_speaks_nonsense_is_recorded_and_hurts_nobody(room: Room, answer: bytes) -> None:
    with speaking(answer) as address, room.host(webhook=address) as host:
        assert notify(host, room.worker, "k", "s", "b")
        assert [failure["sink"] for failure in failures(host)] == ["webhook"]


def test_a_webhook_that_hangs_is_left_when_its_time_is_up(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle.sinks, "SINK_TIMEOUT", timedelta(seconds=0.5))
    with speaking(None) as address, room.host(webhook=address) as host:
        assert notify(host, room.worker, "k", "s", "b")
        assert [failure["sink"] for failure in failures(host)] == ["webhook"]


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/hunter2",
        "file:///etc/passwd#hunter2",
        "hunter2",
        "http://127.0.0.1:hunter2/",
        "http://127.0.0.1/hunter2 with spaces",
        "http://[hunter2/",
        "https://",
    ],
)
def test_an_address_that_cannot_be_reached_is_recorded_and_not_told(room: Room, address: str) -> None:
    with room.host(webhook=address) as host:
        assert notify(host, room.worker, "k", "s", "b")
        assert [failure["sink"] for failure in failures(host)] == ["webhook"]
        assert "hunter2" not in str(host.ledger.events())


def test_one_failing_sink_does_not_keep_the_other_from_being_told(room: Room) -> None:
    with webhook() as server, room.host(webhook=server.address, command=("false",)) as host:
        notify(host, room.worker, "k", "s", "b")
        assert [failure["sink"] for failure in failures(host)] == ["command"]
    assert len(server.received) == 1


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # one of Apprise's services
def test_an_apprise_address_is_told_with_the_link(room: Room) -> None:
    with webhook(200) as server, room.host(apprise=(f"json://127.0.0.1:{server.server_port}/hook",)) as host:
        host.link = "http://127.0.0.1:4200/runs/flow-run/1"
        assert notify(host, room.worker, "k", "blocked: not_ready", "no input line", remedy="Answer it.")
        assert failures(host) == []
    [received] = server.received
    told = json.loads(received.body)
    assert told["title"] == "builder: blocked: not_ready"
    assert told["message"] == "no input line\nAnswer it.\nhttp://127.0.0.1:4200/runs/flow-run/1"


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # one of Apprise's services
@pytest.mark.parametrize("address", ["json://127.0.0.1:1/hunter2", "nothing://hunter2", "hunter2", "slack://hunter2"])
def test_an_apprise_address_that_fails_is_recorded_and_not_told(
    room: Room, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    with webhook() as server, room.host(webhook=server.address, apprise=(address,)) as host:
        assert notify(host, room.worker, "k", "s", "b")
        assert [failure["sink"] for failure in failures(host)] == ["apprise 1"]
        assert "hunter2" not in str(host.ledger.events())
    assert "hunter2" not in caplog.text
    assert len(server.received) == 1


def test_what_no_sink_took_is_told_when_one_is_there_again_and_once(room: Room, tmp_path: Path) -> None:
    with room.host(command=["/nowhere/call"]) as host:
        assert notify(host, room.worker, "blocked:1", "blocked", "the first")
        assert notify(host, room.worker, "blocked:2", "blocked", "the second")
        tell_again(host)
        assert len(failures(host)) == 3, "while nothing is taken, only the oldest is tried again"

    out = tmp_path / "told"
    with room.host(command=script(f"open({str(out)!r}, 'a').write(sys.stdin.read() + '\\n')")) as host:
        tell_again(host)
        tell_again(host)

    told = [json.loads(line)["body"] for line in out.read_text().splitlines()]
    assert told == ["the first", "the second"]


def test_what_one_of_two_sinks_took_is_not_told_again(room: Room, tmp_path: Path) -> None:
    out = tmp_path / "told"
    with room.host(
        webhook="http://127.0.0.1:9/", command=script(f"open({str(out)!r}, 'a').write(sys.stdin.read() + '\\n')")
    ) as host:
        notify(host, room.worker, "blocked:1", "blocked", "the first")
        tell_again(host)

    assert len(out.read_text().splitlines()) == 1


def test_what_is_a_day_old_is_told_to_nobody(room: Room) -> None:
    with room.host(command=["/nowhere/call"]) as host:
        notify(host, room.worker, "blocked:1", "blocked", "the first")
        host.clock = _Later(WORTH_TELLING + timedelta(minutes=1))
        tell_again(host)
        assert host.ledger.untold() == []


class _Later(SystemClock):
    def __init__(self, ahead: timedelta) -> None:
        self.ahead = ahead

    def now(self) -> datetime:
        return super().now() + self.ahead
