"""A profile's config.yaml and the other YAML files of Hermes, read as Hermes reads them: with PyYAML.

PyYAML speaks YAML 1.1, where `off` is false, and of a repeated key the last one holds.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from lifecycle.errors import LifecycleError

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml where it was built in: a large configuration takes 2 ms instead of 27."""


class ConfigBroken(LifecycleError):
    """config.yaml is missing or cannot be read; Hermes then starts its setup wizard."""


def read_config(profile: Path) -> dict[str, Any]:
    """The profile's config.yaml. Do not change what is returned: it is kept as long as the file stays as it is.

    Raises:
        ConfigBroken: it is missing, cannot be read, or holds no table.
    """
    return read_table(profile / "config.yaml")


def read_table(path: Path) -> dict[str, Any]:
    """The table that *path* holds, kept as long as the file's stamp stays the same.

    Raises:
        ConfigBroken
    """
    try:
        found = path.stat()
        table = _parsed(path, (found.st_ino, found.st_mtime_ns, found.st_size))
    except FileNotFoundError as error:
        msg = f"{path} is missing"
        raise ConfigBroken(msg) from error
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        msg = f"{path} cannot be read: {' '.join(str(error).split())[:200]}"
        raise ConfigBroken(msg) from error
    if not isinstance(table, dict):
        msg = f"{path} holds no settings"
        raise ConfigBroken(msg)
    return table


@lru_cache(maxsize=2048)
def _parsed(path: Path, _stamp: tuple[int, int, int]) -> object:
    return yaml.load(path.read_bytes().decode(), Loader=_Loader)  # noqa: S506 - a safe loader, which the rule cannot see
