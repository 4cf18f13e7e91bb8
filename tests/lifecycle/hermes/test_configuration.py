from __future__ import annotations

from pathlib import Path

import pytest

from lifecycle.agents.hermes.config_file import read_config
from lifecycle.agents.hermes.configuration import ModelSetup, read_setup
from tests.lifecycle.hermes.hermes_profile import MAIN, Profile, line, read


@pytest.mark.parametrize(
    ("window", "max_tokens", "share", "point"),
    [
        (200_000, None, 0.50, 150_000),  # W-7: three quarters below 512K, whatever is configured lower
        (200_000, None, 0.90, 180_000),
        (511_999, None, 0.50, 383_999),
        (512_000, None, 0.50, 256_000),
        (1_000_000, None, 0.50, 500_000),
        (200_000, 65_536, 0.50, 100_848),
        (64_000, None, 0.50, 54_400),  # the floor would reach the window
        (80_000, None, 0.50, 64_000),
        (128_000, 64_000, 0.50, 54_400),
        (30_000, None, 0.50, 25_500),
        (32_000, 64_000, 0.50, 27_200),  # a reservation larger than the window reserves nothing
    ],
)
def test_the_compaction_point_is_hermess_own(window: int, max_tokens: int | None, share: float, point: int) -> None:
    setup = ModelSetup(window=window, max_tokens=max_tokens, share=share)
    usable = setup.usable(window=None, max_tokens=None)
    assert setup.compaction_point(usable, window=None, logged=None) == point


def test_a_worker_that_never_compacts_has_no_point_even_if_one_was_logged() -> None:
    setup = ModelSetup(window=200_000, compacts=False)
    assert setup.compaction_point(200_000, window=None, logged=150_000) is None


def configured(folder: Path, text: str) -> ModelSetup:
    (folder / "config.yaml").write_text(text)
    return read_setup(folder)


def test_a_configuration_is_read_as_hermes_reads_it(tmp_path: Path) -> None:
    setup = configured(
        tmp_path,
        "model: {default: big, context_length: 200_000, max_tokens: '8192'}\n"
        "compression: {enabled: off, threshold: 0.9}\n",
    )
    assert setup == ModelSetup(model="big", window=200_000, max_tokens=8192, compacts=False, share=0.9)


def test_a_key_that_stands_there_twice_breaks_nothing(tmp_path: Path) -> None:
    assert configured(tmp_path, "a: 1\na: 2\nmodel: {context_length: 200000}").window == 200_000


@pytest.mark.parametrize("word", ["true", "yes", "on", "1", "'True'"])
def test_compaction_is_on_by_each_of_hermess_words(tmp_path: Path, word: str) -> None:
    assert configured(tmp_path, f"compression: {{enabled: {word}}}").compacts


@pytest.mark.parametrize("word", ["false", "no", "off", "0", "never"])
def test_compaction_is_off_by_any_other(tmp_path: Path, word: str) -> None:
    assert not configured(tmp_path, f"compression: {{enabled: {word}}}").compacts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a\n- b",
        "model: [unclosed",
        "model: {context_length: 200K}",
        "model: {context_length: true}",
        "\x00",
        "a: &a [*a]",
        "just words",
    ],
)
def test_a_broken_configuration_leaves_the_window_unknown(tmp_path: Path, text: str) -> None:
    assert configured(tmp_path, text).window is None


def test_p9_a_reading_goes_on_without_a_configuration(tmp_path: Path) -> None:
    profile = Profile(tmp_path)
    profile.session()
    profile.say("user", "hi", 1)
    for text in (None, "model: [unclosed"):
        if text:
            (tmp_path / "config.yaml").write_text(text)
        reading = read(tmp_path)
        assert (reading.window, reading.compaction_point, reading.error) == (None, None, None)
        assert reading.tokens is not None


def test_a_configuration_in_another_encoding_or_a_folder_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(b"model: {default: \xff\xfe}")
    assert read_setup(tmp_path) == ModelSetup()
    (tmp_path / "config.yaml").unlink()
    (tmp_path / "config.yaml").mkdir()
    assert read_setup(tmp_path) == ModelSetup()


def test_a_model_that_is_only_a_name_is_understood(tmp_path: Path) -> None:
    assert configured(tmp_path, "model: some-model\nmax_tokens: 4096") == ModelSetup(
        model="some-model", max_tokens=4096
    )


def test_a_custom_providers_window_is_found_by_its_address(tmp_path: Path) -> None:
    setup = configured(
        tmp_path,
        "model: {default: m, base_url: 'http://host/v1/'}\n"
        "custom_providers:\n- base_url: http://other/v1\n  models: {m: {context_length: 1}}\n"
        "- base_url: http://host/v1\n  models: {m: {context_length: 131072}}\n",
    )
    assert setup.window == 131_072


def test_the_window_that_hermes_found_and_cached_is_used_where_none_is_configured(tmp_path: Path) -> None:
    (tmp_path / "context_length_cache.yaml").write_text("context_lengths:\n  m@http://host/v1: 262144\n")
    assert configured(tmp_path, "model: {default: m, base_url: 'http://host/v1/'}").window == 262_144
    assert configured(tmp_path, "model: {default: m, base_url: 'http://host/v1', context_length: 9}").window == 9


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    made = Profile(tmp_path)
    (tmp_path / "config.yaml").write_text("model: {default: m, context_length: 200000}")
    made.session()
    made.say("user", "hi", 1)
    return made


INIT = (
    "agent.context_compressor: Context compressor initialized: model=m context_length=205000 threshold=123000 (60%) "
    "target_ratio=20% tail_budget=24600 provider=custom base_url=http://host/v1"
)
PREFLIGHT = "agent.turn_context: Preflight compression: ~140,000 tokens >= 123,000 threshold (model m, ctx 205,000)"
BEFORE_A_CALL = (
    "agent.conversation_loop: Pre-API compression: ~140,000 request tokens >= 123,000 threshold "
    "(context=205,000, attempt=1/3)"
)
LIMIT = "agent.context_compressor: Model context limit: 205000 tokens (60% = 123000)"
TRIGGERED = "agent.context_compressor: Context compression triggered (140000 tokens >= 123000 threshold)"
DEFERRED = (
    "agent.turn_context: Skipping preflight compression: rough estimate ~140,000 >= 123,000, "
    "but last real provider prompt was 90,000 after compression"
)
LOWERED = (
    "agent.conversation_compression: Auxiliary compression model small has 123000 token context, "
    "below the main model's compression threshold of 150000 tokens — "
    "auto-lowered session threshold to 123000 to keep compression working."
)


@pytest.mark.parametrize("text", [INIT, PREFLIGHT, BEFORE_A_CALL, LIMIT, TRIGGERED, DEFERRED, LOWERED])
def test_p8_the_point_that_hermes_logged_wins(profile: Profile, text: str) -> None:
    assert read(profile.folder).compaction_point == 150_000
    profile.log(line(2, text, tag=MAIN))
    assert read(profile.folder).compaction_point == 123_000


def test_a_delegates_point_is_not_the_workers(profile: Profile) -> None:
    profile.log(line(2, PREFLIGHT, tag="20261129_101500_dddddd"))
    assert read(profile.folder).compaction_point == 150_000


def test_a_point_of_an_earlier_process_is_forgotten(profile: Profile) -> None:
    profile.log(
        line(2, PREFLIGHT, tag=MAIN), line(3, "hermes_cli.plugins: Plugin discovery complete: 53 found, 46 enabled")
    )
    assert read(profile.folder).compaction_point == 150_000


def test_the_logged_window_stands_in_for_one_that_nobody_configured(profile: Profile) -> None:
    (profile.folder / "config.yaml").unlink()
    profile.log(line(2, PREFLIGHT, tag=MAIN))
    assert (read(profile.folder).window, read(profile.folder).compaction_point) == (205_000, 123_000)


def test_what_the_session_really_reserves_for_output_is_taken_off_the_window(profile: Profile) -> None:
    profile.run("UPDATE sessions SET model_config = '{\"max_tokens\": 40000}'")
    reading = read(profile.folder)
    assert (reading.window, reading.compaction_point) == (160_000, 120_000)


def test_of_a_repeated_key_the_last_one_holds_as_for_the_agent(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("max_tokens: 1000\nmodel: {default: a}\nmax_tokens: 2000\n")

    assert read_setup(tmp_path).max_tokens == 2000


def test_a_configuration_is_read_again_when_it_changes_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("max_tokens: 1000\n")
    first = read_config(tmp_path)

    assert read_config(tmp_path) is first
    path.write_text("max_tokens: 2000\n")
    assert read_config(tmp_path) == {"max_tokens": 2000}
