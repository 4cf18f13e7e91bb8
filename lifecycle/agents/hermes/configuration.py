"""The model's window and the point where Hermes compacts by itself, from a profile's own files."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from pydantic import Field

from lifecycle.agents.hermes.config_file import ConfigBroken, read_table
from lifecycle.value import Value

log = logging.getLogger(__name__)

SMALL_WINDOW = 512_000
SMALL_WINDOW_SHARE = 0.75
MOST_TOKENS = 10**12
"""No window is larger, and what is computed of it stays a number."""

DEFAULT_SHARE = 0.50
LEAST_POINT = 64_000
SHARE_OF_TINY = 0.85
"""Hermes 0.19, agent/context_compressor.py and model_metadata.MINIMUM_CONTEXT_LENGTH."""


class ModelSetup(Value):
    """What the profile says of its model. *window* is None where nobody wrote it down.

    *share* is `compression.threshold`, as configured.
    """

    model: str | None = None
    window: int | None = None
    max_tokens: int | None = None
    compacts: bool = True
    share: float = DEFAULT_SHARE

    def usable(self, *, window: int | None, max_tokens: int | None) -> int | None:
        """The window less what is reserved for output; *window* and *max_tokens* are better known ones, if any."""
        whole = self.window or window
        if whole is None:
            return None
        left = whole - (max_tokens or self.max_tokens or 0)
        return left if left > 0 else whole

    def compaction_point(self, usable: int | None, *, window: int | None, logged: int | None) -> int | None:
        """Where Hermes compacts, in tokens; None where it never does or nobody knows. What it *logged* wins."""
        if not self.compacts:
            return None
        if logged is not None or usable is None:
            return logged
        whole = self.window or window or usable
        share = max(self.share, SMALL_WINDOW_SHARE) if whole < SMALL_WINDOW else self.share
        point = max(int(usable * share), LEAST_POINT)
        if point >= usable:
            return max(1, min(int(usable * SHARE_OF_TINY), usable - 1))
        return point


def read_setup(profile: Path) -> ModelSetup:
    """Read config.yaml, and where it names no window the one that Hermes found and cached.

    A missing or broken file is no error: Hermes then works with its defaults, and the window is unknown.
    """
    config = _load(profile / "config.yaml")
    model = config.get("model")
    settings = model if isinstance(model, dict) else {"default": model}
    name, address = _text(settings.get("default")), _text(settings.get("base_url"))
    compression = _table(config.get("compression"))
    share = compression.get("threshold", DEFAULT_SHARE)
    return ModelSetup(
        model=name,
        window=_count(settings.get("context_length"))
        or _custom(config.get("custom_providers"), name, address)
        or _cached(profile, name, address),
        max_tokens=_count(settings.get("max_tokens")) or _count(config.get("max_tokens")),
        # Hermes's own test.
        compacts=str(compression.get("enabled", True)).lower() in {"true", "1", "yes"},
        share=float(share) if isinstance(share, int | float) and 0 < share <= 1 else DEFAULT_SHARE,
    )


class Address(Value):
    """Whom the profile asks, and with which key where the configuration itself holds it. The key goes nowhere else."""

    provider: str
    base_url: str = ""
    api_key: str = Field("", repr=False)


def read_address(profile: Path) -> Address | None:
    """Whom the profile's model is asked from; None where config.yaml names neither provider nor address."""
    model = _table(_load(profile / "config.yaml").get("model"))
    provider, base_url = _text(model.get("provider")), (_text(model.get("base_url")) or "").rstrip("/")
    if not provider and not base_url:
        return None
    return Address(provider=provider or "custom", base_url=base_url, api_key=_text(model.get("api_key")) or "")


def _custom(providers: object, model: str | None, address: str | None) -> int | None:
    if not model or not address:
        return None
    for entry in providers if isinstance(providers, list) else []:
        provider = _table(entry)
        if (_text(provider.get("base_url")) or "").rstrip("/") == address.rstrip("/"):
            return _count(_table(_table(provider.get("models")).get(model)).get("context_length"))
    return None


def _cached(profile: Path, model: str | None, address: str | None) -> int | None:
    if not model:
        return None
    found = _table(_load(profile / "context_length_cache.yaml").get("context_lengths"))
    return _count(found.get(f"{model}@{(address or '').rstrip('/')}"))


def _load(path: Path) -> dict[str, Any]:
    try:
        return read_table(path)
    except ConfigBroken as error:
        if path.exists():
            log.warning("%s, so the window is unknown", error.detail)
        return {}


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    """A positive whole number, also written as text; as Hermes, anything else counts as not given, and so does more
    than `MOST_TOKENS`.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        number = int(value)
    except ValueError:
        return None
    return number if 0 < number <= MOST_TOKENS else None
