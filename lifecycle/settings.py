"""afresh.toml and the environment, as one frozen object that is passed on."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr, ValidationError, field_validator

from lifecycle.budgets import PackSettings, SynthesisSettings
from lifecycle.collect_settings import CollectSettings
from lifecycle.errors import ConfigurationError, InvalidWorkerId
from lifecycle.policy import Deadlines, Policy
from lifecycle.value import Value
from lifecycle.worker import checked_worker_id

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class WorkerSettings(Value):
    """One `[workers.NAME]` table. Every key is optional; paths may begin with `~`."""

    profile: Path | None = None
    session: str | None = None
    socket: str | None = None
    cwd: Path | None = None
    command: tuple[str, ...] | None = None
    environment: dict[str, str] = {}
    agent: str = "hermes"
    automatic: bool | None = None
    policy: dict[str, Any] = {}

    @field_validator("session")
    @classmethod
    def _tmux_keeps_the_name(cls, session: str | None) -> str | None:
        # tmux turns "." and ":" into "_", and would then never be found under the name that was asked for.
        if session is not None and (not session or set(session) & set(".:=$%@") or not session.isprintable()):
            msg = f"tmux cannot keep the session name {session!r}"
            raise ValueError(msg)
        return session


class NotifySettings(Value):
    """Where notifications go besides log and event. The command gets one JSON document on standard input.

    *apprise* are addresses as Apprise takes them. *blocks* are Prefect notification blocks, `type/name`, that the
    server's automations tell.
    """

    command: tuple[str, ...] | None = None
    webhook: str | None = None
    apprise: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()

    @property
    def sinks(self) -> int:
        """How many ways there are besides Prefect's blocks."""
        return (self.command is not None) + (self.webhook is not None) + len(self.apprise)

    @field_validator("blocks")
    @classmethod
    def _have_type_and_name(cls, blocks: tuple[str, ...]) -> tuple[str, ...]:
        for block in blocks:
            if not re.fullmatch(r"[a-z0-9-]+/[a-z0-9-]+", block):
                msg = f"{block!r} is no Prefect block: write type/name, e.g. slack-webhook/operators"
                raise ValueError(msg)
        return blocks


class ServerSettings(Value):
    """The Prefect server: where `afresh serve` and `afresh server` start it, and how others reach it.

    *url* is the address for browsers and other hosts, without a path; *password_file* holds the password of the user
    `afresh` and is for its owner alone; *database* is a PostgreSQL URL, else SQLite in the home.
    """

    host: str = "127.0.0.1"
    port: int = Field(4200, ge=1, le=65535)
    url: str | None = None
    password_file: Path | None = None
    database: SecretStr | None = None

    @field_validator("url")
    @classmethod
    def _is_an_origin(cls, url: str | None) -> str | None:
        if url is not None and not re.fullmatch(r"https?://[^/@\s]+/?", url):
            msg = "no server's address: write it like http://10.0.0.5:4200, without user, password and path"
            raise ValueError(msg)
        return url.rstrip("/") if url else url

    @field_validator("database")
    @classmethod
    def _is_postgresql(cls, database: SecretStr | None) -> SecretStr | None:
        if database is not None and not database.get_secret_value().startswith("postgresql+asyncpg://"):
            msg = "not a PostgreSQL address: it begins with postgresql+asyncpg://"
            raise ValueError(msg)
        return database

    @property
    def is_on_loopback(self) -> bool:
        return self.host in LOOPBACK


def _name_of_this_host() -> str:
    """As Prefect takes names of pools and artifacts: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", socket.gethostname().partition(".")[0].lower()).strip("-") or "host"


class HttpSettings(Value):
    """The HTTP API and the page. *port* is the Prefect server's plus one where none is set.

    *hosts* are names by which a browser may reach it besides loopback's: those of a proxy in front of it.
    *reads_per_minute* and *acts_per_minute* hold for each address that asks; the figures are the reference system's.
    """

    enabled: bool = True
    host: str = "127.0.0.1"
    port: int | None = Field(None, ge=1, le=65535)
    hosts: tuple[str, ...] = ()
    reads_per_minute: int = Field(60, ge=1)
    acts_per_minute: int = Field(30, ge=1)

    @field_validator("host")
    @classmethod
    def _is_loopback(cls, host: str) -> str:
        if host not in LOOPBACK:
            msg = f"{host}: only loopback is served ({', '.join(LOOPBACK)}); put a proxy with TLS in front of it"
            raise ValueError(msg)
        return host


class Settings(Value):
    """Everything that an operator can set. *path* is the file it came from, None where there is none.

    *host_name* names this host's work pool, deployments and artifacts; by default it is the system's.
    *orchestrator* is the worker that is told of the others' renewals, where there is one of this id.
    """

    home: Path
    path: Path | None = None
    host_name: str = Field(default_factory=_name_of_this_host, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=63)
    hermes_root: Path
    memory_root: Path
    roster: Path | None = None
    socket: str | None = None
    orchestrator: str = "orchestrator"
    automatic: bool = False
    max_parallel_renewals: int = Field(2, ge=1)
    sweep_interval: timedelta = Field(timedelta(minutes=10), ge=timedelta(seconds=30))
    pass_env: tuple[str, ...] = ()
    policy: Policy = Policy()
    deadlines: Deadlines = Deadlines()
    pack: PackSettings = PackSettings()
    synthesis: SynthesisSettings = SynthesisSettings()
    models: dict[str, dict[str, Any]] = {}
    workers: dict[str, WorkerSettings] = {}
    notify: NotifySettings = NotifySettings()
    collect: CollectSettings = CollectSettings()
    server: ServerSettings = ServerSettings()
    http: HttpSettings = HttpSettings()

    @field_validator("workers")
    @classmethod
    def _ids_are_ids(cls, workers: dict[str, WorkerSettings]) -> dict[str, WorkerSettings]:
        for worker_id in workers:
            try:
                checked_worker_id(worker_id)
            except InvalidWorkerId as error:
                raise ValueError(error.detail) from error
        return workers

    @property
    def ledger_path(self) -> Path:
        return self.home / "ledger.db"

    @property
    def http_port(self) -> int:
        return self.http.port or self.server.port + 1

    def policy_of(self, worker_id: str, model: str | None = None) -> Policy:
        """The policy in force: the general one, then every model glob that matches, then the worker's own.

        Raises:
            ConfigurationError: the layers together are no policy; the message names the worker.
        """
        layers = [table for glob, table in self.models.items() if model and fnmatchcase(model, glob)]
        if worker_id in self.workers:
            layers.append(self.workers[worker_id].policy)
        if not any(layers):
            return self.policy
        merged: dict[str, Any] = self.policy.model_dump()
        for layer in layers:
            merged |= layer
        try:
            return Policy.model_validate(merged)
        except ValidationError as error:
            msg = f"{self.path}: policy of worker {worker_id}: {_first_complaint(error)}"
            raise ConfigurationError(msg, worker_id=worker_id) from error


def load_settings(explicit: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the configuration: *explicit*, else AFRESH_CONFIG, else AFRESH_HOME/afresh.toml, nothing else.

    Raises:
        ConfigurationError: a named file is missing, others can write it, or a key is unknown or of the wrong
            kind. The message names file and key.
    """
    home = _path(environ.get("AFRESH_HOME") or "~/.afresh", environ)
    named = explicit or (Path(environ["AFRESH_CONFIG"]) if environ.get("AFRESH_CONFIG") else None)
    path = _path(str(named), environ) if named else home / "afresh.toml"
    if named and not path.exists():
        msg = f"{path}: no such configuration file"
        raise ConfigurationError(msg)
    found = path if path.exists() else None
    table = _read(found) if found else {}
    reserved = {"home", "path"} & table.keys()
    if reserved:
        msg = f"{path}: unknown key {min(reserved)!r}"
        raise ConfigurationError(msg)
    root = environ.get("HERMES_HOME") or environ.get("CLAUDE_HOME") or "~/.hermes"
    defaults = {
        "hermes_root": str(_root_of(_path(root, environ))),
        "memory_root": environ.get("HERMES_SWARM_MEMORY_ROOT") or "~/hermes-workspace",
        "socket": environ.get("AFRESH_TMUX_SOCKET"),
        "orchestrator": environ.get("SWARM_ORCHESTRATOR_WORKER_ID") or "orchestrator",
    }
    merged = {**defaults, **table}
    for key in ("hermes_root", "memory_root", "roster"):
        if isinstance(merged.get(key), str):
            merged[key] = _path(merged[key], environ)
    server = merged.get("server")
    if isinstance(server, dict):
        if isinstance(server.get("password_file"), str):
            server["password_file"] = _path(server["password_file"], environ)
        if "database" in server and found is not None and found.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
            msg = f"{found}: server.database may hold a password, and others can read the file; chmod 600 it"
            raise ConfigurationError(msg)
    workers = merged.get("workers")
    for worker in workers.values() if isinstance(workers, dict) else ():
        for key in ("profile", "cwd"):
            if isinstance(worker, dict) and isinstance(worker.get(key), str):
                worker[key] = _path(worker[key], environ)
    try:
        settings = Settings.model_validate({**merged, "home": home, "path": found})
    except ValidationError as error:
        msg = f"{found or 'environment'}: {_first_complaint(error)}"
        raise ConfigurationError(msg) from error
    for worker_id in settings.workers:
        settings.policy_of(worker_id)
    for glob, layer in settings.models.items():
        _check_layer(settings, f"models.{glob}", layer)
    return settings


def _check_layer(settings: Settings, name: str, layer: dict[str, Any]) -> None:
    try:
        Policy.model_validate({**settings.policy.model_dump(), **layer})
    except ValidationError as error:
        msg = f"{settings.path}: {name}: {_first_complaint(error)}"
        raise ConfigurationError(msg) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        mode = path.stat().st_mode
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read: {error}"
        raise ConfigurationError(msg) from error
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        msg = f"{path}: others can write it, and it names commands that are run; chmod go-w it"
        raise ConfigurationError(msg)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        msg = f"{path}: not valid TOML: {error}"
        raise ConfigurationError(msg) from error


def _path(text: str, environ: Mapping[str, str]) -> Path:
    if text == "~" or text.startswith("~/"):
        text = environ.get("HOME", str(Path.home())) + text[1:]
    return Path(text).absolute()


def _root_of(home: Path) -> Path:
    """The Hermes root, also when HERMES_HOME names a profile inside it, or that profile's `home` folder."""
    for folder in (home, home.parent):
        if folder.parent.name == "profiles":
            return folder.parent.parent
    return home


def _first_complaint(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key {key!r}"
    if first["type"] == "tuple_type":
        example = first["input"].split() if isinstance(first["input"], str) else ["hermes", "chat"]
        return f"{key}: must be a list of words, e.g. {json.dumps(example)}"
    message = first["msg"].removeprefix("Value error, ")
    return f"{key}: {message}" if key else message
