"""The Prefect server: the one that is named, the one that `afresh serve` runs, or an embedded one for one command."""

from __future__ import annotations

import base64
import os
import secrets
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path

from deployments.address import USER, access_environment, check_bind, local_url
from deployments.output import tell
from deployments.prefect_environment import client_environment, server_environment
from lifecycle.errors import ConfigurationError, LifecycleError, Misuse, RenewalInProgress
from lifecycle.lock import held
from lifecycle.processes import ProcessId, ask_to_exit, end, identity_of, is_alive, tree_of
from lifecycle.settings import ServerSettings, Settings
from lifecycle.value import Value
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until

STARTED_WITHIN = timedelta(seconds=120)
ANSWERS_WITHIN = timedelta(seconds=10)
SENT_WITHIN = timedelta(seconds=10)
STOPPED_WITHIN = timedelta(seconds=15)


class ServerError(LifecycleError):
    """The Prefect server did not start, or is not the one that it should be."""

    reason = "server"


class Running(Value):
    """A server that answers. *password* is for the user `afresh`; *owner* is the process that started it."""

    url: str
    process: ProcessId | None = None
    owner: ProcessId | None = None
    password: str | None = None

    @property
    def is_served(self) -> bool:
        """Whether a living `afresh serve` owns it, not `afresh server`, which is the server itself."""
        return self.owner is not None and self.owner != self.process and is_alive(self.owner)

    @property
    def api(self) -> str:
        return f"{self.url}/api"

    def is_healthy(self) -> bool:
        return self.ask("/health") is not None

    def ask(self, path: str) -> str | None:
        """What its API says there; None where it does not answer, or not with this password."""
        request = urllib.request.Request(f"{self.api}{path}")  # noqa: S310 - an address of the configuration
        if self.password:
            token = base64.b64encode(f"{USER}:{self.password}".encode()).decode()
            request.add_header("Authorization", f"Basic {token}")
        try:
            with urllib.request.urlopen(request, timeout=2) as answer:  # noqa: S310
                return answer.read().decode("utf-8", "replace") if answer.status == HTTPStatus.OK else None
        except (OSError, urllib.error.URLError):
            return None


def check_access(url: str, settings: Settings) -> None:
    """Ask the server something that its password protects, with that of the environment. One that is silent passes.

    Raises:
        ConfigurationError: it refuses.
    """
    request = urllib.request.Request(f"{url}/api/admin/version")  # noqa: S310 - the operator's own address
    login = os.environ.get("PREFECT_API_AUTH_STRING", "")
    if login:
        request.add_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=ANSWERS_WITHIN.total_seconds()):  # noqa: S310
            return
    except urllib.error.HTTPError as error:
        if error.code not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return
        given = "refuses the password that is given to it" if login else "wants a password, and none is given"
        msg = (
            f"the Prefect server at {url} {given}: name its file as server.password_file in "
            f"{settings.path or settings.home / 'afresh.toml'}, or set PREFECT_API_AUTH_STRING"
        )
        raise ConfigurationError(msg) from error
    except OSError:
        return


@contextmanager
def answering(url: str) -> Iterator[None]:
    """Ask with Prefect's client inside.

    Raises:
        ServerError: the server did not answer, or refused.
    """
    import httpx  # noqa: PLC0415 - comes with Prefect

    try:
        yield
    except httpx.HTTPStatusError as error:
        msg = f"the Prefect server at {url} refuses with status {error.response.status_code}"
        raise ServerError(msg) from error
    except httpx.HTTPError as error:
        msg = f"no Prefect server answers at {url} ({type(error).__name__}): `afresh serve` runs one"
        raise ServerError(msg) from error


@contextmanager
def server_for(settings: Settings) -> Iterator[str]:
    """Point this process at a server and yield its address; an embedded one is stopped again."""
    os.environ.update(client_environment(settings))
    if os.environ.get("PREFECT_API_URL") or settings.server.url:
        os.environ.update(access_environment(settings))
        url = os.environ["PREFECT_API_URL"].removesuffix("/api")
        check_access(url, settings)
        yield url
        return
    served = recorded(settings)
    if served is not None and served.is_healthy():
        point_at(served)
        yield served.url
        return
    tell("starting an embedded Prefect server (about 20 s)")
    alone = settings.model_copy(update={"server": ServerSettings()})
    # Any user of this host can reach a port on loopback, and who can start runs can run code.
    with started(alone, port=free_port(alone.server.host), password=secrets.token_urlsafe(24)) as running:
        point_at(running)
        # Its address ends with the command; what it leaves in notices and artifacts leads to where serve will show it.
        os.environ["PREFECT_UI_URL"] = local_url(settings, settings.server.port)
        try:
            yield running.url
        finally:
            _send_what_is_queued()


def _send_what_is_queued() -> None:
    """Let Prefect's client send its last logs and events while its server lives: at exit it would retry for minutes."""
    if "prefect" not in sys.modules:
        return
    from prefect.events.worker import EventsWorker  # noqa: PLC0415 - only where Prefect was used
    from prefect.logging.handlers import APILogWorker  # noqa: PLC0415

    EventsWorker.drain_all(timeout=SENT_WITHIN.total_seconds())
    APILogWorker.drain_all(timeout=SENT_WITHIN.total_seconds())


@contextmanager
def started(settings: Settings, *, port: int, password: str | None) -> Iterator[Running]:
    """Run a server for as long as the block lasts.

    Raises:
        Misuse: others could reach it without a password.
        ServerError: it ended, or did not answer in time; the message names its log.
    """
    if password is None and not settings.server.is_on_loopback:
        msg = f"server.host {settings.server.host}: others could reach it without a password"
        raise Misuse(msg)
    check_bind(settings)
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings.home.chmod(0o700)
    (settings.home / "prefect").mkdir(exist_ok=True, mode=0o700)
    environment = {**os.environ, **server_environment(settings, port=port, password=password)}
    log = settings.home / "server.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", "server", "start", "--host", settings.server.host, "--port", str(port)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A Ctrl-C at the terminal is for us; the server is stopped when the block ends.
            start_new_session=True,
        )
    try:
        running = Running(
            url=local_url(settings, port),
            process=identity_of(process.pid),
            owner=identity_of(os.getpid()),
            password=password,
        )
        _await_health(running, process, log)
        yield running
    finally:
        stop(process)


def _await_health(running: Running, process: subprocess.Popen[bytes], log: Path) -> None:
    def probe() -> bool:
        if process.poll() is not None:
            msg = f"the Prefect server ended with {process.returncode}: see {log}"
            raise ServerError(msg)
        return running.is_healthy()

    try:
        wait_until(probe, STARTED_WITHIN, SystemClock())
    except DeadlinePassed as error:
        msg = f"the Prefect server did not answer within {STARTED_WITHIN.total_seconds():.0f} s: see {log}"
        raise ServerError(msg) from error


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and its children, which share its process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(timeout=STOPPED_WITHIN.total_seconds())
        except subprocess.TimeoutExpired:
            continue
        break
    process.wait()


@contextmanager
def served_alone(settings: Settings) -> Iterator[None]:
    """Let no second `afresh serve` begin on this home while the block lasts; what a dead one left is ended first.

    Raises:
        Misuse: this home is served already.
        ConfigurationError: it cannot be written.
    """
    with ExitStack() as lock:
        try:
            settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock.enter_context(held(settings.home / "locks" / "serve.lock"))
        except RenewalInProgress as error:
            running = recorded(settings)
            where = f"at {running.url}" if running else "by one that is just starting"
            msg = f"this home is served already {where} ({settings.home})"
            raise Misuse(msg) from error
        except OSError as error:
            msg = f"{settings.home}: no folder for Afresh's state: {error.strerror}; set AFRESH_HOME to one"
            raise ConfigurationError(msg) from error
        end_orphan(settings)
        yield


def check_port(settings: Settings) -> None:
    """Find a port that is taken before a server is started: whoever has it could answer in our server's stead.

    Raises:
        Misuse
    """
    host, port = settings.server.host, settings.server.port
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            msg = f"{settings.path or 'the default'}: server.port {port} on {host}: {error.strerror}; choose another"
            raise Misuse(msg) from error


def end_orphan(settings: Settings) -> None:
    """End the server that an `afresh serve` left behind when it was killed.

    Raises:
        Misuse: its owner lives: this home is served already.
    """
    running = recorded(settings)
    if running is None:
        return
    if running.owner is not None and is_alive(running.owner):
        msg = f"this home is served already at {running.url} (process {running.owner.pid})"
        raise Misuse(msg)
    if running.process is not None and is_alive(running.process):
        tell(f"ending the server of a dead `afresh serve` (process {running.process.pid})")
        tree = tuple(process.identity for process in tree_of(running.process.pid))
        ask_to_exit(tree)
        end(tree, term_after=STOPPED_WITHIN, kill_after=STOPPED_WITHIN, clock=SystemClock())
    record_path(settings).unlink(missing_ok=True)


def record_path(settings: Settings) -> Path:
    return settings.home / "server.json"


def recorded(settings: Settings) -> Running | None:
    """The server that `afresh serve` recorded, alive or not."""
    try:
        return Running.recall(record_path(settings).read_bytes())
    except (OSError, ValueError):
        return None


@contextmanager
def recorded_as(settings: Settings, running: Running) -> Iterator[None]:
    """Let other commands of this home find *running*. The file holds the password and is for its owner alone."""
    record(settings, running)
    try:
        yield
    finally:
        record_path(settings).unlink(missing_ok=True)


def record(settings: Settings, running: Running) -> None:
    path = record_path(settings)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(running.model_dump_json())


def point_at(running: Running) -> None:
    """Let Prefect, imported after this, ask *running*."""
    os.environ["PREFECT_API_URL"] = running.api
    if running.password:
        os.environ["PREFECT_API_AUTH_STRING"] = f"{USER}:{running.password}"


def free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
