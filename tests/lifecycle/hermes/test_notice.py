"""The words in which Hermes says that a turn failed, and whose account that concerns."""

from __future__ import annotations

from pathlib import Path

import pytest

from lifecycle.agents.hermes.accounts import account
from lifecycle.agents.hermes.face import _notice

ANSWER = ("╭─ ⚕ Hermes ─────────────────╮", "    {words}", "╰────────────────────────────╯")
RULE = "─" * 40


def cli(*lines: str, user: str = "carry on") -> tuple[str, ...]:
    return ("old words", RULE, f"● {user}", RULE, *lines)


def test_a_failure_below_the_last_message_is_the_notice() -> None:
    assert _notice(cli("❌ Rate limited after 3 retries — HTTP 429: slow down")).endswith("HTTP 429: slow down")


@pytest.mark.parametrize(
    "words", ["API call failed after 3 retries: HTTP 401", "❌ API failed after 3 retries", "HTTP 401: please log in"]
)
def test_o1_what_a_worker_writes_is_no_notice(words: str) -> None:
    assert _notice(cli(*(line.format(words=words) for line in ANSWER))) == ""
    assert _notice((" ❯ carry on", f" ┊  I saw that {words}")) == ""


def test_o1_what_a_person_writes_is_no_notice() -> None:
    assert _notice(cli(user="❌ API failed after 3 retries")) == ""
    assert _notice((" ❯ API call failed after 3 retries: HTTP 401",)) == ""


def test_a_failure_before_the_last_message_is_over() -> None:
    assert _notice(("❌ API failed after 3 retries — HTTP 500: no", *cli("⚕ working"))) == ""


def test_words_between_two_tools_do_not_hide_the_failure_behind_them() -> None:
    said = [line.format(words="Now the second file.") for line in ANSWER]
    assert _notice(cli(*said, "  ┊ 💻 $ ls  0.1s", "❌ API failed after 3 retries — HTTP 500: no")) != ""


@pytest.mark.parametrize("lead", [" ┊  ", "     "])
def test_a_notice_of_several_rows_is_read_whole(lead: str) -> None:
    rows = (" ❯ carry on", f"{lead}API call failed after 3 retries: HTTP 429: usage limit,", "    resets 10:30pm (UTC)")
    assert _notice(rows) == "API call failed after 3 retries: HTTP 429: usage limit, resets 10:30pm (UTC)"


# Accounts.


def profile(root: Path, name: str, config: str) -> Path:
    folder = root / "profiles" / name
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config)
    return folder


NOUS = "model: {provider: nous, default: m}\n"


def test_profiles_that_use_the_roots_login_share_its_account(tmp_path: Path) -> None:
    first, second = profile(tmp_path, "a", NOUS), profile(tmp_path, "b", NOUS)
    (tmp_path / "auth.json").write_text("{}")

    assert account(first) == account(second)
    (second / "auth.json").write_text("{}")
    assert account(first) != account(second)


def test_profiles_whose_logins_are_one_file_share_its_account(tmp_path: Path) -> None:
    first, second = profile(tmp_path, "a", NOUS), profile(tmp_path, "b", NOUS)
    (first / "auth.json").write_text("{}")
    (second / "auth.json").symlink_to(first / "auth.json")

    assert account(first) == account(second)


def test_another_provider_or_key_is_another_account(tmp_path: Path) -> None:
    keyed = (
        "model: {{provider: custom, base_url: 'https://user:secret@llm.example:8443/v1?key=secret', api_key: {key}}}\n"
    )
    names = [
        account(profile(tmp_path, name, text))
        for name, text in {"a": keyed.format(key="k1"), "b": keyed.format(key="k2"), "c": NOUS}.items()
    ]

    assert len(set(names)) == 3
    assert all(name is not None and "secret" not in name and "k1" not in name for name in names)


@pytest.mark.parametrize("config", ["", "model: just-a-name\n", ": broken ["])
def test_nobody_knows_the_account_of_a_profile_without_a_provider(tmp_path: Path, config: str) -> None:
    assert account(profile(tmp_path, "a", config)) is None
