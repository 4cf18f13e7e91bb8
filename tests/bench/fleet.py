"""Profiles as a fleet has them: sessions up to 400,000 live tokens and 2,000 rows, most with a usable log."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from lifecycle.tokens import counter
from tests.lifecycle.hermes.hermes_profile import EPOCH, MAIN, START, Profile, call, line

NOW = datetime.fromtimestamp(EPOCH + 10_000, UTC)
MOST_TOKENS, MOST_ROWS = 400_000, 2_000
SIZES = 16
"""So many different sessions are made; a fleet is copies of them."""

_SENTENCES = (
    "the worker reads src/server/api.ts and finds that validateUser is called twice with the same request id "
    "then it runs pytest -q tests/test_api.py which prints 14 passed in 3.2s and it notes the commit 9f3c2ab1 "
    "配置文件 port 8443 https://example.org/ticket/4711 returned error ENOENT while opening ./build/out.json "
)
_WORDS = _SENTENCES.split()


def text_of(tokens: int, chance: random.Random) -> str:
    """Words of a working session, about so many tokens (1.6 a word here)."""
    return " ".join(chance.choices(_WORDS, k=max(1, round(tokens / 1.9))))


def make_session(folder: Path, *, tokens: int, rows: int, log: bool, seed: int, begun: float = 0) -> Path:
    """One profile with one open session of about *tokens* in *rows* live rows, and its agent.log if there is one.

    *begun* is when, in seconds after `EPOCH`.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    made = Profile(folder)
    made.run("PRAGMA journal_mode = WAL")
    made.session(at=begun, system_prompt=text_of(3_000, chance), input_tokens=tokens * 3, output_tokens=tokens // 5)
    each = max(1, (tokens - 3_000) // rows)
    grow(folder, rows=rows, tokens=each, seed=seed, first=0, begun=begun)
    (folder / "config.yaml").write_text("model: {default: stub-model, context_length: 1000000}\n")
    if log:
        lines = [line(begun + 1, START)]
        # Other modules write far more than one line a call.
        for number in range(1, rows // 2 + 1):
            at = begun + 2.0 * number
            lines += [line(at - 0.5, f"tools.terminal: ran command {number} in 0.4s", tag=MAIN)] * 6
            lines.append(call(number, 10_000 + number * each * 2, at))
        made.log(*lines)
    return folder


def grow(folder: Path, *, rows: int, tokens: int, seed: int, first: int, begun: float = 0) -> None:
    """Add *rows* of about *tokens* each behind the row numbered *first*, in one transaction."""
    chance = random.Random(seed + first)  # noqa: S311
    texts = [text_of(tokens, chance) for _ in range(24)]
    with closing(sqlite3.connect(folder / "state.db")) as owner, owner:
        owner.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp, finish_reason, token_count) "
            "VALUES (?, ?, ?, ?, 'stop', ?)",
            [
                (
                    MAIN,
                    "assistant" if number % 2 else "user",
                    f"{number} {texts[number % 24]}",
                    EPOCH + begun + number,
                    tokens,
                )
                for number in range(first, first + rows)
            ],
        )


def make_fleet(root: Path, workers: int, *, logged: float = 0.9) -> list[Path]:
    """*workers* profiles under *root*/profiles, named swarm1…, of which a share of *logged* has a usable log."""
    models = root / "models"
    for size in range(SIZES):
        share = (size + 1) / SIZES
        for log in (True, False):
            folder = models / f"{size}-{log}"
            if not folder.exists():
                tokens, rows = int(MOST_TOKENS * share), int(MOST_ROWS * share)
                make_session(folder, tokens=tokens, rows=rows, log=log, seed=size)
    chance = random.Random(7)  # noqa: S311
    profiles = []
    for number in range(1, workers + 1):
        profile = root / "profiles" / f"swarm{number}"
        if not profile.exists():
            size, log = chance.randrange(SIZES), number % 10 < round(logged * 10)
            shutil.copytree(models / f"{size}-{log}", profile)
            with closing(sqlite3.connect(f"file:{profile}/state.db?mode=ro", uri=True)) as first:
                # An agent that runs has its side files; the first to open the database makes them.
                first.execute("SELECT count(*) FROM sessions").fetchone()
        profiles.append(profile)
    return profiles


def live_texts(profile: Path) -> list[str]:
    """The texts that a full count of the profile counts, for tiktoken's own time."""
    with closing(sqlite3.connect(f"file:{profile}/state.db?mode=ro", uri=True)) as connection:
        rows = [text for (text,) in connection.execute("SELECT content FROM messages ORDER BY id")]
        return [*rows, *(text for (text,) in connection.execute("SELECT system_prompt FROM sessions"))]


def tokens_of(profile: Path) -> int:
    count = counter()
    return sum(count(text) for text in live_texts(profile))
