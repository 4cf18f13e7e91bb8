"""Which workers there are: swarm.yaml, afresh.toml and the profile folders, in one list."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from lifecycle.agents.kinds import agent_of_kind
from lifecycle.errors import ConfigurationError, InvalidWorkerId, RosterError, UnknownWorker
from lifecycle.settings import Settings, WorkerSettings
from lifecycle.worker import Worker, checked_worker_id

_NUMBERED = re.compile(r"swarm\d+", re.IGNORECASE | re.ASCII)
_WRAPPER = r"(?i)^[a-z0-9][a-z0-9_.:-]{0,127}$"


class _Entry(BaseModel):
    """One worker of swarm.yaml, as far as its lifecycle goes. `model` is a label there, and no policy follows it."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True, strict=True)

    id: str
    profile: str | None = None
    wrapper: str | None = Field(None, pattern=_WRAPPER)
    default_cwd: str | None = None
    mission: str | None = None
    greenlight_required_for: list[str] | None = None

    @field_validator("id", "profile")
    @classmethod
    def _is_an_id(cls, text: str | None) -> str | None:
        try:
            return text if text is None else checked_worker_id(text.strip())
        except InvalidWorkerId as error:
            raise ValueError(error.detail) from error


def load_workers(settings: Settings) -> tuple[Worker, ...]:
    """Every worker: those of the roster, then those of afresh.toml, then profiles named `swarm<digits>`, all
    managed; then the other profiles, unmanaged and never automatic. afresh.toml wins over the roster.

    Raises:
        RosterError: a roster is named and missing, or it is there and cannot be used. The message names file
            and entry.
        ConfigurationError: a worker's policy cannot be used, or its kind of agent is unknown.
    """
    _check_agents(settings)
    path, entries = _roster(settings)
    declared = [*entries, *(worker_id for worker_id in settings.workers if worker_id not in entries)]
    profiles = [profile for profile in _profiles(settings) if profile not in declared]
    managed = [*declared, *(profile for profile in profiles if _NUMBERED.fullmatch(profile))]
    workers = [_managed(settings, worker_id, entries.get(worker_id), path.parent) for worker_id in managed]
    taken = {worker.profile for worker in workers}
    others = [settings.hermes_root / "profiles" / profile for profile in profiles if profile not in managed]
    return (*workers, *(_unmanaged(settings, profile) for profile in others if profile not in taken))


def find_worker(settings: Settings, worker_id: str) -> Worker:
    """The managed worker of this id.

    Raises:
        InvalidWorkerId: it is no id.
        UnknownWorker: nobody declared it, or it is an unmanaged profile. The message lists the managed ones.
        RosterError, ConfigurationError
    """
    checked_worker_id(worker_id)
    workers = load_workers(settings)
    found = next((worker for worker in workers if worker.worker_id == worker_id), None)
    if found is not None and found.managed:
        return found
    known = ", ".join(worker.worker_id for worker in workers if worker.managed) or "none"
    what = "is an unmanaged profile: a table [workers.{0}] in afresh.toml makes it a worker" if found else "is unknown"
    msg = f"worker {worker_id} {what.format(worker_id)}; managed workers: {known}"
    raise UnknownWorker(msg, worker_id=worker_id)


def _roster(settings: Settings) -> tuple[Path, dict[str, _Entry]]:
    path = settings.roster or settings.memory_root / "swarm.yaml"
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError as error:
        if settings.roster is None:
            return path, {}
        msg = f"{path}: no such roster"
        raise RosterError(msg) from error
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: the roster cannot be read: {error}"
        raise RosterError(msg) from error
    try:
        found = YAML(typ="safe").load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        msg = f"{path}: not valid YAML: {' '.join(str(error).split())}"
        raise RosterError(msg) from error
    listed = found.get("workers") if isinstance(found, dict) else found
    if listed is not None and not (isinstance(found, dict) and isinstance(listed, list)):
        msg = f"{path}: workers must be a list"
        raise RosterError(msg)
    entries: dict[str, _Entry] = {}
    for number, raw in enumerate(listed or (), start=1):
        entry = _entry(path, number, raw)
        if entry.id in entries:
            msg = f"{path}: worker {number}: {entry.id} is listed twice"
            raise RosterError(msg, worker_id=entry.id)
        entries[entry.id] = entry
    return path, entries


def _entry(path: Path, number: int, raw: object) -> _Entry:
    try:
        return _Entry.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        named = f" ({raw['id']!r})" if isinstance(raw, dict) and raw.get("id") and key != "id" else ""
        msg = f"{path}: worker {number}{named}: {key}: {first['msg'].removeprefix('Value error, ')}"
        raise RosterError(msg) from error


def _profiles(settings: Settings) -> list[str]:
    """Profile folders whose names are ids; backups and hidden folders are none."""
    try:
        folders = [entry.name for entry in (settings.hermes_root / "profiles").iterdir() if entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    return sorted(filter(_is_id, folders), key=_natural)


def _natural(name: str) -> tuple[str, int]:
    """swarm2 before swarm10."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0)


def _is_id(name: str) -> bool:
    try:
        checked_worker_id(name)
    except InvalidWorkerId:
        return False
    return True


def _check_agents(settings: Settings) -> None:
    for worker_id, ours in settings.workers.items():
        try:
            agent_of_kind(ours.agent)
        except ConfigurationError as error:
            msg = f"{settings.path}: workers.{worker_id}.agent: {error.detail}"
            raise ConfigurationError(msg, worker_id=worker_id) from error


def _managed(settings: Settings, worker_id: str, entry: _Entry | None, roster_folder: Path) -> Worker:
    ours = settings.workers.get(worker_id, WorkerSettings())
    listed = entry or _Entry(id=worker_id)
    cwd = roster_folder / Path(listed.default_cwd).expanduser() if listed.default_cwd else None
    return Worker(
        worker_id=worker_id,
        profile=ours.profile or settings.hermes_root / "profiles" / (listed.profile or worker_id),
        session=ours.session or f"swarm-{worker_id}",
        socket=ours.socket or settings.socket,
        cwd=ours.cwd or cwd,
        command=ours.command,
        environment=ours.environment,
        agent=ours.agent,
        managed=True,
        automatic=settings.automatic if ours.automatic is None else ours.automatic,
        policy=settings.policy_of(worker_id),
        greenlight_required_for=tuple(listed.greenlight_required_for or ()),
        roster_mission=listed.mission or None,
        wrapper=_wrapper(worker_id, listed.wrapper),
    )


def _unmanaged(settings: Settings, profile: Path) -> Worker:
    return Worker(
        worker_id=profile.name,
        profile=profile,
        session=f"swarm-{profile.name}",
        socket=settings.socket,
        managed=False,
        automatic=False,
        policy=settings.policy,
    )


def _wrapper(worker_id: str, named: str | None) -> Path | None:
    """A wrapper that the roster names is taken at its word (W-27: it is missed before the stop, not after)."""
    folder = Path.home() / ".local" / "bin"
    if named:
        return folder / named
    return folder / worker_id if (folder / worker_id).is_file() else None
