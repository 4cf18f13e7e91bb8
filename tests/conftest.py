"""What every test stands on: folders of its own, and nothing of the developer's environment."""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.folders import clear_abandoned, give_up, own_folder

_PREFIX = "afresh-tests-"
_OURS = own_folder(_PREFIX)
_OWNER = os.getpid()


@atexit.register
def _clear() -> None:
    if os.getpid() == _OWNER:  # a forked child ends without taking its parent's folders along
        with suppress(OSError):
            give_up(_OURS)


def _isolate() -> None:
    """Before Prefect is imported: it reads its settings at import, and would write to the developer's home."""
    for name in [*os.environ]:
        if name.startswith(("PREFECT_", "AFRESH_", "HERMES_")) and name != "AFRESH_TEST_HERMES":
            del os.environ[name]
    for name in ("CLAUDE_HOME", "TMUX", "TMUX_PANE", "TMUX_TMPDIR"):
        os.environ.pop(name, None)
    folders = {"HOME": "home", "HERMES_HOME": "hermes", "HERMES_SWARM_MEMORY_ROOT": "memory-root"}
    folders |= {"AFRESH_HOME": "afresh", "PREFECT_HOME": "prefect"}
    for name, folder in folders.items():
        (_OURS / folder).mkdir(mode=0o700)
        os.environ[name] = str(_OURS / folder)
    os.environ |= {"DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A background job of a shell ignores interrupts, and so would each command that a test starts and interrupts.
        signal.signal(signal.SIGINT, signal.default_int_handler)


_isolate()

# The imports come after the isolation on purpose.
from deployments.demo.script import Script  # noqa: E402
from deployments.demo.scripted_model import ScriptedModel  # noqa: E402
from tests.agents.ground import clear_abandoned_grounds  # noqa: E402
from tests.agents.hermes_stage import HermesStage  # noqa: E402
from tests.agents.stage import Stage  # noqa: E402

# The same examples in each run, and no example fails because the machine had something else to do for 200 ms.
# `--hypothesis-profile default` looks for new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remove what killed runs left; of the processes of one run only the first one does."""
    if not hasattr(session.config, "workerinput"):
        clear_abandoned(_PREFIX)
        clear_abandoned_grounds()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what tests have recorded of how they were run, also of those that passed."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, told in report.user_properties:
            terminalreporter.write_line(f"{report.nodeid}: {name}: {told}")


@pytest.fixture
def empty_stage() -> Iterator[Stage]:
    """The worker swarm1 with its folders and no agent running."""
    stage = Stage()
    try:
        yield stage
    finally:
        stage.ground.clear()


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """The worker swarm1 with a scripted agent that shows its input line."""
    empty_stage.start()
    empty_stage.wait_ready()
    return empty_stage


@pytest.fixture(scope="session")
def hermes() -> Path:
    """The real Hermes Agent; a test that needs it fails where it is missing."""
    program = Path(os.environ.get("AFRESH_TEST_HERMES") or Path(__file__).parents[1] / ".agent" / "bin" / "hermes")
    if not os.access(program, os.X_OK):
        pytest.fail(f"no Hermes Agent at {program}: `make test` installs it, AFRESH_TEST_HERMES names another")
    return program


@pytest.fixture
def hermes_stage(hermes: Path, request: pytest.FixtureRequest) -> Iterator[HermesStage]:
    """The worker swarm1 as a real Hermes Agent that shows its input line.

    `@pytest.mark.parametrize("hermes_stage", ["cli", "tui"], indirect=True)` chooses the face; `cli` without it.
    """
    with ScriptedModel(Script()) as model:
        stage = HermesStage(hermes, model, getattr(request, "param", "cli"))
        try:
            stage.start()
            stage.wait_ready(90)
            yield stage
        finally:
            stage.ground.clear()
