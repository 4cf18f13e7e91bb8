"""systemd units: the server, this host's Prefect worker, tmux by itself, the page, and the watch with its timer."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from lifecycle.settings import Settings
from lifecycle.value import Value


class Unit(Value):
    name: str
    text: str


class Place(Value):
    """Whose units they are. *account* runs those of the system; a person's own run as that person."""

    system: bool
    account: str
    folder: Path


def units(settings: Settings, place: Place, *, with_server: bool) -> list[Unit]:
    """The units of this host, in the order in which they start."""
    found = [_tmux(settings, place), _worker(settings, place, with_server=with_server)]
    if with_server:
        found.insert(0, _server(settings, place))
    if settings.http.enabled:
        found.append(_http(settings, place))
    return [*found, _watch(settings, place), _timer()]


def commands(place: Place, chosen: list[Unit]) -> list[str]:
    """What is left to type."""
    systemctl = "systemctl" if place.system else "systemctl --user"
    started = " ".join(unit.name for unit in chosen if not unit.name.startswith("afresh-watch.service"))
    linger = [] if place.system else [f"loginctl enable-linger {place.account}"]
    return [f"{systemctl} daemon-reload", f"{systemctl} enable --now {started}", *linger]


def _server(settings: Settings, place: Place) -> Unit:
    return _unit(
        "afresh-server.service",
        f"""\
[Unit]
Description=Prefect server of Afresh
After=network-online.target
Wants=network-online.target

[Service]
{_as(settings, place)}
ExecStart={_afresh("server")}
Restart=always
RestartSec=5
TimeoutStopSec=60

[Install]
WantedBy={_target(place)}
""",
    )


def _worker(settings: Settings, place: Place, *, with_server: bool) -> Unit:
    before = " afresh-server.service" if with_server else ""
    return _unit(
        "afresh-worker.service",
        f"""\
[Unit]
Description=Prefect worker of Afresh for the agents of {settings.host_name}
After=network-online.target afresh-tmux.service{before}
Wants=network-online.target afresh-tmux.service{before}
# It waits for its server as long as it takes.
StartLimitIntervalSec=0

[Service]
{_as(settings, place)}
# Waits for the server, and puts on it what this release brings. A notification block that is missing hinders nothing.
ExecStartPre=-{_afresh("deploy", "--wait", "120")}
ExecStart={_afresh("worker")}
Restart=always
RestartSec=5
TimeoutStartSec=360
TimeoutStopSec=60
# Only the Prefect worker is ended, and it ends its runs. Were there no unit for tmux, agents would be ended too.
KillMode=process
OOMPolicy=continue

[Install]
WantedBy={_target(place)}
""",
    )


def _tmux(settings: Settings, place: Place) -> Unit:
    tmux = ["tmux", *_socket(settings)]
    runs_already = _word(f"! {shlex.join(tmux)} has-session 2>/dev/null")
    return _unit(
        "afresh-tmux.service",
        f"""\
[Unit]
Description=tmux server for the agents that Afresh looks after
# Restarting it ends every agent: nothing that is done to the other units does it.

[Service]
{_owner(place)}
{_path()}
Environment="LANG={_escaped(os.environ.get("LANG") or "C.UTF-8")}"
# A tmux server that runs already is left to be what it is.
ExecCondition=/bin/sh -c {runs_already}
# Nothing of Afresh's environment, and none of its secrets, reaches the agents.
ExecStart=/usr/bin/env {" ".join(map(_word, tmux))} -D
Restart=on-failure
RestartSec=2
# One agent that runs out of memory takes none of the others along.
OOMPolicy=continue
TasksMax=infinity

[Install]
WantedBy={_target(place)}
""",
    )


def _http(settings: Settings, place: Place) -> Unit:
    return _unit(
        "afresh-http.service",
        f"""\
[Unit]
Description=Page and HTTP API of Afresh on loopback

[Service]
{_as(settings, place)}
# It looks at agents and starts none; what takes long it orders from the Prefect server.
ExecStart={_afresh("http")}
Restart=always
RestartSec=5
TimeoutStopSec=20
# Ended by a TERM it says so with the code of an interrupted command.
SuccessExitStatus=130

[Install]
WantedBy={_target(place)}
""",
    )


def _watch(settings: Settings, place: Place) -> Unit:
    return _unit(
        "afresh-watch.service",
        f"""\
[Unit]
Description=Tells people when the Prefect server of Afresh is down or no sweep ends
After=network-online.target

[Service]
Type=oneshot
{_as(settings, place)}
ExecStart={_afresh("watch")}
# That the server is down is told, and is no failure of the watch.
SuccessExitStatus=1
TimeoutStartSec=180
""",
    )


def _timer() -> Unit:
    return _unit(
        "afresh-watch.timer",
        """\
[Unit]
Description=Looks after the Prefect server of Afresh every five minutes

[Timer]
OnBootSec=10min
OnUnitActiveSec=5min

[Install]
WantedBy=timers.target
""",
    )


def _unit(name: str, text: str) -> Unit:
    return Unit(name=name, text="\n".join(line for line in text.splitlines() if line != "-") + "\n")


def _as(settings: Settings, place: Place) -> str:
    """The account, and the environment that says which home and workers are meant. No secret is among it."""
    given = {"AFRESH_HOME": str(settings.home)}
    if settings.path is not None and settings.path != settings.home / "afresh.toml":
        given["AFRESH_CONFIG"] = str(settings.path)
    given["HERMES_HOME"] = str(settings.hermes_root)
    given["HERMES_SWARM_MEMORY_ROOT"] = str(settings.memory_root)
    if os.environ.get("AFRESH_TMUX_SOCKET"):
        given["AFRESH_TMUX_SOCKET"] = os.environ["AFRESH_TMUX_SOCKET"]
    return "\n".join([_owner(place), _path(), _given(given), "UMask=0077"])


def _given(environment: dict[str, str]) -> str:
    return "\n".join(f'Environment="{name}={_escaped(value)}"' for name, value in environment.items())


def _owner(place: Place) -> str:
    return f"User={place.account}" if place.system else "-"


def _path() -> str:
    """Tell where tmux, its sockets and the agents were found when the units were made."""
    given = {"PATH": os.environ.get("PATH", os.defpath)}
    if os.environ.get("TMUX_TMPDIR"):
        given["TMUX_TMPDIR"] = os.environ["TMUX_TMPDIR"]
    return _given(given)


def _afresh(*words: str) -> str:
    """The command by its interpreter: units know no PATH of a shell."""
    return " ".join(_word(word) for word in (sys.executable, "-m", "deployments.cli", *words))


def _socket(settings: Settings) -> list[str]:
    """As the lifecycle names it: a path, or a name in tmux's own folder."""
    if not settings.socket:
        return []
    return ["-S" if "/" in settings.socket else "-L", settings.socket]


def _word(text: str) -> str:
    return f'"{_escaped(text).replace("$", "$$")}"' if set(text) & set(" \t\"'\\%$;") else text


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def _target(place: Place) -> str:
    return "multi-user.target" if place.system else "default.target"
