from __future__ import annotations

import time
from contextlib import suppress

import pytest

from lifecycle.checkpoint import Checkpoint, State, parse_checkpoint, render_checkpoint
from lifecycle.errors import CheckpointRefused
from tests.lifecycle.checkpoint_cases import BAD, GOOD, LOWER, TEMPLATE, VALUES, Bad, Good, block, without

WORKER, RENEWAL = "alice", "r-7f3a"
MEGABYTE = 1024 * 1024


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.name)
def test_a_good_checkpoint_is_read_whatever_it_looks_like(case: Good) -> None:
    read = parse_checkpoint(case.text, renewal_id=RENEWAL, worker_id=WORKER, purpose=case.purpose)

    expected = {**LOWER, "renewal_id": None, **case.expected, "state": case.state, "note": case.note}
    assert read.model_dump() == expected


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_what_is_no_checkpoint_is_refused_for_its_reason(case: Bad) -> None:
    with pytest.raises(CheckpointRefused) as refused:
        parse_checkpoint(case.text, renewal_id=RENEWAL, worker_id=WORKER, purpose=case.purpose)

    assert (refused.value.reason, refused.value.missing) == (case.reason, case.missing)
    assert refused.value.worker_id == WORKER


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_a_refusal_says_in_one_sentence_what_to_send(case: Bad) -> None:
    with pytest.raises(CheckpointRefused) as refused:
        parse_checkpoint(case.text, renewal_id=RENEWAL, worker_id=WORKER, purpose=case.purpose)

    assert "; send " in refused.value.detail or ", where " in refused.value.detail
    assert refused.value.detail.count("\n") == 0
    assert refused.value.detail.endswith(".")


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.name)
def test_a_rendered_checkpoint_reads_back_the_same(case: Good) -> None:
    read = parse_checkpoint(case.text, purpose=case.purpose)

    assert parse_checkpoint(render_checkpoint(read), purpose=case.purpose) == read


def test_a_checkpoint_renders_as_plain_lines() -> None:
    checkpoint = Checkpoint(**{**LOWER, "state": State.HANDOFF}, renewal_id="r-1", note="two checks open")

    assert render_checkpoint(checkpoint) == f"{block(STATE='HANDOFF - two checks open')}\nRENEWAL_ID: r-1"


def test_a_refusal_never_quotes_the_worker() -> None:
    for text in (block(STATE="{!touch /tmp/x}"), f"{block()}\nRENEWAL_ID: x{{!y}}", f"WORKER: bob {{!z}}\n{block()}"):
        with pytest.raises(CheckpointRefused) as refused:
            parse_checkpoint(text, renewal_id=RENEWAL, worker_id=WORKER)
        assert "{" not in refused.value.detail


def test_a_refusal_keeps_the_end_of_the_reply_as_evidence() -> None:
    with pytest.raises(CheckpointRefused) as refused:
        parse_checkpoint("x" * 10_000 + "\x1b[31mthe end")

    assert refused.value.evidence.endswith("xthe end")
    assert len(refused.value.evidence) == 2_000


def test_another_renewal_is_only_refused_when_one_is_expected() -> None:
    assert parse_checkpoint(f"{block()}\nRENEWAL_ID: r-0000").renewal_id == "r-0000"


def test_another_worker_is_only_refused_when_one_is_expected() -> None:
    assert parse_checkpoint(f"WORKER: bob\n{block()}").state is State.HANDOFF


def test_the_heading_of_a_distant_document_does_not_name_the_worker() -> None:
    text = "# Handoff — bob — orchard\n" + "line of text\n" * 100 + block()

    assert parse_checkpoint(text, worker_id=WORKER).state is State.HANDOFF


def test_values_hold_no_control_characters() -> None:
    read = parse_checkpoint(block(RESULT="\x1b]0;title\x07a\x1b[31mb\x1b[0m\x08\x00c\x9b1md\x7f\u202ee"))

    assert read.result == "abcde"


def test_a_state_after_the_block_does_not_change_it() -> None:
    assert parse_checkpoint(f"{block()}\n\nDONE\n\nstate: done").state is State.HANDOFF


@pytest.mark.parametrize(
    "filler",
    [
        "word " * 16 + "\n",
        "\n",
        "a\n",
        " ",
        "> ",
        "- ",
        "*",
        "_",
        "`",
        "```\n",
        "~~~~\n",
        "STATE: HANDOFF\n",
        "STATE: HANDOFF\n\n",
        "STATE:",
        "result: x\n",
        "| STATE | HANDOFF |\n",
        "1. ",
        "\r",
        "\x1b[",
        "\x1b]0;",
        "\u200d",
        "\ud800",
        "[",
        '{"a":',
        "handoff — a — ",
        f"{without('RESULT')}\n",
        f"{block()}\n",
        f"{TEMPLATE}\n\n",
    ],
    ids=lambda filler: repr(filler[:20]),
)
@pytest.mark.parametrize("place", ["before", "after", "inside"])
def test_time_grows_no_faster_than_the_text(filler: str, place: str) -> None:
    much = filler * (MEGABYTE // 2 // len(filler.encode(errors="surrogatepass")))
    texts = {
        "before": f"{much}\n\n{block()}",
        "after": f"{block()}\n{much}",
        "inside": block(RESULT=much),
    }
    began = time.process_time()
    with suppress(CheckpointRefused):
        parse_checkpoint(texts[place], worker_id=WORKER, renewal_id=RENEWAL, purpose="handoff")
    assert time.process_time() - began < 10  # linear: at most a second; quadratic: hours


def test_a_block_is_found_behind_ten_megabytes_of_log_within_seconds() -> None:
    log = "2026-01-01 worker: state: blocked by lock\nstate: blocked by lock\n"
    text = f"{log * (10 * MEGABYTE // len(log))}\n{block()}"

    began = time.process_time()
    assert parse_checkpoint(text).result == VALUES["RESULT"]
    assert time.process_time() - began < 20
