"""afresh enable, disable, hold, release, start and adopt."""

from __future__ import annotations

from tests.deployments.conftest import Operator, table


def events(operator: Operator) -> list[str]:
    return [event["kind"] for event in operator("events", "--json").json]


def automatic(operator: Operator) -> dict[str, bool]:
    return {row["worker_id"]: row["automatic"] for row in operator("status", "--json").json}


def test_enable_and_disable_say_what_changed_and_change_once(afresh: Operator) -> None:
    assert afresh("enable", "swarm1").out == "automatic renewal of swarm1 is on\n"
    assert automatic(afresh) == {"swarm1": True}
    assert afresh("enable", "swarm1").out == "automatic renewal of swarm1 was on\n"
    assert events(afresh) == ["automatic"]
    assert afresh("disable", "swarm1", "--json").json == [
        {"worker_id": "swarm1", "change": "off", "message": "automatic renewal of swarm1 is off"}
    ]
    assert automatic(afresh) == {"swarm1": False}


def test_enable_all_means_every_managed_worker_and_no_other(afresh: Operator) -> None:
    afresh.configure(table("workers.alice", {}))
    (afresh.stage.ground.hermes_root / "profiles" / "workspace").mkdir()

    assert [entry["worker_id"] for entry in afresh("enable", "--all", "--json").json] == ["swarm1", "alice"]
    assert automatic(afresh) == {"swarm1": True, "alice": True, "workspace": False}


def test_a_name_that_is_wrong_changes_nothing_for_the_others(afresh: Operator) -> None:
    assert "swarm9 is unknown" in afresh("enable", "swarm1", "swarm9").refusal
    assert automatic(afresh) == {"swarm1": False}


def test_an_unmanaged_profile_is_not_enabled_held_or_started(afresh: Operator) -> None:
    (afresh.stage.ground.hermes_root / "profiles" / "workspace").mkdir()

    for command in ("enable", "hold", "release", "start", "renew"):
        assert "worker workspace is an unmanaged profile" in afresh(command, "workspace").refusal
    assert events(afresh) == []


def test_what_the_operator_says_overrules_the_configuration(afresh: Operator) -> None:
    afresh.configure(automatic=True)
    assert automatic(afresh) == {"swarm1": True}

    assert afresh("enable", "swarm1", "--json").json[0]["change"] == "none"
    afresh("disable", "swarm1")
    assert automatic(afresh) == {"swarm1": False}


def test_hold_and_release_are_the_same_twice(afresh: Operator) -> None:
    assert afresh("hold", "swarm1", "--why", "moving house").out == "swarm1 is held\n"
    assert afresh("hold", "swarm1", "--why", "other").out == "swarm1 is held already (moving house)\n"
    assert afresh("release", "swarm1").out == "swarm1 is released\n"
    assert afresh("release", "swarm1").out == "swarm1 was not held\n"
    assert events(afresh) == ["held", "released"]


def test_start_starts_an_absent_worker(afresh: Operator) -> None:
    done = afresh.process("start", "swarm1", "--json")

    assert (done.code, done.err) == (0, "")
    assert done.json == [
        {"worker_id": "swarm1", "change": "started", "message": "swarm1 runs in tmux session swarm-swarm1"}
    ]
    assert afresh.stage.is_ready()


def test_start_refuses_a_worker_that_runs_or_is_held(running: Operator) -> None:
    assert "the session swarm-swarm1 holds it (ready) already" in running("start", "swarm1").refusal
    running("hold", "swarm1")
    assert "`afresh release swarm1` first" in running("start", "swarm1").refusal
    assert len(running.stage.starts()) == 1


def test_a_start_that_fails_is_one_line_and_a_failure(afresh: Operator) -> None:
    afresh.stage.behave(failed_starts=9)

    done = afresh("start", "swarm1", "--json")

    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[-1] == "afresh: swarm1: it ended as soon as it was started; its pane shows why"


def test_adopt_prints_lines_that_make_the_worker_managed(running: Operator) -> None:
    alice = running.stage.another("alice")
    alice.session = "night shift"
    alice.start()
    alice.wait_ready()

    printed = running("adopt").out

    assert printed.startswith("# swarm1 in tmux session swarm-swarm1: is managed already\n# add to ")
    with running.toml.open("a") as file:
        file.write(printed)
    rows = {row["worker_id"]: row for row in running("status", "--json").json}
    assert (rows["alice"]["managed"], rows["alice"]["pane_state"]) == (True, "ready")
    assert [entry["managed"] for entry in running("adopt", "--json").json] == [True, True]


def test_adopt_says_so_where_nothing_runs(afresh: Operator) -> None:
    assert afresh("adopt").out == "# no agent runs in tmux\n"
    assert afresh("adopt", "--json").json == []
