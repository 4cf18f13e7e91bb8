from __future__ import annotations

import json
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

import lifecycle.ledger_file
from lifecycle.errors import LedgerError, RenewalInProgress
from lifecycle.ledger import Ledger, StoredHandoff
from lifecycle.reading import ContextReading, Source
from lifecycle.record import WorkerRecord
from lifecycle.renewal import End, Phase, Quality
from tests.lifecycle.ledger_process import LedgerProcess
from tests.lifecycle.test_renewal import BEGAN, advanced_to, opened

SECOND = timedelta(seconds=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "afresh" / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger(path) as ledger:
        yield ledger


def changed(path: Path, sql: str, *parameters: object) -> None:
    """Change the file behind the ledger's back."""
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(sql, parameters).rowcount == 1


def handoff(renewal_id: str, at: datetime) -> StoredHandoff:
    return StoredHandoff(
        renewal_id=renewal_id,
        worker_id="builder",
        generation=1,
        archive=Path("/archive/r1.md"),
        sha256="0" * 64,
        quality=Quality.WRITTEN,
        mission_id=None,
        created_at=at,
    )


# The file


def test_only_its_owner_can_read_the_ledger_and_what_lies_beside_it(ledger: Ledger) -> None:
    ledger.remember("builder", held_why="x")
    names = {file.name: stat.S_IMODE(file.stat().st_mode) for file in ledger.path.parent.iterdir()}
    assert names == {"ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}
    assert stat.S_IMODE(ledger.path.parent.stat().st_mode) == 0o700


def test_a_ledger_that_is_opened_again_holds_what_was_written(ledger: Ledger, path: Path) -> None:
    ledger.open(opened())
    ledger.remember("builder", generation=4)
    with Ledger(path) as again:
        assert again.record("builder") == WorkerRecord(worker_id="builder", generation=4, open_renewal=opened())


def test_what_is_written_is_on_disk_before_the_step_goes_on(ledger: Ledger) -> None:
    assert ledger._rows("pragma synchronous") == [(2,)]
    assert ledger._rows("pragma journal_mode") == [("wal",)]


def test_a_file_that_is_no_database_is_an_error_that_names_it(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(LedgerError, match=rf"{path}: file is not a database"):
        Ledger(path)


def test_a_folder_that_cannot_be_made_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "afresh").write_text("in the way")
    with pytest.raises(LedgerError, match=r"afresh/ledger\.db: cannot be made"):
        Ledger(tmp_path / "afresh" / "ledger.db")


def test_an_error_of_the_caller_inside_a_transaction_is_not_called_the_ledgers(ledger: Ledger) -> None:
    def fail() -> None:
        with ledger.transaction():
            ledger.remember("builder", generation=2)
            Path("/nowhere/at/all").read_text()

    with pytest.raises(FileNotFoundError):
        fail()
    assert ledger.record("builder").generation == 1


# Other processes


def test_several_processes_may_create_the_ledger_at_once(path: Path) -> None:
    with LedgerProcess() as a, LedgerProcess() as b, LedgerProcess() as c, LedgerProcess() as d:
        processes = [a, b, c, d]
        for number in range(20):
            fresh = path.with_name(f"{number}") / "ledger.db"
            for process in processes:
                process.begin("use", path=str(fresh))
            assert [process.answer() for process in processes] == [None] * 4
            for name, process in zip("abcd", processes, strict=True):
                process.begin("remember", worker_id=name, held_why=name)
            assert [process.answer() for process in processes] == [None] * 4
            with Ledger(fresh) as ledger:
                assert [record.held_why for record in ledger.records("abcd").values()] == [*"abcd"]


def test_a_new_file_that_is_still_being_made_is_waited_for(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as maker:
        maker.execute("create table first (n)")
        maker.execute("begin immediate")
        release = threading.Timer(0.3, maker.execute, ["commit"])
        release.start()
        with Ledger(path) as ledger:
            assert ledger.remember("builder", generation=2).generation == 2
        release.join()


def test_a_writer_waits_for_another_one(path: Path) -> None:
    with LedgerProcess() as one, LedgerProcess() as other:
        one.ask("use", path=str(path))
        other.ask("use", path=str(path))
        one.ask("hold")
        other.begin("remember", worker_id="builder", generation=7)
        assert not other.has_answered(within=0.3)
        one.ask("let_go")
        assert other.answer() is None
    with Ledger(path) as ledger:
        assert ledger.record("builder").generation == 7


def test_a_ledger_that_stays_locked_is_an_error_and_reading_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle.ledger_file, "BUSY", timedelta(seconds=0.2))
    with LedgerProcess() as other, Ledger(path) as ledger:
        ledger.remember("builder", generation=3)
        other.ask("use", path=str(path))
        other.ask("hold")
        with pytest.raises(LedgerError, match=rf"{path}: database is locked"):
            ledger.remember("builder", generation=4)
        with Ledger(path) as another:
            assert another.record("builder").generation == 3


def test_a_process_killed_while_it_writes_leaves_the_row_as_it_was(path: Path) -> None:
    with LedgerProcess() as other, Ledger(path) as ledger:
        ledger.remember("builder", held_why="whole", generation=3)
        other.ask("use", path=str(path))
        assert other.killed_at("die_writing", worker_id="builder") == -9
        assert ledger.record("builder") == WorkerRecord(worker_id="builder", held_why="whole", generation=3)
        ledger.remember("builder", generation=4)


def test_a_full_disk_leaves_the_stored_row_whole_and_the_ledger_usable(path: Path) -> None:
    with LedgerProcess() as other, Ledger(path) as ledger:
        other.ask("use", path=str(path))
        other.ask("remember", worker_id="builder", held_why="whole")
        other.ask("grow_no_file")
        assert other.ask("remember", worker_id="builder", held_why="x" * 100_000) == "LedgerError"
        assert other.ask("notice", worker_id="builder", key="k") == "LedgerError"
        assert ledger.record("builder").held_why == "whole"
        other.ask("grow_again")
        assert other.ask("notice", worker_id="builder", key="k") is True
        assert other.ask("remember", worker_id="builder", generation=2) is None
        assert (ledger.record("builder").held_why, ledger.record("builder").generation) == ("whole", 2)


def test_a_ledger_that_may_not_grow_is_an_error_that_says_so(ledger: Ledger) -> None:
    ledger.remember("builder", held_why="whole")
    ledger._rows("pragma max_page_count = 1")  # SQLite takes the size that it has
    with pytest.raises(LedgerError, match=r"ledger\.db: database or disk is full"):
        ledger.remember("builder", held_why="x" * 1_000_000)
    ledger._rows("pragma max_page_count = 1000000")
    assert ledger.remember("builder", generation=2).held_why == "whole"


# Records


def test_a_worker_never_seen_has_an_empty_record(ledger: Ledger) -> None:
    assert ledger.record("builder") == WorkerRecord(worker_id="builder")
    assert ledger.records(["a", "b"]) == {name: WorkerRecord(worker_id=name) for name in "ab"}


def test_remember_changes_the_named_fields_and_no_others(ledger: Ledger) -> None:
    reading = ContextReading(worker_id="builder", at=BEGAN, session_id="s1", tokens=7, source=Source.API_LOG)
    ledger.remember("builder", last_good=reading, renewals=(BEGAN,))
    ledger.remember("builder", held_since=BEGAN, held_why="hands off")
    assert ledger.record("builder") == WorkerRecord(
        worker_id="builder", last_good=reading, renewals=(BEGAN,), held_since=BEGAN, held_why="hands off"
    )
    assert ledger.remember("builder", held_since=None).held_since is None


def test_what_is_remembered_of_each_keeps_what_another_process_wrote_meanwhile(ledger: Ledger, path: Path) -> None:
    ledger.remember("a", generation=2)
    with Ledger(path) as other:
        other.remember("a", held_why="hands off")
    ledger.remember_each(
        {
            "a": lambda stored: {"unknown_streak": stored.generation + 1},
            "b": lambda stored: {"unknown_streak": stored.generation},
        }
    )
    assert ledger.records(["a", "b"]) == {
        "a": WorkerRecord(worker_id="a", generation=2, held_why="hands off", unknown_streak=3),
        "b": WorkerRecord(worker_id="b", unknown_streak=1),
    }
    with pytest.raises(ValidationError):
        ledger.remember_each({"b": lambda _: {"generation": 9}, "a": lambda _: {"held_whyy": "a slip of the pen"}})
    assert ledger.record("b").generation == 1, "all or nothing"


def test_only_the_asked_for_records_are_read(ledger: Ledger, path: Path) -> None:
    ledger.remember("a", generation=2)
    ledger.remember("b", generation=3)
    ledger.open(opened())
    changed(path, "update workers set doc = '{' where worker_id = 'b'")
    changed(path, "update renewals set doc = '{'")
    assert list(ledger.records(["a"])) == ["a"]
    for torn in ("b", "builder"):
        with pytest.raises(LedgerError, match=torn if torn == "b" else "Renewal"):
            ledger.records(["a", torn])


@pytest.mark.parametrize("wrong", [{"held_whyy": "a slip of the pen"}, {"unknown_streak": "many"}])
def test_a_field_that_is_none_or_does_not_fit_is_refused_and_not_lost_in_silence(
    ledger: Ledger, wrong: dict[str, object]
) -> None:
    with pytest.raises(ValidationError):
        ledger.remember("builder", **wrong)


def test_the_record_shows_the_open_renewal_and_never_stores_it(ledger: Ledger) -> None:
    ledger.open(opened())
    assert ledger.remember("builder", generation=2).open_renewal == opened()
    ledger.put(opened().model_copy(update={"end": End.SPARED}))
    assert ledger.record("builder").open_renewal is None


# Renewals


def test_a_second_renewal_of_a_worker_is_refused_while_one_is_open(ledger: Ledger) -> None:
    ledger.open(opened())
    second = opened().model_copy(update={"renewal_id": "r2"})
    with pytest.raises(RenewalInProgress, match="builder has an open renewal"):
        ledger.open(second)
    ledger.open(second.model_copy(update={"worker_id": "swarm1"}))
    ledger.put(opened().model_copy(update={"end": End.DISMISSED}))
    ledger.open(second.model_copy(update={"renewal_id": "r3"}))
    assert {renewal.renewal_id for renewal in ledger.open_renewals()} == {"r2", "r3"}


def test_a_phase_never_goes_back(ledger: Ledger) -> None:
    ledger.open(opened())
    ledger.put(advanced_to(Phase.SAVED))
    with pytest.raises(RenewalInProgress, match="stands at saved"):
        ledger.put(advanced_to(Phase.PARSED))
    assert ledger.renewal("r1") == advanced_to(Phase.SAVED)


def test_an_ended_renewal_never_changes(ledger: Ledger) -> None:
    ended = advanced_to(Phase.SAVED).model_copy(update={"end": End.HELD, "end_reason": "by hand"})
    ledger.open(opened())
    ledger.put(ended)
    for later in (ended, advanced_to(Phase.PROVED), ended.model_copy(update={"end": End.RENEWED})):
        with pytest.raises(RenewalInProgress, match="stands at held"):
            ledger.put(later)
    assert ledger.renewal("r1") == ended


@pytest.mark.parametrize("phase", Phase)
def test_a_renewal_comes_back_as_it_was_in_every_phase(ledger: Ledger, phase: Phase) -> None:
    ledger.open(opened())
    ledger.put(advanced_to(phase))
    assert ledger.renewal("r1") == advanced_to(phase)


def test_a_renewal_that_nobody_wrote_is_an_error_that_names_it(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="no renewal r9"):
        ledger.renewal("r9")
    with pytest.raises(LedgerError, match="no renewal r1"):
        ledger.put(opened())


def test_renewals_come_newest_first_also_within_one_second(ledger: Ledger) -> None:
    for number, at in enumerate([BEGAN, BEGAN + SECOND / 2, BEGAN + SECOND, BEGAN + SECOND]):
        renewal = opened().model_copy(update={"renewal_id": f"r{number}", "opened_at": at})
        ledger.open(renewal)
        ledger.put(renewal.model_copy(update={"end": End.SPARED}))
    assert [renewal.renewal_id for renewal in ledger.renewals_of("builder")] == ["r3", "r2", "r1", "r0"]
    assert [renewal.renewal_id for renewal in ledger.renewals_of("builder", limit=2)] == ["r3", "r2"]
    assert ledger.renewals_of("swarm1") == []


# Other releases


def test_what_a_newer_release_wrote_is_read_and_what_it_added_is_passed_over(ledger: Ledger, path: Path) -> None:
    ledger.open(opened())
    ledger.put(advanced_to(Phase.SAVED))
    ledger.remember("builder", generation=3)
    for table in ("workers", "renewals"):
        key = '"worker_id"' if table == "workers" else '"renewal_id"'
        changed(path, f"update {table} set schema = 2, doc = replace(doc, ?, ?)", key, f'"later": {{"a": [1]}}, {key}')  # noqa: S608
    record = ledger.record("builder")
    assert (record.generation, record.open_renewal) == (3, advanced_to(Phase.SAVED))


def test_a_renewal_of_an_older_release_is_finished_by_this_one(ledger: Ledger, path: Path) -> None:
    ledger.open(opened())
    ledger.put(advanced_to(Phase.SAVED))
    needed = {"renewal_id", "worker_id", "generation", "phase", "opened_at", "updated_at", "saved"}
    older = {
        key: value for key, value in json.loads(advanced_to(Phase.SAVED).model_dump_json()).items() if key in needed
    }
    for optional in ("session_id", "asks_human"):
        del older["saved"][optional]
    changed(path, "update renewals set doc = ?", json.dumps(older))
    renewal = ledger.renewal("r1").advanced(Phase.STOPPING, BEGAN)
    assert ledger.put(renewal).phase is Phase.STOPPING
    assert ledger.put(renewal.model_copy(update={"end": End.RENEWED})).end is End.RENEWED


@pytest.mark.parametrize(
    ("torn", "what"),
    [
        ('{"renewal_id": "r1", "worker', "Invalid JSON"),
        ("", "Invalid JSON"),
        ('{"renewal_id": "r1"}', "worker_id: Field required"),
        ('["r1"]', "Input should be an object"),
    ],
)
def test_a_torn_renewal_is_an_error_that_names_file_and_renewal(
    ledger: Ledger, path: Path, torn: str, what: str
) -> None:
    ledger.open(opened())
    ledger.open(opened().model_copy(update={"renewal_id": "r2", "worker_id": "swarm1"}))
    changed(path, "update renewals set doc = ? where renewal_id = 'r1'", torn)
    with pytest.raises(LedgerError, match=rf"{path}: the stored Renewal r1 cannot be read: .*{what}"):
        ledger.renewal("r1")
    with pytest.raises(LedgerError, match="the stored Renewal builder cannot be read"):
        ledger.record("builder")
    assert ledger.record("swarm1").open_renewal is not None, "one torn row does not take the others along"


def test_a_torn_record_is_an_error_that_names_the_worker(ledger: Ledger, path: Path) -> None:
    ledger.remember("builder", generation=2)
    for torn in ('{"worker_id": "bui', "", '{"worker_id": "builder", "generation": "second"}'):
        changed(path, "update workers set doc = ?", torn)
        with pytest.raises(LedgerError, match="the stored WorkerRecord builder cannot be read"):
            ledger.record("builder")


def test_a_torn_event_or_handoff_is_a_ledger_error_too(ledger: Ledger, path: Path) -> None:
    ledger.add_event("k", "builder", at=BEGAN, one=1)
    ledger.add_handoff(handoff("r1", BEGAN))
    changed(path, "update events set detail = '{\"one\"'")
    changed(path, "update handoffs set quality = 'invented'")
    with pytest.raises(LedgerError, match="the stored Event 1 cannot be read: detail"):
        ledger.events()
    with pytest.raises(LedgerError, match="the stored StoredHandoff r1 cannot be read: quality"):
        ledger.handoffs_of("builder")


# Handoffs, events, notices


def test_handoffs_come_newest_first_and_one_renewal_has_one(ledger: Ledger) -> None:
    for number, at in enumerate([BEGAN, BEGAN + SECOND / 2, BEGAN + SECOND]):
        ledger.add_handoff(handoff(f"r{number}", at))
    ledger.add_handoff(handoff("r0", BEGAN + 2 * SECOND))
    assert [stored.renewal_id for stored in ledger.handoffs_of("builder")] == ["r0", "r2", "r1"]
    assert ledger.handoffs_of("builder")[0] == handoff("r0", BEGAN + 2 * SECOND)


def test_events_are_the_newest_of_a_worker_and_come_oldest_first(ledger: Ledger) -> None:
    for number in range(5):
        ledger.add_event(f"k{number}", "builder", at=BEGAN, renewal_id="r1", words=["ä", None, {"n": number}])
    ledger.add_event("other", "swarm1", at=BEGAN)
    assert [event.kind for event in ledger.events("builder", limit=2)] == ["k3", "k4"]
    newest = ledger.events("builder")[-1]
    assert (newest.renewal_id, newest.detail) == ("r1", {"words": ["ä", None, {"n": 4}]})
    assert [event.kind for event in ledger.events(after=newest.event_id)] == ["other"]


def test_an_event_that_names_a_file_no_text_can_name_is_kept(ledger: Ledger) -> None:
    ledger.add_event("k", "builder", at=BEGAN, path="caf\udce9.md")
    assert ledger.events()[0].detail == {"path": "caf?.md"}


def test_readings_are_added_in_one_go(ledger: Ledger) -> None:
    ledger.add_readings(ContextReading(worker_id="builder", at=BEGAN, tokens=tokens) for tokens in (1, None))
    assert ledger._rows("select tokens, source from readings") == [(1, "unknown"), (None, "unknown")]


def test_a_notice_is_first_once_for_each_worker_and_key(ledger: Ledger) -> None:
    asked = [("a", "absent:s1"), ("a", "absent:s1"), ("a", "absent:s2"), ("b", "absent:s1"), ("a", "absent:s1")]
    assert [ledger.is_first_notice(worker, key, at=BEGAN) for worker, key in asked] == [True, False, True, True, False]


def test_only_what_is_over_is_forgotten(ledger: Ledger) -> None:
    kept = ["dialogue:s1", "not-an_agent:s1", "busy:dialog:s1", "DIALOG:s1"]
    gone = ["dialog", "dialog:s1", "not_an_agent:", "not_an_agent:s1:x"]
    for key in kept + gone:
        ledger.is_first_notice("a", key, at=BEGAN)
    ledger.is_first_notice("b", "dialog:s1", at=BEGAN)
    ledger.forget_notices("a", passing=("dialog", "not_an_agent"))
    assert {key for key in kept + gone if ledger.is_first_notice("a", key, at=BEGAN)} == set(gone)
    assert not ledger.is_first_notice("b", "dialog:s1", at=BEGAN)


def test_of_many_workers_what_is_over_is_forgotten_in_one_go(ledger: Ledger) -> None:
    for worker in "abc":
        ledger.is_first_notice(worker, "dialog:s1", at=BEGAN)
    ledger.forget_notices("a", "b", passing=("dialog",))
    assert [ledger.is_first_notice(worker, "dialog:s1", at=BEGAN) for worker in "abc"] == [True, True, False]


# Transactions


def test_what_is_written_together_is_there_together_or_not_at_all(ledger: Ledger, path: Path) -> None:
    def fail() -> None:
        with ledger.transaction():
            ledger.remember("builder", generation=2)
            ledger.add_event("k", "builder", at=BEGAN)
            with Ledger(path) as other:
                assert other.record("builder").generation == 1, "nobody sees half of it"
            ledger.open(opened())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (ledger.record("builder"), ledger.events()) == (WorkerRecord(worker_id="builder"), [])
    with ledger.transaction(), ledger.transaction():
        ledger.remember("builder", generation=2)
    with Ledger(path) as other:
        assert other.record("builder").generation == 2


def test_a_refusal_inside_a_transaction_can_be_passed_over(ledger: Ledger) -> None:
    ledger.open(opened())
    with ledger.transaction():
        ledger.remember("builder", generation=2)
        with pytest.raises(RenewalInProgress):
            ledger.open(opened().model_copy(update={"renewal_id": "r2"}))
    assert ledger.record("builder").generation == 2


def test_every_date_comes_back_aware_and_in_utc(ledger: Ledger) -> None:
    ledger.remember("builder", cooldown_until=BEGAN)
    found = ledger.record("builder").cooldown_until
    assert found == BEGAN
    assert found is not None
    assert found.tzinfo == UTC


def test_a_renewal_that_another_process_ended_meanwhile_is_not_moved_by_a_stale_copy(path: Path) -> None:
    with LedgerProcess() as other, Ledger(path) as ledger:
        ledger.open(opened())
        other.ask("use", path=str(path))
        other.ask("take", worker_id="builder")
        ledger.put(opened().model_copy(update={"end": End.DISMISSED}))
        assert other.ask("move", phase="requested") == "RenewalInProgress"
        assert ledger.renewal("r1").phase is Phase.OPENED


def test_no_secret_stands_in_an_events_detail(ledger: Ledger) -> None:
    at, key = datetime(2026, 5, 4, tzinfo=UTC), "sk-abcdef0123456789abcd"
    ledger.add_event("x", "swarm1", at=at, why=f"API_KEY={key}", several=[{"line": key}])
    (event,) = ledger.events("swarm1")
    assert event.detail == {"why": "API_KEY=[redacted:api-key]", "several": [{"line": "[redacted:api-key]"}]}
