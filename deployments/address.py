"""Where the Prefect server is and what opens it: from the environment, the configuration, or what runs here."""

from __future__ import annotations

import json
import os
import secrets
import stat
from pathlib import Path

from lifecycle.errors import ConfigurationError, Misuse
from lifecycle.settings import Settings

USER = "afresh"

ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - refused without a password


def origin(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def local_url(settings: Settings, port: int) -> str:
    """Where the server of this home answers on this host."""
    host = settings.server.host
    return origin("127.0.0.1" if host in ANY_ADDRESS else host, port)


def public_url(settings: Settings, port: int) -> str:
    """Where browsers and other hosts find the server of this home."""
    return settings.server.url or local_url(settings, port)


def check_bind(settings: Settings) -> None:
    """Refuse an address that others can reach, unless the operator has chosen a password for it.

    Raises:
        Misuse
    """
    server, where = settings.server, settings.path or "environment"
    if server.is_on_loopback:
        return
    if server.password_file is None:
        msg = (
            f"{where}: server.host {server.host}: others could reach it without a password that you chose; "
            "set server.password_file, or leave it on 127.0.0.1"
        )
        raise Misuse(msg)
    if server.host in ANY_ADDRESS and server.url is None:
        msg = f"{where}: server.host {server.host}: set server.url, the address under which others find it"
        raise Misuse(msg)


def password_of(settings: Settings) -> str:
    """The password of the server: of the file that the configuration names, else one made for this home and kept.

    Raises:
        ConfigurationError: the file is missing, empty, or can be read by others.
    """
    named = settings.server.password_file
    return _read(named, settings) if named is not None else _kept(settings)


def known_password(settings: Settings) -> str | None:
    """The same without making one."""
    named = settings.server.password_file
    if named is not None:
        return _read(named, settings)
    return _kept(settings) if _kept_path(settings).exists() else None


def _read(path: Path, settings: Settings) -> str:
    try:
        mode, text = path.stat().st_mode, path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{settings.path}: server.password_file: {path} cannot be read: {error}"
        raise ConfigurationError(msg) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        msg = f"{settings.path}: server.password_file: others can read {path}; chmod 600 it"
        raise ConfigurationError(msg)
    password = _of_kept_file(text) or text
    if not password or not password.isprintable() or " " in password:
        msg = f"{settings.path}: server.password_file: {path} must hold one word, the password"
        raise ConfigurationError(msg)
    return password


def _of_kept_file(text: str) -> str | None:
    """The password in the file of another host's home, copied as it was."""
    try:
        return str(json.loads(text)["password"])
    except (ValueError, KeyError, TypeError):
        return None


def _kept_path(settings: Settings) -> Path:
    return settings.home / "server.password"


def _kept(settings: Settings) -> str:
    """Made once, kept for its owner alone."""
    path = _kept_path(settings)
    try:
        kept = _of_kept_file(path.read_text())
    except OSError:
        kept = None
    if kept:
        return kept
    password = secrets.token_urlsafe(24)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"password": password}, file)
    return password


def access_environment(settings: Settings) -> dict[str, str]:
    """What a client needs to reach the server: of the environment, else of the configuration, else of this host.

    The password of the configuration is given to the server of the configuration alone.

    Raises:
        ConfigurationError: the password's file cannot be used.
    """
    port = settings.server.port
    ours = {f"{url(settings, port)}/api" for url in (public_url, local_url)}
    named = os.environ.get("PREFECT_API_URL")
    found = {"PREFECT_API_URL": named or f"{public_url(settings, port)}/api"}
    login = os.environ.get("PREFECT_API_AUTH_STRING")
    if not login and found["PREFECT_API_URL"] in ours and (password := known_password(settings)):
        login = f"{USER}:{password}"
    return {**found, "PREFECT_API_AUTH_STRING": login} if login else found
