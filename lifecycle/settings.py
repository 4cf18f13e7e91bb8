"""afresh.toml and the environment, as one frozen object that is passed on."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from lifecycle.errors import ConfigurationError, InvalidWorkerId
from lifecycle.policy import Deadlines, Policy
from lifecycle.value import Value
from lifecycle.worker import checked_worker_id


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
    """Where notifications go besides log and event. The command gets one JSON document on standard input."""

    command: tuple[str, ...] | None = None
    webhook: str | None = None


class ServerSettings(Value):
    """The Prefect server that `afresh serve` starts."""

    host: str = "127.0.0.1"
    port: int = Field(4200, ge=1, le=65535)


class Settings(Value):
    """Everything that an operator can set. *path* is the file it came from, None where there is none."""

    home: Path
    path: Path | None = None
    hermes_root: Path
    memory_root: Path
    roster: Path | None = None
    socket: str | None = None
    automatic: bool = False
    max_parallel_renewals: int = Field(2, ge=1)
    sweep_interval: timedelta = Field(timedelta(minutes=10), ge=timedelta(seconds=30))
    pass_env: tuple[str, ...] = ()
    policy: Policy = Policy()
    deadlines: Deadlines = Deadlines()
    models: dict[str, dict[str, Any]] = {}
    workers: dict[str, WorkerSettings] = {}
    notify: NotifySettings = NotifySettings()
    server: ServerSettings = ServerSettings()

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
    }
    merged = {**defaults, **table}
    for key in ("hermes_root", "memory_root", "roster"):
        if isinstance(merged.get(key), str):
            merged[key] = _path(merged[key], environ)
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
