"""What people see while a renewal runs: each step and what it waits for, with the seconds since the beginning."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from deployments.output import tell

STEPS = "lifecycle.host"
"""The logger of `Host.progress`."""


@contextmanager
def progress_shown() -> Iterator[None]:
    """Inside, steps are told on standard error.

    Prefect's lines on runs, which repeat them, and the notices, which the command's own result repeats, are kept off
    the terminal, unless it shows debug logs. They still go where Prefect and the operator want them.
    """
    told, steps, domain = _Told(), logging.getLogger(STEPS), logging.getLogger("lifecycle")
    level = domain.level
    # Only a level of its own lets these lines pass to the run's log in the UI as well.
    domain.setLevel(min(logging.INFO, level or logging.INFO))
    steps.addHandler(told)
    quieted = [handler for handler in logging.getLogger().handlers if handler.level > logging.DEBUG]
    for handler in quieted:
        handler.addFilter(_is_news)
    try:
        yield
    finally:
        for handler in quieted:
            handler.removeFilter(_is_news)
        steps.removeHandler(told)
        domain.setLevel(level)


class _Told(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self._began = time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        tell(f"{time.monotonic() - self._began:7.1f} s  {record.getMessage()}")


def _is_news(record: logging.LogRecord) -> bool:
    if record.name.startswith(("prefect.flow_runs", "prefect.task_runs")):
        return record.levelno >= logging.CRITICAL
    return record.name != "lifecycle.notifying" or record.levelno > logging.WARNING
