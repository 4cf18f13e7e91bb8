"""Every promise names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_promise_names_a_test_that_exists() -> None:
    promised, _, _ = (ROOT / "docs" / "guarantees.md").read_text().partition("## Not promised")
    promises = re.split(r"^- ", promised, flags=re.MULTILINE)[1:]
    existing = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    named = [re.findall(r"`(test_\w+)`", promise) for promise in promises]

    assert len(promises) > 20
    assert all(named), "a promise without a test"
    assert [name for names in named for name in names if name not in existing] == []
