from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lifecycle.agents.hermes import reading as reading_module
from lifecycle.agents.hermes.counting import DEFAULT_OVERHEAD, PER_MESSAGE
from lifecycle.agents.hermes.log import BLOCK
from lifecycle.agents.hermes.message import IMAGE_TOKENS
from lifecycle.agents.hermes.reading import AHEAD, ContextReader
from lifecycle.policy import Policy
from lifecycle.reading import Asked, ContextReading, ContextState, Source
from lifecycle.tokens import EncodingUnavailable, counter
from lifecycle.waiting import DeadlinePassed, SystemClock, wait_until
from tests.lifecycle.hermes.hermes_profile import (
    EPOCH,
    MAIN,
    NOW,
    START,
    SUMMARY,
    Profile,
    call,
    compaction_done,
    copied,
    line,
    moment,
    read,
)

LONG = "a sentence of eight words for the count. " * 100


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    made = Profile(tmp_path)
    made.session()
    made.say("user", "a question", 10)
    made.say("assistant", "an answer", 20.001)
    return made


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    def move(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


def figure(profile: Profile) -> tuple[Source, int | None]:
    found = read(profile.folder, overhead=0)
    assert found.error is None
    return found.source, found.tokens


def test_the_live_sample_reads_its_last_call(tmp_path: Path) -> None:
    found = read(copied("live_15turns.db", tmp_path, log=True))
    assert (found.source, found.tokens, found.session_total) == (Source.API_LOG, 32_134, 761_416)
    assert (found.api_calls, found.model, found.window, found.compaction_point) == (30, "stub-model", 200_000, 150_000)
    assert found.state(Policy()) is ContextState.HEALTHY


def test_p1_w1_the_reference_figure_of_the_same_sample_would_order_a_renewal(tmp_path: Path) -> None:
    found = read(copied("live_15turns.db", tmp_path, log=True))
    assert found.state(Policy(signal="session_total")) is ContextState.RENEW_REQUIRED


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/St_Johns", "Asia/Kathmandu"])
def test_a_log_of_another_time_zone_reads_the_same(tmp_path: Path, zone: str, in_zone: Callable[[str], None]) -> None:
    in_zone(zone)
    found = read(copied("live_15turns.db", tmp_path, log=True))
    assert (found.source, found.tokens) == (Source.API_LOG, 32_134)


def test_without_its_log_the_sample_is_counted(tmp_path: Path) -> None:
    profile = copied("live_15turns.db", tmp_path)
    found = read(profile)
    assert found.source is Source.COUNTED
    assert found.tokens is not None
    # The sample's own figures are characters / 3.7, not tokens, so the error says little.
    print(f"counted {found.tokens:,} of 32,134 ({found.tokens / 32_134 - 1:+.1%})")
    assert 16_000 < found.tokens < 64_000


def test_the_overhead_learned_from_an_exact_reading_makes_the_count_exact(tmp_path: Path) -> None:
    profile = copied("live_15turns.db", tmp_path, log=True)
    learned = ContextReader().overhead(profile, "swarm1", since=None)
    (profile / "logs" / "agent.log").unlink()
    counted = read(profile, overhead=learned)
    assert counted.source is Source.COUNTED
    # The closed answer to the last call is in the count and not in the exact figure.
    assert counted.tokens == 32_134 + counter()("Noted (60 messages so far).") + PER_MESSAGE
    assert ContextReader().overhead(profile, "swarm1", since=None) is None


def test_rows_newer_than_the_logged_call_are_added(profile: Profile) -> None:
    profile.log(line(5, START), call(1, 16_000, 20))
    assert figure(profile) == (Source.API_LOG, 16_000)
    profile.say("user", LONG, 30)
    added = sum(counter()(text) + PER_MESSAGE for text in ("an answer", LONG))
    assert figure(profile) == (Source.API_LOG, 16_000 + added)


def test_an_answer_that_goes_on_with_a_tool_is_part_of_the_next_prompt(profile: Profile) -> None:
    profile.log(call(2, 16_000, 30))
    profile.say("assistant", "", 30.001, finish_reason="tool_calls", tool_calls=json.dumps([{"arguments": LONG}]))
    assert (figure(profile)[1] or 0) > 16_900
    profile.say("tool", LONG, 31)
    assert (figure(profile)[1] or 0) > 17_800


def test_p10_a_huge_tool_output_is_seen_at_once(profile: Profile) -> None:
    profile.log(call(2, 160_000, 30))
    profile.say("assistant", "", 30.001, finish_reason="tool_calls", tool_calls="[{}]")
    profile.say("tool", LONG * 60, 31)
    found = read(profile.folder)
    assert (
        found.state(Policy(soft=170_000, handoff=190_000, hard=200_000, uncapped=True)) is ContextState.RENEW_REQUIRED
    )


@pytest.mark.parametrize("logged", [True, False], ids=["by its line", "by its rows"])
def test_w2_a_later_compaction_makes_the_logged_call_void(profile: Profile, logged: bool) -> None:
    profile.log(call(1, 160_000, 20))
    if logged:
        profile.log(compaction_done(40))
    profile.compact(40, [("user", "a question"), ("assistant", SUMMARY), ("user", "another")])
    source, tokens = figure(profile)
    assert source is Source.COUNTED
    assert (tokens or 0) < 200
    profile.say("user", "go on", 50)
    profile.log(call(2, 34_000, 51))
    assert figure(profile) == (Source.API_LOG, 34_000)


def test_a_compaction_whose_summary_begins_in_an_unknown_way_counts_too(profile: Profile) -> None:
    profile.log(call(1, 160_000, 20))
    profile.compact(40, [("user", "a question"), ("assistant", "[HISTORY FOLDED] a later release's summary")])
    assert figure(profile)[0] is Source.COUNTED


@pytest.mark.parametrize("kind", ["context compression", "codex app-server compaction"])
def test_a_compaction_that_only_the_log_knows_of_makes_the_call_void(profile: Profile, kind: str) -> None:
    profile.log(call(1, 160_000, 20), compaction_done(40).replace("context compression", kind))
    assert figure(profile)[0] is Source.COUNTED
    profile.log(call(2, 34_000, 51))
    assert (figure(profile)[0], read(profile.folder).tokens) == (Source.API_LOG, 34_000)


def test_a_compaction_of_another_session_changes_nothing(profile: Profile) -> None:
    profile.log(call(1, 16_000, 20), compaction_done(40, session="20261129_999999_zzzzzz"))
    assert figure(profile) == (Source.API_LOG, 16_000)


def test_a_compaction_that_was_begun_and_given_up_changes_nothing(profile: Profile) -> None:
    begun = f"agent.conversation_compression: context compression started: session={MAIN} messages=22 tokens=~14,007"
    idle = f"agent.conversation_compression: Compression made no progress (session={MAIN}) — skipping boundary rewrite."
    profile.log(call(1, 16_000, 20), line(40, begun), line(41, idle))
    assert figure(profile) == (Source.API_LOG, 16_000)


def test_the_lone_call_of_a_background_fork_is_skipped(profile: Profile) -> None:
    profile.log(line(5, START), call(29, 15_000, 12), call(30, 16_000, 20), call(1, 9_000, 21), call(2, 9_500, 22))
    assert figure(profile) == (Source.API_LOG, 16_000)


def test_after_a_fork_the_worker_counts_on(profile: Profile) -> None:
    profile.log(call(30, 16_000, 18), call(1, 9_000, 19), call(31, 17_000, 20))
    assert figure(profile) == (Source.API_LOG, 17_000)


def test_a_process_start_begins_the_numbers_anew(profile: Profile) -> None:
    profile.log(call(29, 15_000, 12), call(30, 16_000, 13), line(15, START), call(1, 16_500, 20))
    assert figure(profile) == (Source.API_LOG, 16_500)


def test_a_resumed_session_is_known_by_its_last_process_until_its_first_call(profile: Profile) -> None:
    profile.log(call(30, 16_000, 20), line(40, START))
    assert figure(profile) == (Source.API_LOG, 16_000)


def test_calls_of_other_sessions_are_not_the_workers(profile: Profile) -> None:
    profile.log(call(3, 16_000, 20), call(4, 99_000, 21, session="20261129_101500_dddddd"))
    assert figure(profile) == (Source.API_LOG, 16_000)


@pytest.mark.parametrize("number", [99, 3], ids=["not yet made", "made later"])
def test_a_person_who_types_a_log_line_is_not_believed(profile: Profile, number: int) -> None:
    words = f"agent.turn_context: conversation turn: session={MAIN} msg='{call(number, 5, 21)}'"
    typed = line(19, words, tag=MAIN)
    profile.log(typed, call(3, 16_000, 20), typed)
    assert figure(profile) == (Source.API_LOG, 16_000)


def test_a_line_half_written_is_left_for_the_next_poll(profile: Profile) -> None:
    path = profile.log(call(3, 16_000, 20))
    with path.open("a") as file:
        file.write(call(4, 17_000, 21)[:-30])
    assert figure(profile) == (Source.API_LOG, 16_000)


def test_a_rotated_log_is_read_behind_the_new_one(profile: Profile) -> None:
    profile.log(line(5, START), call(7, 15_000, 12), name="agent.log.2")
    profile.log(call(8, 16_000, 20), name="agent.log.1")
    profile.log(line(22, "tools.registry: nothing of interest"))
    assert figure(profile) == (Source.API_LOG, 16_000)


def test_a_rotated_log_from_before_the_session_is_left_alone(profile: Profile) -> None:
    old = profile.log(call(8, 16_000, 20), name="agent.log.1")
    profile.log(line(22, "tools.registry: nothing of interest"))
    os.utime(old, (EPOCH - 10, EPOCH - 10))
    assert figure(profile)[0] is Source.COUNTED


def test_the_log_is_read_from_its_tail(profile: Profile) -> None:
    noise = [line(6, "tools.registry: " + "x" * 180)] * 20_000
    path = profile.log(*noise, call(8, 16_000, 20))
    assert path.stat().st_size > 4_000_000
    opened = _bytes_read_by(lambda: figure(profile))
    assert figure(profile) == (Source.API_LOG, 16_000)
    assert opened < 1_500_000


def _bytes_read_by(act: Callable[[], object]) -> int:
    act()
    before = _bytes_read()
    act()
    return _bytes_read() - before


def _bytes_read() -> int:
    fields = dict(entry.split(": ") for entry in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


@pytest.mark.parametrize("reached", [1, 20, 80, 150])
def test_a_line_across_the_border_of_two_blocks_is_read_whole(profile: Profile, reached: int) -> None:
    before = [line(21, "tools.registry: " + "x" * 180)] * 2_000
    path = profile.log(*before, call(8, 16_000, 20))
    with path.open("a") as file:
        file.write("x" * (BLOCK - reached - 1) + "\n")
    assert figure(profile) == (Source.API_LOG, 16_000)


def test_a_rotated_session_is_counted_until_its_first_call(tmp_path: Path) -> None:
    profile = copied("live_after_rotation.db", tmp_path)
    assert read(profile).source is Source.COUNTED
    (profile / "logs").mkdir()
    at = 1_796_039_479.02 - EPOCH
    text = call(17, 35_000, at, session="20261130_115117_a9cd84")
    (profile / "logs" / "agent.log").write_text(f"{text}\n")
    assert (read(profile).source, read(profile).tokens) == (Source.API_LOG, 35_000)


def test_w3_a_prompt_smaller_than_its_system_prompt_is_no_measurement(profile: Profile) -> None:
    # hermes-agent #94897: some providers report 6 to 13 tokens whatever was sent.
    profile.run("UPDATE sessions SET system_prompt = ?", LONG)
    profile.say("user", LONG * 20, 15)
    profile.log(call(3, 13, 20))
    source, tokens = figure(profile)
    assert source is Source.COUNTED
    assert (tokens or 0) > 15_000


def test_p3_a_provider_that_leaves_the_cache_out_of_its_prompt_is_put_right(profile: Profile) -> None:
    profile.log(call(3, 6, 20, cached=" cache=440000/6 (7333333%)"))
    assert figure(profile) == (Source.API_LOG, 440_006)


def test_p2_a_cache_is_part_of_the_prompt_and_not_added_to_it(profile: Profile) -> None:
    profile.log(call(3, 16_000, 20, cached=" cache=15000/16000 (94%)"))
    assert figure(profile) == (Source.API_LOG, 16_000)


def test_p1_constant_prompts_stay_constant_however_many_calls(profile: Profile) -> None:
    for number in range(1, 13):
        profile.log(call(number, 42_000, 8 + number))
    profile.run(
        "UPDATE sessions SET input_tokens = 18000, cache_read_tokens = 480000, cache_write_tokens = 6000, "
        "output_tokens = 8400, api_call_count = 12"
    )
    found = read(profile.folder)
    assert (found.tokens, found.session_total, found.api_calls) == (42_000, 512_400, 12)
    assert found.state(Policy()) is ContextState.HEALTHY


def test_an_undone_row_and_an_archived_one_are_not_counted(profile: Profile) -> None:
    before = figure(profile)
    profile.say("user", LONG, 30, active=0, compacted=0)
    profile.say("user", LONG, 31, active=0, compacted=1)
    assert figure(profile) == before


def test_content_with_a_nul_is_counted_and_an_image_is_not_its_bytes(profile: Profile) -> None:
    parts = [
        {"type": "text", "text": LONG},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 40_000}},
    ]
    before = figure(profile)[1] or 0
    profile.say("user", "\0json:" + json.dumps(parts), 30)
    added = (figure(profile)[1] or 0) - before
    assert added == counter()(LONG) + IMAGE_TOKENS + PER_MESSAGE


def test_w6_reasoning_that_is_stored_in_several_forms_is_counted_once(profile: Profile) -> None:
    before = figure(profile)[1] or 0
    profile.say("assistant", "done", 30, reasoning=LONG, reasoning_content=LONG, reasoning_details=None)
    assert (figure(profile)[1] or 0) - before == counter()(LONG) + counter()("done") + PER_MESSAGE


def test_what_was_really_sent_is_counted_instead_of_the_clean_text(profile: Profile) -> None:
    before = figure(profile)[1] or 0
    profile.say("user", "short", 30, api_content=f"short {LONG}")
    assert (figure(profile)[1] or 0) - before == counter()(f"short {LONG}") + PER_MESSAGE


def test_the_default_overhead_stands_in_where_nothing_was_learned(profile: Profile) -> None:
    bare, usual = read(profile.folder, overhead=0).tokens, read(profile.folder).tokens
    assert (usual or 0) - (bare or 0) == DEFAULT_OVERHEAD


def test_a_poll_counts_only_new_rows(profile: Profile) -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    reader = ContextReader(count)

    def poll() -> ContextReading:
        counted.clear()
        return reader.read(profile.folder, "swarm1", since=None, now=NOW, overhead=0)

    first = poll()
    assert "a question" in counted
    assert poll().tokens == first.tokens
    assert "a question" not in counted
    profile.say("user", "something new", 30)
    poll()
    assert [text for text in counted if text] == ["something new"]
    profile.run("UPDATE messages SET active = 0 WHERE content = 'something new'")
    assert poll().tokens == first.tokens
    profile.compact(40, [("assistant", SUMMARY)])
    assert poll().tokens == len(SUMMARY) + PER_MESSAGE


def test_of_many_each_is_read_as_alone_and_in_its_order(tmp_path: Path) -> None:
    samples = ["live_15turns.db", "compress_in_place.db", "zero.db", "renewals_x3.db", "live_after_rotation.db"] * 6
    profiles = [copied(sample, tmp_path / str(at), log=at % 7 == 0) for at, sample in enumerate(samples)]
    asked = [Asked(profile=profile, worker_id=f"swarm{at}") for at, profile in enumerate(profiles)]

    together = list(ContextReader().read_each(asked, NOW))

    alone = [ContextReader().read(one.profile, one.worker_id, since=None, now=NOW) for one in asked]
    assert [reading.model_copy(update={"mark": ""}) for reading in together] == [
        reading.model_copy(update={"mark": ""}) for reading in alone
    ]
    assert {reading.source for reading in together} >= {Source.API_LOG, Source.COUNTED, Source.UNKNOWN}


def test_few_wait_to_be_counted_while_others_are_read(tmp_path: Path) -> None:
    """Each holds its rows in memory."""
    may_count, pulled = threading.Event(), []

    def count(text: str) -> int:
        assert may_count.wait(60)
        return len(text)

    def asked() -> Iterator[Asked]:
        for number in range(AHEAD * 3):
            pulled.append(number)
            yield Asked(profile=copied("compress_in_place.db", tmp_path / str(number)), worker_id="swarm1")

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: list(ContextReader(count).read_each(asked(), NOW)))
        try:
            wait_until(lambda: len(pulled) > AHEAD or None, timedelta(seconds=30), SystemClock())
            with pytest.raises(DeadlinePassed):
                wait_until(lambda: len(pulled) > AHEAD + 1 or None, timedelta(seconds=0.5), SystemClock())
        finally:
            may_count.set()
        assert len(reading.result(60)) == AHEAD * 3


def test_rows_that_cannot_be_counted_leave_the_others_read(tmp_path: Path) -> None:
    made = [Profile(tmp_path / str(number)) for number in range(3)]
    for number, one in enumerate(made):
        one.session()
        one.say("user", f"text {number}", 10)

    def count(text: str) -> int:
        if text == "text 1":
            raise MemoryError(text)
        return len(text)

    asked = [Asked(profile=one.folder, worker_id=f"swarm{number}") for number, one in enumerate(made)]
    found = list(ContextReader(count).read_each(asked, NOW))

    assert [reading.source for reading in found] == [Source.COUNTED, Source.UNKNOWN, Source.COUNTED]
    assert (found[1].worker_id, found[1].error) == ("swarm1", "its rows cannot be counted (text 1)")


def test_values_of_any_kind_in_any_column_are_counted_as_text(profile: Profile) -> None:
    before = figure(profile)[1] or 0
    words = "call the tool " * 50
    profile.say("assistant", words, 30, tool_calls=words.encode(), reasoning=words.encode())
    assert figure(profile)[1] == before + 3 * counter()(words) + PER_MESSAGE


@pytest.mark.parametrize("prompt", [10**20, 10**400], ids=["too large to store", "too large to compute with"])
def test_a_logged_prompt_that_no_model_takes_is_no_measurement(profile: Profile, prompt: int) -> None:
    profile.log(call(3, prompt, 21))
    assert figure(profile)[0] is Source.COUNTED


def test_a_window_that_no_model_has_is_not_believed(profile: Profile) -> None:
    huge = "1" + "0" * 400
    words = f"agent.x: Context compressor initialized: m context_length={huge} threshold={huge} (x)"
    profile.log(line(5, START), line(6, words, tag=MAIN), call(3, 16_000, 21))
    (profile.folder / "config.yaml").write_text(f"model: {{default: m, context_length: {huge}}}\n")
    found = read(profile.folder)
    assert (found.source, found.window) == (Source.API_LOG, None)
    assert found.limits(Policy()) == Policy().limits(window=None, compaction_point=None)


def test_a_bill_that_no_database_can_hold_makes_the_context_unknown(profile: Profile) -> None:
    profile.run("UPDATE sessions SET input_tokens = ?, output_tokens = ?", 9 * 10**18, 9 * 10**18)
    found = read(profile.folder)
    assert found.source is Source.UNKNOWN
    assert "holds what the agent does not write" in (found.error or "")


def test_a_replaced_database_with_the_same_rows_is_read_anew(tmp_path: Path) -> None:
    reader, made = ContextReader(len), [Profile(tmp_path / name) for name in ("a", "b")]
    for one, words in zip(made, ("an answer", SUMMARY), strict=True):
        one.session()
        one.say("user", "a question", 10, token_count=1)
        one.say("assistant", words, 20, token_count=2)
    reader.read(made[0].folder, "swarm1", since=None, now=NOW)
    made[1].path.replace(made[0].path)
    assert reader.read(made[0].folder, "swarm1", since=None, now=NOW).compactions == 1


def test_without_ranks_a_reading_is_a_bound_and_says_so(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = figure(profile)[1] or 0

    def unavailable() -> None:
        raise EncodingUnavailable

    monkeypatch.setattr(reading_module, "total_counter", unavailable)
    source, bound = figure(profile)
    assert source is Source.BOUND
    assert (bound or 0) > counted
    assert ContextReader().overhead(profile.folder, "swarm1", since=None) is None


def test_the_dates_of_a_reading_are_the_sessions(profile: Profile) -> None:
    found = read(profile.folder)
    assert (found.started_at, found.last_activity_at, found.at) == (moment(0), moment(20.001), NOW)
    assert found.started_at is not None
    assert found.started_at.tzinfo is UTC
    assert datetime.fromtimestamp(EPOCH, UTC) == found.started_at


def test_no_secret_of_a_title_is_kept(tmp_path: Path) -> None:
    """The agent makes a title of the first words, and readings stand in the ledger and on pages."""
    secret = "ghp_" + "a1B2c3D4e5" * 4
    made = Profile(tmp_path)
    made.session(title=f"Push with {secret}")
    assert read(tmp_path).title == "Push with [redacted:github-token]"
