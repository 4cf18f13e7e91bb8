"""`afresh deploy`: the work pool, deployments and automations of this host. Applied again they stay the same."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from ruamel.yaml import YAML

from deployments.address import access_environment
from deployments.prefect_environment import client_environment
from deployments.server import Running, ServerError, answering, check_access, recorded
from lifecycle.errors import Misuse
from lifecycle.redaction import redact
from lifecycle.settings import Settings
from lifecycle.value import Value
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until

PREFECT_FILE = Path(__file__).with_name("prefect.yaml")

COMMAND_WITHIN = timedelta(minutes=3)
"""Most of it is Prefect's own start on a busy machine."""

_LONGEST_COMPLAINT = 600


class Deployed(Value):
    """What stands on the server for this host; *missing* are notification blocks that are named and not there."""

    host: str
    url: str
    pool: str
    deployments: tuple[str, ...]
    automations: tuple[str, ...]
    missing: tuple[str, ...] = ()


def deploy(settings: Settings, *, patience: timedelta, automations_alone: bool = False) -> Deployed:
    """Apply prefect.yaml for this host, and the automations. Waits *patience* for the server to answer.

    Deployments that `afresh serve` left on the server go: nothing would run them any more.

    Raises:
        Misuse: `afresh serve` runs here, which has deployments of its own.
        ServerError: the server does not answer, or refuses.
    """
    served = recorded(settings)
    if not automations_alone and served is not None and served.is_served:
        msg = (
            f"`afresh serve` runs here (process {served.owner.pid if served.owner else '?'}) with deployments of its "
            "own: end it first, or give --automations-only"
        )
        raise Misuse(msg)
    url = point_at_server(settings, patience=patience)
    with answering(url):
        return _deployed(settings, url, automations_alone=automations_alone)


def _deployed(settings: Settings, url: str, *, automations_alone: bool) -> Deployed:
    from prefect.client.orchestration import get_client  # noqa: PLC0415 - once its server is known

    from deployments.automations import apply  # noqa: PLC0415
    from deployments.retiring import retire  # noqa: PLC0415

    pool = settings.host_name
    if not automations_alone:
        with get_client(sync_client=True) as client:
            pools = {one.name for one in client.read_work_pools()}
        if pool not in pools:
            _prefect("work-pool", "create", pool, "--type", "process", settings=settings)
        _prefect("deploy", "--prefect-file", str(_of_this_host(settings)), "--all", settings=settings)
        retire(None)
    missing: list[str] = []
    automations = apply(settings, missing)
    with get_client(sync_client=True) as client:
        flows = {flow.id: flow.name for flow in client.read_flows()}
        found = client.read_deployments()
    names = sorted(f"{flows[one.flow_id]}/{one.name}" for one in found if one.work_pool_name == pool)
    return Deployed(
        host=settings.host_name,
        url=url,
        pool=pool,
        deployments=tuple(names),
        automations=tuple(automations),
        missing=tuple(missing),
    )


def point_at_server(settings: Settings, *, patience: timedelta) -> str:
    """Point this process and its children at the server, once it answers. Before Prefect is imported.

    Raises:
        ServerError: it does not answer.
        ConfigurationError: it refuses the password.
    """
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    access = access_environment(settings)
    os.environ.update(client_environment(settings) | access)
    url = access["PREFECT_API_URL"].removesuffix("/api")
    try:
        wait_until(Running(url=url).is_healthy, patience, SystemClock(), every=timedelta(seconds=1))
    except DeadlinePassed as error:
        msg = f"no Prefect server answers at {url}: start it, or set server.url in {settings.path or 'afresh.toml'}"
        raise ServerError(msg) from error
    check_access(url, settings)
    return url


def start_recovery(settings: Settings) -> None:
    """Let renewals whose run ended with the last Prefect worker go on before the first sweep.

    Raises:
        Misuse: nothing is deployed for this host yet.
        ServerError: the server does not answer any more, or refuses.
    """
    from prefect.deployments import run_deployment  # noqa: PLC0415 - once its server is known
    from prefect.exceptions import ObjectNotFound  # noqa: PLC0415

    from flows.runs import deployment_of  # noqa: PLC0415

    try:
        with answering(os.environ["PREFECT_API_URL"].removesuffix("/api")):
            run_deployment(deployment_of("recover", settings.host_name), timeout=0, as_subflow=False)
    except (ObjectNotFound, ValueError) as error:
        msg = f"nothing is deployed for host {settings.host_name}: run `afresh deploy` first"
        raise Misuse(msg) from error


def _of_this_host(settings: Settings) -> Path:
    """A copy of prefect.yaml with this host's interval, which Prefect takes from no variable."""
    yaml = YAML()
    document = yaml.load(PREFECT_FILE)
    for deployment in document["deployments"]:
        for schedule in deployment.get("schedules", ()):
            schedule["interval"] = int(settings.sweep_interval.total_seconds())
    written = settings.home / "prefect" / "prefect.yaml"
    written.parent.mkdir(exist_ok=True, mode=0o700)
    yaml.dump(document, written)
    return written


def _prefect(*arguments: str, settings: Settings) -> None:
    """Run one of Prefect's own commands without a prompt.

    Raises:
        ServerError: it failed; the message ends with what it said.
    """
    given = {"AFRESH_DEPLOY_HOST": settings.host_name, "NO_COLOR": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "prefect", "--no-prompt", *arguments],
            env={**os.environ, **given},
            # A prefect.yaml or .env of the folder that it is called in is none of ours.
            cwd=settings.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=COMMAND_WITHIN.total_seconds(),
        )
    except subprocess.TimeoutExpired as error:
        msg = f"`prefect {arguments[0]}` was not done after {COMMAND_WITHIN.total_seconds():.0f} s"
        raise ServerError(msg) from error
    if done.returncode:
        said = " ".join(done.stdout.split())[-_LONGEST_COMPLAINT:]
        msg = f"`prefect {arguments[0]}` failed: {redact(said)}"
        raise ServerError(msg)
