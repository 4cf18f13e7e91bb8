"""One line of a check-up: what was looked at, how it stands, and what mends it."""

from __future__ import annotations

from typing import Literal

from lifecycle.value import Value

Verdict = Literal["ok", "advice", "trouble"]
"""*advice*: it works, but not as well as it could. *trouble*: something that Afresh does would fail."""


class Remark(Value):
    """*about* is a file, a worker or a part; *fix* is empty only where all is well."""

    about: str
    verdict: Verdict
    says: str
    fix: str = ""


def fine(about: str, says: str) -> Remark:
    return Remark(about=about, verdict="ok", says=says)


def advice(about: str, says: str, fix: str) -> Remark:
    return Remark(about=about, verdict="advice", says=says, fix=fix)


def trouble(about: str, says: str, fix: str) -> Remark:
    return Remark(about=about, verdict="trouble", says=says, fix=fix)
