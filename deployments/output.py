"""What a command prints: one JSON document, or text for people; errors as one line on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from lifecycle.errors import LifecycleError, Misuse
from lifecycle.value import Value

DONE, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130


def print_json(value: Value | Sequence[Value] | dict[str, Any] | list[Any]) -> None:
    """Print one JSON document on standard output."""
    print(json.dumps(_plain(value), ensure_ascii=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, Value):
        return value.model_dump(mode="json")
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def say(line: str = "") -> None:
    print(line, flush=True)


def tell(line: str) -> None:
    """Progress and warnings, which never mix with a JSON document."""
    print(line, file=sys.stderr, flush=True)


def exit_code_of(error: LifecycleError) -> int:
    return MISUSED if isinstance(error, Misuse) else FAILED


def ago(seconds: float) -> str:
    """An age in the largest unit that leaves a number over one."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"
