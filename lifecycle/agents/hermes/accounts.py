"""Which account a profile works on: what its limits and its login belong to."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import urlsplit

from lifecycle.agents.hermes.configuration import read_address

CREDENTIALS = ("auth.json", ".env")
"""In the profile, else in the root above `profiles/`, where Hermes looks for a login that the profile lacks."""


def account(profile: Path) -> str | None:
    """Provider, host and a short hash of where the credential comes from; None without a provider.

    Profiles that name the same key, or whose login resolves to the same file, share an account. The hash is of
    the key itself only where it stands in config.yaml, and cannot be turned back.
    """
    address = read_address(profile)
    if address is None:
        return None
    source = address.api_key or _credential_file(profile)
    digest = hashlib.sha256(f"{address.provider}\n{address.base_url}\n{source}".encode()).hexdigest()[:8]
    return "".join((address.provider, f"@{host}" if (host := _host(address.base_url)) else "", f"#{digest}"))


def _host(base_url: str) -> str:
    """Without user, password, path and query, which may hold secrets."""
    try:
        split = urlsplit(base_url)
        port = split.port
    except ValueError:
        return ""
    return f"{split.hostname}:{port}" if port else split.hostname or ""


def _credential_file(profile: Path) -> str:
    root = profile.parent.parent
    for folder in (profile, root):
        for name in CREDENTIALS:
            path = folder / name
            if path.is_file():
                return str(path.resolve())
    return str(root)
