"""afresh files diff and restore, afresh artifact show."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from lifecycle import artifacts
from lifecycle.collected import Collected
from lifecycle.renewal import End, Renewal
from lifecycle.snapshot import describe, snapshot_ref
from tests.deployments.conftest import COMMAND, REPOSITORY, Operator
from tests.lifecycle.repositories import CAPS, Tree

BEGAN = datetime(2026, 8, 1, 12, tzinfo=UTC)


class Past:
    """A worker whose generations ended with snapshots of one work tree."""

    def __init__(self, afresh: Operator) -> None:
        self.afresh = afresh
        self.tree = Tree(afresh.stage.root / "repo")
        self.generation = 0

    def snapshot(self) -> None:
        self.generation += 1
        ref = snapshot_ref("swarm1", self.generation)
        found, _ = describe(self.tree.repository(), ref, CAPS, message="x", keep=20)
        at = BEGAN + timedelta(hours=self.generation)
        with self.afresh.host() as host:
            host.ledger.open(
                Renewal(
                    renewal_id=f"r{self.generation}",
                    worker_id="swarm1",
                    generation=self.generation,
                    opened_at=at,
                    updated_at=at,
                    collected=Collected(at=at, cwd=self.tree.root, git=found),
                )
            )
            host.ledger.put(host.ledger.renewal(f"r{self.generation}").model_copy(update={"end": End.RENEWED}))


@pytest.fixture
def past(afresh: Operator) -> Past:
    """note.md was written in the first generation and changed in the second; kept.txt has changed since."""
    past = Past(afresh)
    past.tree.write("note.md", "first\n")
    past.snapshot()
    past.tree.write("note.md", "second\n")
    past.snapshot()
    past.tree.write("kept.txt", "a person's\n")
    return past


def test_the_difference_names_each_file_and_writes_nothing(past: Past) -> None:
    before = past.tree.marks()
    done = past.afresh("files", "diff", "swarm1", "--generation", "1")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"snapshot of generation 1, 2026-08-01 13:00:00Z, refs/afresh/swarm1/1 in {past.tree.root}",
        "changed  kept.txt  (changed since the newest snapshot)",
        "changed  note.md",
    ]
    assert past.tree.marks() == before


def test_the_difference_is_one_document_and_has_a_patch_when_asked(past: Past) -> None:
    found = past.afresh("files", "diff", "swarm1", "note.md", "--generation", "1", "--patch", "--json").json
    assert [(step["path"], step["act"]) for step in found["steps"]] == [("note.md", "overwrite")]
    assert "-first\n+second\n" in found["patch"]


def test_a_restore_shows_its_plan_and_does_nothing_without_yes(past: Past) -> None:
    before = past.tree.marks()
    done = past.afresh("files", "restore", "swarm1", "--generation", "1")
    assert done.code == 0
    assert done.out.splitlines()[1:] == [
        "keep       kept.txt  (changed since the newest snapshot)",
        "overwrite  note.md",
        "nothing was written; --yes does it",
    ]
    assert past.tree.marks() == before
    assert "rescue" not in past.tree.git("for-each-ref")
    shown = past.afresh("files", "restore", "swarm1", "--generation", "1", "--json").json
    assert (shown["done"], len(shown["steps"])) == (False, 2)


def test_with_yes_files_come_back_and_the_one_that_changed_since_is_kept_and_named(past: Past) -> None:
    done = past.afresh("files", "restore", "swarm1", "--generation", "1", "--yes")
    assert done.code == 1
    assert done.out.splitlines()[0] == "restored note.md"
    assert done.out.splitlines()[1].startswith("as it was before: refs/afresh/swarm1/rescue/")
    assert done.err.startswith("afresh: kept kept.txt: changed since the newest snapshot; the snapshot's: git show ")
    assert (past.tree.root / "note.md").read_text() == "first\n"
    assert (past.tree.root / "kept.txt").read_text() == "a person's\n"
    shown = done.err.partition("git show ")[2].strip()
    assert past.tree.git("show", shown) == "kept\n", "the very command that was named"


def test_named_paths_alone_are_restored(past: Past) -> None:
    done = past.afresh("files", "restore", "swarm1", "note.md", "--generation", "1", "--yes", "--json")
    assert (done.code, done.json["restored"], done.json["conflicts"]) == (0, ["note.md"], [])
    assert past.tree.in_commit(done.json["rescue"])["note.md"] == "second\n"


def test_a_generation_without_a_snapshot_is_refused_with_those_that_have_one(past: Past) -> None:
    refusal = past.afresh("files", "diff", "swarm1", "--generation", "7").refusal
    assert refusal == "swarm1 has no snapshot of generation 7; generations with one: 2, 1"


def test_a_worker_that_nobody_knows_is_refused(afresh: Operator) -> None:
    assert "swarm9" in afresh("files", "diff", "swarm9").refusal
    assert afresh("files", "diff", "swarm1").refusal == "swarm1 has no snapshot; generations with one: none"


def test_a_work_tree_that_is_gone_is_said(past: Past) -> None:
    past.tree.root.rename(past.tree.root.with_name("moved"))
    done = past.afresh("files", "diff", "swarm1")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"afresh: {past.tree.root}: the work tree of the snapshot is not there any more\n"


@pytest.fixture
def handle(afresh: Operator) -> str:
    text = "\n".join(f"packet {number}: counted" for number in range(1, 3_001))
    return artifacts.keep(afresh.stage.ground.home / "artifacts", text)[0]


def test_a_kept_result_is_printed_whole_in_part_or_by_what_it_holds(afresh: Operator, handle: str) -> None:
    assert afresh("artifact", "show", handle, "--lines", "2:3").out == "packet 2: counted\npacket 3: counted\n"
    assert afresh("artifact", "show", handle, "--lines", "2999:").out.count("\n") == 2
    assert afresh("artifact", "show", handle, "--lines", "7").out == "packet 7: counted\n"
    assert afresh("artifact", "show", handle, "--grep", "packet 29{3}:").out == "2999:packet 2999: counted\n"
    both = afresh("artifact", "show", handle, "--grep", "packet .?00:", "--lines", "1:500").out
    assert [line.partition(":")[0] for line in both.splitlines()] == ["100", "200", "300", "400", "500"]


def test_no_more_is_printed_than_a_context_can_bear_and_where_to_go_on_is_said(afresh: Operator, handle: str) -> None:
    done = afresh("artifact", "show", handle)
    assert (done.code, len(done.out) < 20_100) == (0, True)
    last = done.out.count("\n")
    assert done.err == (
        f"afresh: stopped in line {last} after 20,000 characters; {3_000 - last:,} more lines: --lines {last}:\n"
    )
    shown = afresh("artifact", "show", handle, "--json").json
    assert (shown["lines"], shown["left_out"], len(shown["shown"])) == (3_000, 3_000 - last, last)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--lines", "x:y"], "give FROM:TO"),
        (["--lines", "5-9"], "give FROM:TO"),
        (["--grep", "("], "is no regular expression"),
        (["--grep", "(.*)*(.*)*(.*)*x$"], "was not done after 2 s"),
    ],
)
def test_what_cannot_be_asked_is_one_line(afresh: Operator, handle: str, options: list[str], words: str) -> None:
    assert words in afresh("artifact", "show", handle, *options).refusal


@pytest.mark.parametrize("handle", ["0123456789ab", "../../etc/passwd", "x"])
def test_a_handle_of_nothing_is_one_line_and_exit_code_1(afresh: Operator, handle: str) -> None:
    done = afresh("artifact", "show", handle)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)


def test_showing_a_result_needs_no_configuration_and_loads_no_prefect(afresh: Operator, handle: str) -> None:
    afresh.toml.write_text("broken = [")
    script = (
        "import sys\nfrom deployments.cli import run\n"
        f"code = run(['artifact', 'show', {handle!r}, '--lines', '1:1'])\n"
        "print(code, sorted({'prefect', 'libtmux', 'sqlite_utils', 'tiktoken', 'psutil'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [COMMAND[0], "-c", script],
        cwd=REPOSITORY,
        env={"PATH": os.environ["PATH"], "AFRESH_HOME": str(afresh.stage.ground.home)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "packet 1: counted\n0 []\n"
