from __future__ import annotations

from pathlib import Path

import pytest

from lifecycle.errors import ConfigurationError
from lifecycle.settings import Settings, load_settings


def settings_of(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "afresh.toml"
    path.write_text(text)
    path.chmod(0o600)
    return load_settings(path, {"HOME": str(tmp_path), "AFRESH_HOME": str(tmp_path)})


def test_the_budgets_of_pack_and_synthesis_can_be_set(tmp_path: Path) -> None:
    found = settings_of(tmp_path, "[pack]\ntokens = 3_000\norders = 0.3\n[synthesis]\ntokens = 2_000\n")
    assert (found.pack.tokens, found.pack.orders, found.synthesis.tokens) == (3_000, 0.3, 2_000)
    assert settings_of(tmp_path, "").pack.tokens == settings_of(tmp_path, "").synthesis.tokens == 6_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[pack]\ntokens = 100\n", "pack.tokens"),
        ("[pack]\norders = 0.5\nhits = 0.4\n", "the shares come to 1.10, and the handoff needs 0.30"),
        ("[synthesis]\ntokens = 10\n", "synthesis.tokens"),
        ("[pack]\nlessons = 0.1\n", "unknown key 'pack.lessons'"),
    ],
)
def test_a_budget_that_cannot_hold_what_must_cross_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        settings_of(tmp_path, text)
