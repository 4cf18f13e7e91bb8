from __future__ import annotations

from pathlib import Path

import pytest

from lifecycle.errors import InvalidWorkerId, RosterError, UnknownWorker
from lifecycle.roster import find_worker, load_workers
from lifecycle.settings import Settings, load_settings
from lifecycle.worker import Worker

ROSTER = """\
version: 1
workers:
- id: orchestrator
  name: Orchestrator
  model: GPT-5.5
  mission: Route work.
  wrapper: orchestrator:plan
  defaultCwd: ~/work
  greenlightRequiredFor: [merge, publish]
  maxConcurrentTasks: 1
  futureKey: {deep: true}
- id: builder
  profile: builder-two
"""


class Home:
    """A home folder with profiles, a roster and a configuration."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.setenv("HOME", str(folder))
        self.configure()

    def configure(self, text: str = "") -> None:
        (self.folder / ".afresh").mkdir(exist_ok=True)
        path = self.folder / ".afresh" / "afresh.toml"
        path.write_text(text)
        path.chmod(0o600)

    def enlist(self, text: str) -> Path:
        path = self.folder / "hermes-workspace" / "swarm.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def profiles(self, *names: str) -> None:
        for name in names:
            (self.folder / ".hermes" / "profiles" / name).mkdir(parents=True, exist_ok=True)

    @property
    def settings(self) -> Settings:
        return load_settings(environ={"HOME": str(self.folder)})

    def workers(self) -> dict[str, Worker]:
        return {worker.worker_id: worker for worker in load_workers(self.settings)}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return Home(tmp_path, monkeypatch)


def test_without_roster_and_profiles_there_is_nobody(home: Home) -> None:
    assert home.workers() == {}


def test_roster_configuration_and_numbered_profiles_are_managed_and_no_others(home: Home) -> None:
    """W-31: personal profiles got prompts and restarts."""
    home.enlist(ROSTER)
    home.configure('[workers.alice]\n[workers.builder]\nsession = "b"\n')
    home.profiles(
        "swarm10", "swarm2", "workspace", "default", "alice", "builder", "builder-two", "swarm2.bak", ".trash"
    )
    found = {worker_id: worker.managed for worker_id, worker in home.workers().items()}
    assert list(found) == ["orchestrator", "builder", "alice", "swarm2", "swarm10", "default", "workspace"]
    assert [worker_id for worker_id, managed in found.items() if not managed] == ["default", "workspace"]


def test_a_roster_entry_becomes_a_worker(home: Home) -> None:
    home.enlist(ROSTER)
    worker = home.workers()["orchestrator"]
    assert worker == Worker(
        worker_id="orchestrator",
        profile=home.folder / ".hermes" / "profiles" / "orchestrator",
        session="swarm-orchestrator",
        cwd=home.folder / "work",
        greenlight_required_for=("merge", "publish"),
        roster_mission="Route work.",
        wrapper=home.folder / ".local" / "bin" / "orchestrator:plan",
    )
    assert home.workers()["builder"].profile == home.folder / ".hermes" / "profiles" / "builder-two"


def test_the_configuration_wins_over_the_roster_and_the_roster_over_defaults(home: Home) -> None:
    home.enlist(ROSTER)
    home.configure(
        'automatic = true\nsocket = "main"\n'
        "[workers.orchestrator]\n"
        'profile = "~/elsewhere"\nsession = "boss"\nsocket = "other"\ncwd = "/srv"\ncommand = ["hermes", "--cli"]\n'
        'automatic = false\nenvironment = {A = "1"}\npolicy = {soft = 1000}\n'
    )
    worker = home.workers()["orchestrator"]
    assert (worker.profile, worker.cwd) == (home.folder / "elsewhere", Path("/srv"))
    assert (worker.session, worker.socket, worker.command) == ("boss", "other", ("hermes", "--cli"))
    assert (worker.automatic, worker.environment, worker.policy.soft) == (False, {"A": "1"}, 1000)
    assert worker.greenlight_required_for == ("merge", "publish")
    builder = home.workers()["builder"]
    assert (builder.automatic, builder.socket, builder.policy.soft) == (True, "main", 250_000)


def test_an_unmanaged_profile_is_never_automatic(home: Home) -> None:
    home.configure("automatic = true\n")
    home.profiles("personal", "swarm1")
    found = home.workers()
    assert (found["personal"].automatic, found["swarm1"].automatic) == (False, True)


def test_the_rosters_model_is_only_a_label(home: Home) -> None:
    """hermes-workspace #236: the label says nothing about the model that runs."""
    home.enlist(ROSTER)
    home.configure('[models."GPT-*"]\nsoft = 10\n')
    assert home.workers()["orchestrator"].policy.soft == 250_000


def test_a_wrapper_of_the_workers_name_is_taken_only_where_it_exists(home: Home) -> None:
    home.profiles("swarm1", "swarm2")
    wrapper = home.folder / ".local" / "bin" / "swarm1"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text("#!/bin/sh\n")
    assert home.workers()["swarm1"].wrapper == wrapper
    assert home.workers()["swarm2"].wrapper is None


@pytest.mark.parametrize("text", ["", "version: 1\n", "workers:\n", "workers: []\n"])
def test_an_empty_roster_is_no_error(home: Home, text: str) -> None:
    home.enlist(text)
    assert home.workers() == {}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("workers: [", "not valid YAML"),
        ("a: 1\na: 2\n", "not valid YAML"),
        ("workers: {a: b}\n", "workers must be a list"),
        ("- id: builder\n", "workers must be a list"),
        ("workers:\n- name: x\n", "worker 1: id: Field required"),
        ("workers:\n- id: ok\n- id: ../bad\n", "worker 2: id: '../bad' is not a worker id"),
        ("workers:\n- id: 7\n", "worker 1: id"),
        ("workers:\n- text\n", "worker 1"),
        ("workers:\n- id: a\n- id: a\n", "worker 2: a is listed twice"),
        ("workers:\n- id: a\n  profile: ../b\n", r"worker 1 \('a'\): profile: '../b' is not a worker id"),
        ("workers:\n- id: a\n  wrapper: ../../bin/sh\n", r"worker 1 \('a'\): wrapper"),
        ("workers:\n- id: a\n  defaultCwd: 5\n", r"worker 1 \('a'\): defaultCwd"),
        ("workers:\n- id: a\n  greenlightRequiredFor: merge\n", r"worker 1 \('a'\): greenlightRequiredFor"),
    ],
)
def test_a_roster_that_cannot_be_used_is_an_error_that_names_file_and_entry(
    home: Home, text: str, complaint: str
) -> None:
    """The reference system fell back in silence to every profile folder there was."""
    path = home.enlist(text)
    with pytest.raises(RosterError, match=complaint) as caught:
        home.workers()
    assert str(caught.value).startswith(f"{path}: ")


def test_a_roster_that_is_named_must_exist(home: Home) -> None:
    home.configure('roster = "~/other.yaml"\n')
    with pytest.raises(RosterError, match=r"other\.yaml: no such roster"):
        home.workers()
    (home.folder / "other.yaml").write_text("workers:\n- id: tester\n  defaultCwd: src\n")
    assert home.workers()["tester"].cwd == home.folder / "src"


def test_a_roster_that_is_no_text_is_an_error(home: Home) -> None:
    home.enlist("").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RosterError, match="cannot be read"):
        home.workers()


def test_a_worker_is_found_by_its_exact_id(home: Home) -> None:
    home.profiles("swarm1", "swarm10")
    assert find_worker(home.settings, "swarm1").worker_id == "swarm1"


def test_an_unknown_worker_is_refused_with_the_list_of_managed_ones(home: Home) -> None:
    home.profiles("swarm1", "swarm2", "personal")
    with pytest.raises(UnknownWorker, match=r"worker swarm is unknown; managed workers: swarm1, swarm2$"):
        find_worker(home.settings, "swarm")
    with pytest.raises(UnknownWorker, match=r"unmanaged profile.*\[workers\.personal\].*swarm1, swarm2$"):
        find_worker(home.settings, "personal")


def test_what_is_no_id_is_refused_before_anything_is_read(home: Home) -> None:
    home.enlist("workers: [")
    with pytest.raises(InvalidWorkerId):
        find_worker(home.settings, "../swarm1")
