"""The ledger under any interleaving of two processes, and a renewal that may be cut off at any write."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from lifecycle.ledger import Ledger
from lifecycle.renewal import Delivery, End, Phase, Renewal
from tests.lifecycle.ledger_process import LedgerProcess
from tests.lifecycle.test_renewal import BEGAN, PROOFS, opened

WORKERS = ("builder", "swarm1")
FIELDS = ("held_why", "parked_why")
"""What each of the two processes remembers: fields of the same record."""

Request = tuple[str, dict[str, Any]]

workers = st.sampled_from(WORKERS)
acts: st.SearchStrategy[Request] = st.one_of(
    st.tuples(st.just("open"), st.fixed_dictionaries({"worker_id": workers})),
    st.tuples(st.just("take"), st.fixed_dictionaries({"worker_id": workers})),
    st.tuples(st.just("move"), st.fixed_dictionaries({"phase": st.sampled_from([phase.value for phase in Phase])})),
    st.tuples(st.just("end"), st.fixed_dictionaries({"end": st.sampled_from([end.value for end in End])})),
    st.tuples(st.just("remember"), st.fixed_dictionaries({"worker_id": workers})),
    st.tuples(
        st.just("notice"), st.fixed_dictionaries({"worker_id": workers, "key": st.sampled_from(["absent", "k"])})
    ),
)


@dataclass
class Seen:
    """What two processes were answered so far."""

    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))
    remembered: dict[tuple[str, str], str] = field(default_factory=dict)
    noticed: dict[tuple[str, str], list[bool]] = field(default_factory=dict)
    stood: dict[str, tuple[Phase, str | None, str]] = field(default_factory=dict)


class TwoProcesses(RuleBasedStateMachine):
    """Each holds the copy of a renewal that it read last, and writes from it when it may be out of date."""

    processes: tuple[LedgerProcess, LedgerProcess]

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "afresh" / "ledger.db"
        self.seen = Seen()
        for process in self.processes:
            process.begin("use", path=str(self.path))
        assert [process.answer() for process in self.processes] == [None, None]

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    @rule(which=st.sampled_from([0, 1]), request=acts)
    def one_acts(self, which: int, request: Request) -> None:
        act, values = self._filled(which, request)
        self._noted(which, act, values, self.processes[which].ask(act, **values))

    @rule(first=acts, second=acts)
    def both_act_at_once(self, first: Request, second: Request) -> None:
        asked = [self._filled(which, request) for which, request in enumerate((first, second))]
        for process, (act, values) in zip(self.processes, asked, strict=True):
            process.begin(act, **values)
        answers = [process.answer() for process in self.processes]
        for which, ((act, values), answer) in enumerate(zip(asked, answers, strict=True)):
            self._noted(which, act, values, answer)

    def _filled(self, which: int, request: Request) -> Request:
        act, values = request
        number = next(self.seen.numbers)
        extra: dict[str, Any] = {}
        if act == "open":
            extra = {"renewal_id": f"r{number}"}
        elif act == "remember":
            extra = {FIELDS[which]: f"{number}"}
        return act, {**values, **extra}

    def _noted(self, which: int, act: str, values: dict[str, Any], answer: Any) -> None:
        event(f"{act}: {answer if isinstance(answer, str) and answer.endswith(('Error', 'Progress')) else 'done'}")
        assert answer != "LedgerError"
        if act == "remember":
            assert answer is None
            self.seen.remembered[values["worker_id"], FIELDS[which]] = values[FIELDS[which]]
        elif act == "notice":
            self.seen.noticed.setdefault((values["worker_id"], values["key"]), []).append(answer)

    @invariant()
    def a_worker_has_one_open_renewal_at_most(self) -> None:
        opened_for = [worker_id for worker_id, _, _, end, _ in self._renewals() if end is None]
        assert len(opened_for) == len(set(opened_for))

    @invariant()
    def phases_go_forward_and_an_ended_renewal_never_changes(self) -> None:
        for _, renewal_id, phase, end, doc in self._renewals():
            renewal = Renewal.recall(doc)
            assert (renewal.renewal_id, renewal.phase, renewal.end) == (renewal_id, phase, end)
            before = self.seen.stood.get(renewal_id)
            if before is not None:
                assert Phase(phase).rank >= before[0].rank
                assert before[1] is None or before == (Phase(phase), end, doc)
            self.seen.stood[renewal_id] = (Phase(phase), end, doc)
        assert len(self._renewals()) == len(self.seen.stood), "none is ever gone"

    @invariant()
    def nothing_that_was_remembered_is_lost(self) -> None:
        with Ledger(self.path) as ledger:
            records = ledger.records(WORKERS)
        for (worker_id, name), value in self.seen.remembered.items():
            assert getattr(records[worker_id], name) == value

    @invariant()
    def a_notice_is_first_for_exactly_one(self) -> None:
        for answers in self.seen.noticed.values():
            assert answers.count(True) == 1

    def _renewals(self) -> list[tuple[str, str, str, str | None, str]]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute("select worker_id, renewal_id, phase, end, doc from renewals").fetchall()


def test_two_processes_in_any_interleaving_keep_the_ledgers_promises() -> None:
    with LedgerProcess() as one, LedgerProcess() as other:

        class Both(TwoProcesses):
            processes = (one, other)

        run_state_machine_as_test(
            Both,
            settings=settings(
                max_examples=25,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
            ),
        )


def test_of_many_that_open_or_notice_at_once_one_wins(tmp_path: Path) -> None:
    with LedgerProcess() as one, LedgerProcess() as other:
        for process in (one, other):
            process.ask("use", path=str(tmp_path / "ledger.db"))
        for number in range(50):
            for name, process in (("one", one), ("other", other)):
                process.begin("open", renewal_id=f"{name}{number}", worker_id=f"w{number}")
            assert sorted(map(str, (one.answer(), other.answer()))) == ["None", "RenewalInProgress"]
            for process in (one, other):
                process.begin("notice", worker_id="w", key=f"k{number}")
            assert sorted([one.answer(), other.answer()]) == [False, True]


# A renewal that is cut off


class Cut(BaseException):
    """The process ends here: nothing of it runs any more."""


@dataclass
class World:
    """What outlives the process: the agent, and what was typed to it."""

    typed: list[str] = field(default_factory=list)
    alive: bool = True
    stops: int = 0


@dataclass
class Circumstances:
    """What a renewal meets: whether it is still due, and the phase whose step cannot be done, if any."""

    due: bool
    fails_at: Phase | None


class Run:
    """One process that takes the renewal from where the ledger says it stands, until it ends or is cut off.

    *cuts* are numbers of acts, counted over all runs; an act is cut off before, within or behind its write.
    """

    def __init__(
        self, ledger: Ledger, world: World, meets: Circumstances, cuts: dict[int, str], done: list[str]
    ) -> None:
        self.ledger, self.world, self.meets, self.cuts, self.done = ledger, world, meets, cuts, done

    def go(self) -> str:
        if any(renewal.end is End.RENEWED for renewal in self.ledger.renewals_of("builder")):
            return "renewed"  # by a run that was cut off right behind its last write
        if not self._detect():
            return "spared"
        for step in (self._request, self._parse, self._save, self._stop, self._respawn, self._resume, self._prove):
            if not step():
                return "blocked"
        return "renewed"

    def _detect(self) -> bool:
        if self.ledger.record("builder").open_renewal is None:
            if not self.meets.due:
                return False
            self._act("open", lambda: self.ledger.open(opened()))
        return True

    def _request(self) -> bool:
        return self._reached(Phase.REQUESTED) or (self._typed("request") and self._advance(Phase.REQUESTED))

    def _parse(self) -> bool:
        return self._reached(Phase.PARSED) or self._advance(Phase.PARSED)

    def _save(self) -> bool:
        return self._reached(Phase.SAVED) or self._advance(Phase.SAVED)

    def _stop(self) -> bool:
        if self._reached(Phase.STOPPED):
            return True
        if not self._reached(Phase.STOPPING) and not self._advance(Phase.STOPPING):
            return False
        if self.world.alive:
            self._act("stop", self._end_agent)
        return self._advance(Phase.STOPPED)

    def _respawn(self) -> bool:
        if self._reached(Phase.RESPAWNED):
            return True
        if not self.world.alive:
            self._act("start", self._start_agent)
        return self._advance(Phase.RESPAWNED)

    def _resume(self) -> bool:
        return self._reached(Phase.RESUMED) or (self._typed("resume") and self._advance(Phase.RESUMED))

    def _prove(self) -> bool:
        if not self._reached(Phase.PROVED) and not self._advance(Phase.PROVED):
            return False
        self._put("renewed", end=End.RENEWED)
        return True

    def _end_agent(self) -> None:
        self.world.alive = False
        self.world.stops += 1

    def _start_agent(self) -> None:
        self.world.alive = True

    @property
    def _renewal(self) -> Renewal:
        return self.ledger.renewal("r1")

    def _reached(self, phase: Phase) -> bool:
        return self._renewal.phase.reached(phase)

    def _typed(self, text: str) -> bool:
        """The intent is written first; the text is typed only where the agent does not hold it yet."""
        if self._renewal.delivery is None or self._renewal.delivery.text != text:
            intent = Delivery(kind=text, text=text, after_row=0, began_at=BEGAN)
            self._put(f"intend {text}", delivery=intent)
        if text not in self.world.typed:
            self._act(f"type {text}", lambda: self.world.typed.append(text))
        return True

    def _advance(self, phase: Phase) -> bool:
        if self.meets.fails_at is phase:
            return False
        proofs = dict([PROOFS[phase]] if phase in PROOFS else [])
        moved = self._renewal.advanced(phase, BEGAN + timedelta(seconds=len(self.done)), **proofs)
        self._act(phase.value, lambda: self.ledger.put(moved))
        return True

    def _put(self, name: str, **changes: object) -> None:
        changed = self._renewal.model_copy(update=changes)
        self._act(name, lambda: self.ledger.put(changed))

    def _act(self, name: str, act: Callable[[], object]) -> None:
        cut = self.cuts.get(len(self.done))
        self.done.append(name)
        if cut == "before":
            raise Cut
        if cut == "within":
            with self.ledger.transaction():
                act()
                raise Cut
        act()
        if cut == "behind":
            raise Cut


@contextmanager
def fresh_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@settings(max_examples=100, deadline=None)
@given(
    due=st.sampled_from([True, True, True, False]),
    fails_at=st.none() | st.none() | st.sampled_from([*Phase][1:]),
    cuts=st.dictionaries(st.integers(0, 24), st.sampled_from(["before", "within", "behind"]), max_size=8),
)
def test_a_renewal_cut_off_at_any_write_comes_to_an_end(
    *, due: bool, fails_at: Phase | None, cuts: dict[int, str]
) -> None:
    world, meets, outcome = World(), Circumstances(due, fails_at), ""
    done: list[str] = []
    reached: list[Phase] = []
    with fresh_folder() as folder:
        for _ in range(len(cuts) + 1):
            with Ledger(folder / "ledger.db") as ledger:
                try:
                    outcome = Run(ledger, world, meets, cuts, done).go()
                except Cut:
                    stands = ledger.record("builder").open_renewal
                    reached += [stands.phase] if stands else []
                    continue
                break
        event(f"{outcome} with {sum(number < len(done) for number in cuts)} cuts")
        assert outcome in {"renewed", "spared", "blocked"}
        assert reached == sorted(reached, key=lambda phase: phase.rank)
        with Ledger(folder / "ledger.db") as ledger:
            _judge(ledger, outcome, world, fails_at)


def _judge(ledger: Ledger, outcome: str, world: World, fails_at: Phase | None) -> None:
    found = ledger.renewals_of("builder")
    assert world.typed.count("request") <= 1, "a request is sent once for one renewal"
    if outcome == "spared":
        assert (found, world.typed, world.stops) == ([], [], 0)
        return
    [renewal] = found
    assert renewal.saved is not None or world.stops == 0, "nothing is stopped before a handoff is saved"
    if outcome == "renewed":
        assert (renewal.end, renewal.phase, world.alive, world.stops) == (End.RENEWED, Phase.PROVED, True, 1)
        assert world.typed == ["request", "resume"]
        assert list(renewal.phase_times) == [phase.value for phase in Phase][1:]
    else:
        assert fails_at is not None
        assert (renewal.is_open, renewal.phase.rank) == (True, fails_at.rank - 1)


@pytest.mark.parametrize("how", ["before", "within", "behind"])
def test_every_single_write_of_a_renewal_can_be_the_last_of_its_process(tmp_path: Path, how: str) -> None:
    whole: list[str] = []
    with Ledger(tmp_path / "whole.db") as ledger:
        assert Run(ledger, World(), Circumstances(due=True, fails_at=None), {}, whole).go() == "renewed"
    assert len(whole) == 16
    for number, name in enumerate(whole):
        world, meets = World(), Circumstances(due=True, fails_at=None)
        done: list[str] = []
        path = tmp_path / f"{number}.db"
        with Ledger(path) as ledger, pytest.raises(Cut):
            Run(ledger, world, meets, {number: how}, done).go()
        with Ledger(path) as ledger:
            assert Run(ledger, world, meets, {}, done).go() == "renewed", name
            _judge(ledger, "renewed", world, None)
