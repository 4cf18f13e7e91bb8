"""A case of the matrix: one fault, what it may come to, and where it is known from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.faults.play import Expectation, Play
from tests.faults.strike import Strike

Act = Callable[[Play], None]

RESUMED = ("resumed",)


def nothing(_: Play) -> None:
    """For the places of a case where nothing happens."""


def renew_and_recover(play: Play) -> None:
    """A renewal that a sweep has started, with the fault in it, and the sweeps that follow."""
    play.renew()
    play.recover()


@dataclass(frozen=True, kw_only=True)
class Case:
    """*ends*: what is right, as `resumed`, `blocked:REASON` or `parked:REASON`. *before* runs on the filled worker.

    *manners* are the scripted agent's from the start; *face* makes it the real Hermes Agent, and *model* is then
    what its model does. *third* puts the case among those that every run of the tests takes. *cannot* says why the
    case cannot be played on this machine; empty where it can.
    """

    id: str
    fault: str
    source: str
    phase: str = ""
    ends: tuple[str, ...] = RESUMED
    strike: Strike | None = None
    manners: dict[str, Any] = field(default_factory=dict)
    later_manners: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    worker: dict[str, Any] = field(default_factory=dict)
    before: Act = nothing
    play: Act = renew_and_recover
    expect: Callable[[], Expectation] = Expectation
    face: Literal["cli", "tui"] | None = None
    model: dict[str, Any] = field(default_factory=dict)
    own_server: bool = False
    third: bool = False
    cannot: Callable[[], str] = str
