"""Figures side by side: medians of runs, what they are measured against, and whether a target is met."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from typing import Literal

from lifecycle.value import Value


class Figure(Value):
    """One line of the table. *value* and *target* are in *unit*; *against* is what it was measured beside, in words."""

    name: str
    value: float
    unit: str
    target: float
    better: Literal["less", "more"]
    against: str = ""
    detail: dict[str, float] = {}

    @property
    def holds(self) -> bool:
        return self.value <= self.target if self.better == "less" else self.value >= self.target


def seconds(act: Callable[[], object], *, runs: int = 5) -> float:
    """The median time that *act* takes."""
    return statistics.median(timed(act) for _ in range(runs))


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def worked(act: Callable[[], object]) -> float:
    """The processor time of this process that *act* takes, which says more where the machine does other things too."""
    began = time.process_time()
    act()
    return time.process_time() - began


def children_worked(act: Callable[[], object]) -> float:
    """The processor time of the processes that *act* starts and waits for."""
    began = _of_children()
    act()
    return _of_children() - began


def _of_children() -> float:
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def table(figures: list[Figure]) -> str:
    """What people read: a line a figure, and under it what it was made of."""
    lines = []
    for figure in figures:
        sign = "≤" if figure.better == "less" else "≥"
        mark = "met   " if figure.holds else "MISSED"
        found = f"found {figure.value:,.4g} {figure.unit}, target {sign} {figure.target:,.4g}"
        lines.append(f"{mark}  {figure.name}: {found}  {figure.against}".rstrip())
        lines += [f"        {name}: {value:,.6g}" for name, value in figure.detail.items()]
    return "\n".join(lines)
