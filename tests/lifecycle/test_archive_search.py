from __future__ import annotations

import os
import random
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle import archive_sources, search_terms
from lifecycle.archive_index import ArchiveIndex
from lifecycle.archive_search import best_hits, search
from lifecycle.archive_sources import bring_up_to_date, index_path, refresh, reindex
from lifecycle.errors import ArchiveIndexError
from lifecycle.handoff import Handoff, compose
from lifecycle.host import Host
from lifecycle.paths import WorkerPaths
from lifecycle.settings import Settings
from lifecycle.snippet import WIDTH, snippet
from lifecycle.worker import Worker
from tests.lifecycle.hermes.hermes_profile import EPOCH, MAIN, SUMMARY, Profile

BEGAN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


class Past:
    """A host with the workers ana and ben, their archive and their profiles."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.profiles = {name: Profile(root / "hermes" / "profiles" / name) for name in ("ana", "ben")}
        workers = {name: {"profile": profile.folder} for name, profile in self.profiles.items()}
        self.host = Host(
            Settings.model_validate(
                {
                    "home": root / "afresh",
                    "hermes_root": root / "hermes",
                    "memory_root": root / "memory",
                    "workers": workers,
                }
            )
        )

    def worker(self, name: str) -> Worker:
        return self.host.worker(name)

    def paths(self, name: str) -> WorkerPaths:
        return self.host.paths(self.worker(name))

    def hand_off(self, name: str, generation: int, **sections: str) -> Path:
        """Archive a handoff of the worker, an hour after the one of the generation before."""
        at = BEGAN + timedelta(hours=generation)
        renewal_id = f"r{generation}-{name}"
        handoff = Handoff(
            worker_id=name,
            renewal_id=renewal_id,
            generation=generation,
            created_at=at,
            sections={title.replace("_", " "): text for title, text in sections.items()},
        )
        path = self.paths(name).archived(at, renewal_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(compose(handoff))
        return path

    def found(self, asked: str, **options: Any) -> list[tuple[str, str, int | None]]:
        hits, _ = search(self.host, asked, **options)
        return [(hit.worker_id, hit.source, hit.generation) for hit in hits]

    def dump(self) -> tuple[list[Any], list[Any]]:
        """All that the index says, without what depends on when it was told."""
        with closing(sqlite3.connect(index_path(self.host))) as index:
            documents = index.execute(
                'select name, kind, worker_id, "order", generation, renewal_id, upto, size, dropped from documents'
            ).fetchall()
            passages = index.execute("select name, place, heading, text, terms, at from passages").fetchall()
            index.execute("insert into passages_fts(passages_fts, rank) values('integrity-check', 1)")
        return sorted(documents, key=repr), sorted(passages, key=repr)


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    past = Past(tmp_path)
    yield past
    past.host.ledger.close()


def test_handoffs_of_all_generations_and_workers_are_found_by_any_word_the_best_first(past: Past) -> None:
    past.hand_off("ana", 1, Current_state="The relay is built in.")
    past.hand_off("ana", 2, Current_state="The relay listens; its port is 8443 and the port is open.")
    path = past.hand_off("ben", 1, Current_state="Seeds are counted.")

    hits, _ = search(past.host, "which port has the relay 8443?")

    assert [(hit.worker_id, hit.generation) for hit in hits[:2]] == [("ana", 2), ("ana", 1)]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[0].heading == "Current state"
    assert "its port is 8443" in hits[0].snippet
    (seeds, *_) = search(past.host, "SEED counting")[0]
    assert (seeds.worker_id, seeds.where, seeds.renewal_id) == ("ben", str(path), "r1-ben")
    assert seeds.at == BEGAN + timedelta(hours=1)


def test_words_are_found_by_stem_identifiers_by_their_parts_and_chinese_by_pairs(past: Past) -> None:
    past.hand_off("ana", 1, Completed="We renamed parse_state_db in lifecycle/agents/HandoffReader.py.")
    past.hand_off("ana", 2, Completed="数据库端口是 8443,不要改动。")
    past.hand_off("ana", 3, Completed="Retrying was dropped.")

    assert past.found("renaming", limit=1) == [("ana", "handoff", 1)]
    assert past.found("handoff reader state", limit=1) == [("ana", "handoff", 1)]
    assert past.found("parse_state_db", limit=1) == [("ana", "handoff", 1)]
    assert past.found("端口", limit=1) == [("ana", "handoff", 2)]
    assert past.found("端", limit=1) == [("ana", "handoff", 2)]
    assert past.found("数据库的端口号", limit=1) == [("ana", "handoff", 2)]
    assert past.found("retries", limit=1) == [("ana", "handoff", 3)]


@pytest.mark.parametrize(
    "asked",
    [
        '"', '""', "'", "relay AND", "NEAR(relay port", "NEAR/3", "relay*", "^relay", "terms:relay", "-relay", "(relay",
        "relay) OR (1", "{a b}", "relay; drop table passages", "\0relay", "😀", "*", "NOT", "a" * 5_000, "relay " * 900,
    ],
)  # fmt: skip
def test_whatever_is_asked_is_words_and_never_a_query(past: Past, asked: str) -> None:
    past.hand_off("ana", 1, Current_state="The relay listens.")
    found = past.found(asked)
    assert bool(found) is ("relay" in asked)


@given(asked=st.text(max_size=60))
def test_no_text_breaks_the_search(tmp_path_factory: pytest.TempPathFactory, asked: str) -> None:
    with ArchiveIndex(tmp_path_factory.getbasetemp() / "asked" / "index.db") as index:
        assert index.search(asked, limit=3) == []


def test_what_was_compacted_away_and_what_earlier_sessions_said_is_found_once(past: Past) -> None:
    profile = past.profiles["ana"]
    profile.session()
    profile.say("user", "the webhook path is /hooks/inbound", 1)
    profile.say("user", "undone words about the webhook", 2, active=0, compacted=0)
    profile.compact(3, [("user", SUMMARY), ("user", "the webhook path is /hooks/inbound")])
    profile.compact(4, [("user", SUMMARY), ("user", "the webhook path is /hooks/inbound")])

    hits, _ = search(past.host, "webhook")
    assert [(hit.source, hit.where, hit.text) for hit in hits] == [
        ("session", f"{MAIN} row 1", "the webhook path is /hooks/inbound")
    ]
    profile.session("20261130_101010_bbbbbb", 10)
    profile.say("user", "live words about the webhook", 11, "20261130_101010_bbbbbb")
    assert len(search(past.host, "webhook")[0]) == 1


def test_no_secret_gets_into_the_index(past: Past) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    path = past.hand_off("ana", 1, Current_state="x")
    path.write_text(f"# Handoff\n\ntoken {secret}\n")
    profile = past.profiles["ana"]
    profile.session()
    profile.say("tool", f"Authorization: Bearer {secret}", 1)
    profile.compact(2, [])

    refresh(past.host)

    assert secret.encode() not in index_path(past.host).read_bytes()
    assert len(past.found("token authorization")) == 2


def test_a_changed_file_is_indexed_anew_a_deleted_one_disappears_and_an_unchanged_one_is_not_read(past: Past) -> None:
    path = past.hand_off("ana", 1, Current_state="The relay listens.")
    assert refresh(past.host).changed == 1
    assert refresh(past.host).changed == 0
    stamp = path.stat()
    path.write_text(path.read_text().replace("relay listens", "valve listens"))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert past.found("relay") == []
    assert past.found("valve") == [("ana", "handoff", 1)]
    path.unlink()
    assert past.found("valve") == []
    assert past.dump() == ([], [])


def test_the_index_may_be_deleted_or_spoilt_at_any_time(past: Past) -> None:
    past.hand_off("ana", 1, Current_state="The relay listens.")
    assert past.found("relay")
    path = index_path(past.host)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.unlink()
    assert past.found("relay")
    path.write_bytes(b"not a database" * 500)
    assert past.found("relay")
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("pragma user_version = 99")
    assert past.found("relay")
    whole = path.read_bytes()
    for at in range(4096, len(whole), 3 * 4096):
        path.write_bytes(whole[:at] + b"\xff" * 2048 + whole[at + 2048 :])
        past.found("relay")  # whatever is left of it, never an error
        reindex(past.host)
        assert past.found("relay") == [("ana", "handoff", 1)], at
    path.write_bytes(whole[:6000])
    assert past.found("relay")


def test_an_index_that_cannot_be_made_is_one_error_and_no_hits_for_the_resume(past: Past) -> None:
    (past.root / "afresh" / "archive").mkdir(parents=True)
    index_path(past.host).mkdir()
    with pytest.raises(ArchiveIndexError, match=r"index\.db"):
        search(past.host, "relay")
    assert best_hits(past.host, past.worker("ana"), "relay") == ()


def test_an_unreadable_database_leaves_what_is_indexed_and_is_named(past: Past) -> None:
    profile = past.profiles["ana"]
    profile.session()
    profile.say("user", "the webhook path", 1)
    profile.compact(2, [])
    assert past.found("webhook")
    profile.path.write_bytes(b"spoilt" * 1000)

    hits, indexed = search(past.host, "webhook")

    assert len(hits) == 1
    assert [str(profile.path) in words for words in indexed.unread] == [True]


def test_a_session_that_goes_on_after_its_end_loses_what_was_undone_since(past: Past) -> None:
    profile = past.profiles["ana"]
    profile.session()
    wrong = profile.say("user", "delete the webhook", 1)
    profile.run("UPDATE sessions SET ended_at = ?", EPOCH + 5)
    profile.session("20261130_101010_bbbbbb", 10)
    profile.say("user", "go on", 11, "20261130_101010_bbbbbb")
    assert past.found("webhook") == [("ana", "session", None)]
    profile.run("UPDATE messages SET active = 0 WHERE id = ?", wrong)
    profile.run("UPDATE sessions SET ended_at = ? WHERE id = ?", EPOCH + 20, MAIN)
    assert past.found("webhook") == []


def test_the_oldest_sessions_go_where_there_are_too_many(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_sources, "WORKER_MOST", 300)
    monkeypatch.setattr(archive_sources, "SESSION_MOST", 150)
    profile = past.profiles["ana"]
    for number in range(5):
        session = profile.session(f"2026112{number}_101010_aaaaaa", number * 10)
        for part in range(4):
            profile.say("user", f"order {number} part {part} {'x ' * 25}", number * 10 + part, session)
    refresh(past.host)
    incremental = past.dump()
    assert past.found("order 0") != []
    assert not any("order 0" in passage[3] for passage in incremental[1])
    assert any("order 3 part 0" in passage[3] for passage in incremental[1])
    assert not any("order 3 part 3" in passage[3] for passage in incremental[1])
    reindex(past.host)
    assert past.dump() == incremental


class Life:
    """What happens to a worker's archive and database, by a seed."""

    def __init__(self, past: Past, seed: int) -> None:
        self.past, self.dice, self.at, self.sessions = past, random.Random(seed), 0.0, 0  # noqa: S311
        self.files: list[Path] = []
        for profile in past.profiles.values():
            profile.session(self.next_session())

    def next_session(self) -> str:
        self.sessions += 1
        return f"20261129_{self.sessions:06d}_aaaaaa"

    def step(self) -> None:
        name = self.dice.choice(["ana", "ben"])
        self.dice.choice([self._hand_off, self._edit, self._delete, self._say, self._say, self._compact, self._end])(
            name
        )

    def _words(self) -> str:
        return " ".join(self.dice.choices(["relay", "port", "8443", "valve", "端口", "run_tests", "seed"], k=6))

    def _hand_off(self, name: str) -> None:
        self.files.append(self.past.hand_off(name, len(self.files) + 1, Current_state=self._words()))

    def _edit(self, _: str) -> None:
        if self.files:
            path = self.dice.choice(self.files)
            path.write_text(f"{path.read_text()}{self._words()}\n")

    def _delete(self, _: str) -> None:
        if self.files:
            self.files.pop(self.dice.randrange(len(self.files))).unlink()

    def _say(self, name: str) -> None:
        self.at += 1
        self.past.profiles[name].say("user", self._words(), self.at, self._current(name))

    def _compact(self, name: str) -> None:
        self.at += 1
        kept = [("user", SUMMARY), ("user", self._words())]
        self.past.profiles[name].compact(self.at, kept, self._current(name))

    def _end(self, name: str) -> None:
        self.at += 1
        profile = self.past.profiles[name]
        profile.run("UPDATE sessions SET ended_at = ? WHERE ended_at IS NULL", EPOCH + self.at)
        profile.session(self.next_session(), self.at + 0.5)

    def _current(self, name: str) -> str:
        with closing(sqlite3.connect(self.past.profiles[name].path)) as database:
            found = database.execute("SELECT id FROM sessions WHERE ended_at IS NULL").fetchone()
        return str(found[0])


@pytest.mark.parametrize("seed", range(4))
def test_an_index_that_grew_says_what_one_made_anew_says(past: Past, seed: int) -> None:
    life = Life(past, seed)
    for _ in range(12):
        for _ in range(3):
            life.step()
        refresh(past.host)
    asked = "port of the relay 端口"
    grown, hits = past.dump(), search(past.host, asked, limit=50)[0]
    assert grown[1]

    reindex(past.host)

    assert past.dump() == grown
    assert search(past.host, asked, limit=50)[0] == hits


def test_a_history_that_is_not_indexed_in_time_is_taken_in_bit_by_bit_the_newest_first(past: Past) -> None:
    worker = past.worker("ana")
    profile = past.profiles["ana"]
    for number in range(1, 4):
        past.hand_off("ana", number, Completed=f"the relay was tried {number} times")
        profile.say(
            "user", f"order {number} about the relay", number, profile.session(f"2026112{number}_a", number * 10)
        )
    refresh(past.host)
    whole = past.dump()
    index_path(past.host).unlink()

    steps = 0
    with ArchiveIndex(index_path(past.host)) as index:
        while past.dump() != whole:
            bring_up_to_date(past.host, index, worker, within=timedelta(microseconds=steps * 200))
            steps += 1
            assert steps < 10_000
    assert steps > 1


def test_the_best_of_the_workers_own_past_fits_the_next_action(past: Past) -> None:
    past.hand_off("ana", 1, Completed="Cursors instead of offsets in pagination.", Blockers="pagination of drafts")
    past.hand_off("ana", 2, Completed="The pagination test is red.")
    past.hand_off("ana", 3, Completed="The pagination test is green.")
    past.hand_off("ben", 1, Completed="Pagination is somebody else's.")

    hits = best_hits(past.host, past.worker("ana"), "fix the pagination test", excluding=("r3-ana",))

    assert [(hit.worker_id, hit.generation) for hit in hits] == [("ana", 2), ("ana", 1)]
    assert best_hits(past.host, past.worker("ana"), "") == ()


def test_a_snippet_shows_the_stretch_that_was_asked_for() -> None:
    text = "nothing here. " * 40 + "Then the relay was moved to port 8443 for good. " + "nothing there. " * 40
    found = snippet(text, "moving relay port")
    assert "relay was moved to port 8443" in found
    assert len(found) <= WIDTH + 2
    assert snippet("short", "other") == "short"
    assert snippet("a\x1b[31mred\x1b[0m\nline", "red") == "ared line"
    assert search_terms.asked_terms("moving relay port") == ("moving", "relay", "port")


def test_half_a_surrogate_pair_of_a_past_call_holds_no_resumption_up(past: Past) -> None:
    """The search runs while a worker waits for its resume prompt."""
    profile = past.profiles["ana"]
    profile.session("old", 0, ended_at=EPOCH + 10, end_reason="closed")
    calls = '[{"id": "c1", "function": {"name": "terminal", "arguments": "count the plums \\ud83d"}}]'
    profile.say("assistant", "", 2, "old", tool_calls=calls, finish_reason="tool_calls")
    profile.session(MAIN, 100)
    profile.say("user", "go on", 101)
    assert [hit.source for hit in best_hits(past.host, past.worker("ana"), "count the plums")] == ["session"]


def test_a_handoff_with_an_impossible_date_holds_no_resumption_up(past: Past) -> None:
    path = past.hand_off("ana", 1, Current_state="Three plums are counted.")
    made = f'"{BEGAN + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"'
    text = path.read_text()
    assert made in text
    path.write_text(text.replace(made, '"0001-01-01T00:00:00+14:00"'))
    past.hand_off("ana", 2, Current_state="Four plums are counted.")
    assert best_hits(past.host, past.worker("ana"), "plums")
