from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from lifecycle.adopting import Proposal, proposals
from lifecycle.host import Host
from lifecycle.settings import load_settings
from tests.agents.stage import Stage


def config(stage: Stage, text: str = "") -> Path:
    path = stage.ground.home / "afresh.toml"
    path.write_text(f'socket = "{stage.ground.socket}"\n{text}')
    path.chmod(0o600)
    return path


def found(stage: Stage) -> list[Proposal]:
    with Host.opened(load_settings(environ=stage.ground.environment)) as host:
        return proposals(host)


@pytest.fixture
def alice(empty_stage: Stage) -> Stage:
    """A profile that no one declared, with an agent in a session of its own name."""
    alice = empty_stage.another("alice")
    alice.session = "my work"
    config(alice)
    alice.start()
    alice.wait_ready()
    return alice


def test_an_agent_of_an_undeclared_profile_is_found_where_it_runs(alice: Stage) -> None:
    (proposal,) = found(alice)

    assert (proposal.worker_id, proposal.managed, proposal.session) == ("alice", False, "my work")
    assert proposal.profile.samefile(alice.profile)
    assert tomllib.loads(proposal.toml) == {
        "workers": {"alice": {"profile": str(alice.profile), "session": "my work", "cwd": str(alice.cwd)}}
    }


def test_the_proposed_lines_make_the_worker_managed(alice: Stage) -> None:
    path = alice.ground.home / "afresh.toml"
    path.write_text(path.read_text() + found(alice)[0].toml)

    with Host.opened(load_settings(environ=alice.ground.environment)) as host:
        assert host.worker("alice").managed
        assert host.look(host.worker("alice")).agent_pid == alice.pane_pid
    (again,) = found(alice)
    assert (again.worker_id, again.managed, again.toml) == ("alice", True, "")


def test_a_managed_worker_is_found_as_such(stage: Stage) -> None:
    config(stage)

    (proposal,) = found(stage)

    assert (proposal.worker_id, proposal.managed, proposal.toml, proposal.note) == ("swarm1", True, "", "")


def test_a_managed_worker_in_another_session_is_proposed_with_that_session(empty_stage: Stage) -> None:
    config(empty_stage)
    empty_stage.session = "elsewhere"
    empty_stage.start()
    empty_stage.wait_ready()

    (proposal,) = found(empty_stage)

    assert (proposal.worker_id, proposal.managed) == ("swarm1", False)
    assert tomllib.loads(proposal.toml)["workers"]["swarm1"]["session"] == "elsewhere"


def test_a_table_that_is_there_already_is_not_proposed_twice(empty_stage: Stage) -> None:
    config(empty_stage, "[workers.swarm1]\n")
    empty_stage.session = "elsewhere"
    empty_stage.start()
    empty_stage.wait_ready()

    (proposal,) = found(empty_stage)

    assert proposal.toml == ""
    assert proposal.note == '[workers.swarm1] is there already: set session = "elsewhere" in it'


def test_a_profile_whose_name_is_no_worker_id_is_named_by_its_session(empty_stage: Stage) -> None:
    profile = empty_stage.profile.rename(empty_stage.profile.with_name("My_Profile"))
    empty_stage.profile = profile
    config(empty_stage)
    empty_stage.session = "swarm-night-shift"
    empty_stage.start()
    empty_stage.wait(lambda: found(empty_stage), 60, "the agent")

    (proposal,) = found(empty_stage)

    assert proposal.worker_id == "night-shift"
    assert tomllib.loads(proposal.toml)["workers"]["night-shift"]["profile"] == str(profile)


def test_two_agents_on_one_profile_are_one_proposal_that_says_so(alice: Stage) -> None:
    alice.behave(sessions=2)
    alice.ground.tmux("new-session", "-d", "-s", "second", "-e", f"HERMES_HOME={alice.profile}", *alice.command)

    alice.wait(lambda: found(alice)[0].note, 60, "the second agent")

    (proposal,) = found(alice)
    assert proposal.note == "another agent runs on this profile in session second"


def test_panes_without_an_agent_and_a_server_that_does_not_run_propose_nothing(empty_stage: Stage) -> None:
    config(empty_stage)
    assert found(empty_stage) == []
    empty_stage.ground.tmux("new-session", "-d", "-s", "shell", "sleep", "600")
    assert found(empty_stage) == []
