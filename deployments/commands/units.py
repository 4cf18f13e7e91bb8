"""afresh install-units: systemd units for what runs by itself."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Annotated

import typer

from deployments.commands.options import AsJson, who
from deployments.output import print_json, say, tell
from lifecycle.errors import Misuse


def add_to(app: typer.Typer) -> None:
    app.command("install-units")(install_units)


def install_units(
    user: Annotated[bool, typer.Option("--user", help="For your own systemd; agents then need lingering.")] = False,
    system: Annotated[bool, typer.Option("--system", help="For the system's, run as --account.")] = False,
    account: Annotated[str, typer.Option(help="With --system: who owns the agents (default: you).")] = "",
    server: Annotated[
        bool | None,
        typer.Option("--server/--no-server", help="Whether the Prefect server runs here (default: if no server.url)."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the units and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write systemd units for the Prefect server, this host's Prefect worker, tmux, and a watch over them."""
    from deployments.units import Place, commands, units
    from lifecycle.settings import load_settings

    if user == system:
        msg = "say whose units they are: --user or --system"
        raise Misuse(msg)
    if account and user:
        msg = "--account goes with --system; --user is for you"
        raise Misuse(msg)
    settings = load_settings()
    if account:
        _check_home(settings.home, account)
    folder = Path("/etc/systemd/system") if system else _own_folder()
    place = Place(system=system, account=account or who(), folder=folder)
    chosen = units(settings, place, with_server=settings.server.url is None if server is None else server)
    if not dry_run:
        _write(folder, {unit.name: unit.text for unit in chosen})
    left = commands(place, chosen)
    if as_json:
        print_json({"folder": str(folder), "units": {unit.name: unit.text for unit in chosen}, "commands": left})
        return
    for unit in chosen:
        say(f"# {folder / unit.name}\n{unit.text}" if dry_run else str(folder / unit.name))
    tell("then:" if not dry_run else "after writing them:")
    for line in left:
        tell(f"  {line}")


def _check_home(home: Path, account: str) -> None:
    """Called by root, the home is root's unless AFRESH_HOME says otherwise, and the units could not read it."""
    try:
        owner = pwd.getpwnam(account)
    except KeyError as error:
        msg = f"--account {account}: there is no such account"
        raise Misuse(msg) from error
    standing = next(path for path in (home, *home.parents) if path.exists())
    if standing.stat().st_uid != owner.pw_uid:
        theirs = Path(owner.pw_dir)
        msg = (
            f"--account {account}: {standing} is not theirs; name their folders, as in "
            f"AFRESH_HOME={theirs / '.afresh'} HERMES_HOME={theirs / '.hermes'}"
        )
        raise Misuse(msg)


def _own_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
    except OSError as error:
        msg = f"{folder}: units cannot be written: {error.strerror}; --dry-run prints them"
        raise Misuse(msg) from error
