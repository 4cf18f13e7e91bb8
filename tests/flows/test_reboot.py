"""What comes back after a reboot, and what stays down. The boot id is patched; agents and tmux really go down."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from flows.sweep import sweep_workers
from lifecycle.ledger import Ledger
from lifecycle.lock import held
from lifecycle.renewal import End, Phase, Quality
from lifecycle.starting import start_worker
from tests.agents.ground import has_ended
from tests.agents.stage import Stage
from tests.flows.conftest import Scene, acted

Reboot = Callable[[], None]


@pytest.fixture
def crew(scene: Scene) -> dict[str, Stage]:
    """Three workers that run: automatic renewal is on for each."""
    stages = {"swarm1": scene.stage, "swarm2": scene.stage.another("swarm2"), "swarm3": scene.stage.another("swarm3")}
    for name in ("swarm2", "swarm3"):
        stages[name].start()
        stages[name].wait_ready()
        stages[name].fill(20_000)
    scene.configure(policy={"soft": 100_000, "handoff": 110_000, "hard": 115_000})
    _declare(scene, stages)
    return stages


@pytest.fixture
def reboot(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Reboot:
    """The host goes down at once, with every agent and its tmux server, and comes up with another boot id."""

    def down() -> None:
        lose_tmux(scene)
        monkeypatch.setattr("lifecycle.host.boot_id", lambda: "the-boot-after")

    return down


def lose_tmux(scene: Scene) -> None:
    ground = scene.stage.ground
    pids = [int(pid) for pid in ground.tmux("list-panes", "-a", "-F", "#{pane_pid}", check=False).split()]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    ground.tmux("kill-server", check=False)
    for pid in pids:
        scene.stage.wait(partial(has_ended, pid), 60, f"the end of {pid}")


def sweep(**parameters: Any) -> dict[str, tuple[str, str]]:
    """What was done for each worker: the action and its outcome."""
    state = sweep_workers(renewals="here", return_state=True, **parameters)
    return {entry["worker_id"]: (entry["action"], entry["outcome"]) for entry in acted(state)}


def is_up(stage: Stage) -> bool:
    return f"{stage.session}\n" in stage.ground.tmux("list-sessions", "-F", "#{session_name}", check=False)


def test_only_those_come_back_that_were_alive_and_may_be_started(
    scene: Scene, crew: dict[str, Stage], reboot: Reboot
) -> None:
    assert sweep() == {}
    with scene.host() as host:
        host.ledger.remember("swarm2", held_since=host.now(), held_why="by its operator")
    crew["swarm3"].stop()
    assert sweep() == {}
    starts = {name: stage.starts() for name, stage in crew.items()}
    reboot()

    assert sweep() == {"swarm1": ("start", "renewed")}

    assert [is_up(stage) for stage in crew.values()] == [True, False, False]
    assert [crew[name].starts() for name in ("swarm2", "swarm3")] == [starts["swarm2"], starts["swarm3"]]
    assert len(crew["swarm1"].starts()) == len(starts["swarm1"]) + 1
    assert sweep() == {}, "run twice it starts nothing twice"
    assert scene.notices().count("host rebooted") == 1


def _declare(scene: Scene, crew: dict[str, Stage]) -> None:
    path = scene.stage.ground.home / "afresh.toml"
    for name in ("swarm2", "swarm3"):
        lines = f'cwd = "{crew[name].cwd}"\ncommand = ["{crew[name].command[0]}", "chat", "--cli"]\n'
        path.write_text(path.read_text() + f"\n[workers.{name}]\nautomatic = true\n{lines}")


def test_it_comes_back_with_its_last_handoff_under_a_banner_of_what_is_unknown(scene: Scene, reboot: Reboot) -> None:
    assert sweep()["swarm1"] == ("renew", "renewed")
    scene.stage.wait_ready()
    before = scene.renewal
    assert before.saved is not None
    scene.stage.answer_to(scene.stage.say("weigh the seeds of drawer nine"))
    scene.stage.wait_ready()
    sweep()
    reboot()

    assert sweep()["swarm1"] == ("start", "renewed")

    renewal = scene.renewal
    assert renewal.saved is not None
    assert (renewal.saved.quality, renewal.end) == (Quality.WRITTEN, End.RENEWED)
    text = renewal.saved.archive.read_text()
    banner, _, sections = text.partition("## Current state")
    assert "## Interrupted by a reboot" in banner
    assert "weigh the seeds of drawer nine" in banner
    assert before.renewal_id in banner
    assert str(scene.stage.cwd) in banner
    assert "Drawer one has 48 packets" in sections
    assert before.saved.next_action in renewal.saved.next_action
    resume = [text for text in scene.user_texts() if text.startswith("RESUME_AFTER_HANDOFF")][-1]
    assert str(renewal.saved.archive) in resume
    assert "The host was rebooted under your old session." in resume


def test_without_a_stored_handoff_it_comes_back_with_a_synthesized_one(scene: Scene, reboot: Reboot) -> None:
    scene.configure(policy={"soft": 100_000, "handoff": 110_000, "hard": 115_000})
    sweep()
    reboot()

    assert sweep()["swarm1"] == ("start", "renewed")
    saved = scene.renewal.saved
    assert saved is not None
    assert saved.quality is Quality.SYNTHESIZED
    assert "It had stored no handoff" in saved.archive.read_text()


def test_a_worker_that_the_operator_ends_after_it_came_back_stays_down(scene: Scene, reboot: Reboot) -> None:
    sweep()
    reboot()
    assert sweep()["swarm1"] == ("start", "renewed")
    starts = scene.stage.starts()
    scene.stage.stop()

    assert sweep() == {}
    assert sweep() == {}
    assert scene.stage.starts() == starts


def test_a_worker_that_the_operator_started_after_the_reboot_and_ended_again_stays_down(
    scene: Scene, reboot: Reboot
) -> None:
    sweep()
    reboot()
    with scene.host() as host:
        worker = host.worker("swarm1")
        with held(host.paths(worker).lock):
            assert "it was told nothing" in start_worker(host, worker, who="alex")
    starts = scene.stage.starts()
    scene.stage.stop()

    assert sweep() == {}
    assert scene.stage.starts() == starts


def test_an_exit_and_a_killed_session_without_a_reboot_are_never_undone(scene: Scene) -> None:
    scene.configure(policy={"soft": 100_000, "handoff": 110_000, "hard": 115_000})
    sweep()
    scene.stage.stop()

    assert sweep() == {}
    assert sweep() == {}
    assert not is_up(scene.stage)
    assert [subject for subject in scene.notices() if "none" in subject] == ["swarm1: none"]


def test_a_lost_tmux_server_is_one_incident_and_starts_nothing(scene: Scene, crew: dict[str, Stage]) -> None:  # T7
    sweep()
    told = scene.notices()
    lose_tmux(scene)

    assert sweep() == {}
    assert sweep() == {}

    assert scene.notices()[len(told) :] == ["tmux server gone"]
    assert not any(map(is_up, crew.values()))
    with scene.host() as host:
        assert host.ledger.open_renewals() == []


@pytest.mark.parametrize("phase", [Phase.REQUESTED, Phase.PARSED, Phase.STOPPING, Phase.RESPAWNED])
def test_a_reboot_in_the_middle_of_a_renewal_ends_with_the_worker_at_work(
    scene: Scene, reboot: Reboot, monkeypatch: pytest.MonkeyPatch, phase: Phase
) -> None:
    sweep_until(scene, monkeypatch, phase)
    reboot()

    first, second = sweep(), sweep()

    assert ("renewed" in first.get("swarm1", ())) or ("renewed" in second.get("swarm1", ()))
    assert is_up(scene.stage)
    with scene.host() as host:
        assert host.ledger.open_renewals() == []
        assert host.ledger.renewals_of("swarm1")[0].end is End.RENEWED
    assert sweep() == {}


class PowerCut(BaseException):
    """The process is gone at this very moment."""


def sweep_until(scene: Scene, monkeypatch: pytest.MonkeyPatch, phase: Phase) -> None:
    """Renew, and let the power fail when *phase* has just been written, with all that is written with it."""
    transaction = Ledger.transaction

    @contextmanager
    def cut(self: Ledger) -> Iterator[None]:
        with transaction(self):
            yield
        newest = next(iter(self.renewals_of("swarm1", limit=1)), None)
        if newest is not None and newest.phase is phase and not self._connection.in_transaction:
            raise PowerCut

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "transaction", cut)
        with pytest.raises(PowerCut):
            scene.renew(asked_by="sweep")
    assert scene.renewal.phase is phase


def test_a_bring_back_that_fails_is_a_block_that_says_the_worker_is_down(scene: Scene, reboot: Reboot) -> None:
    sweep()
    reboot()
    scene.stage.behave(failed_starts=99)

    assert sweep()["swarm1"] == ("start", "blocked")
    assert (scene.block.reason, scene.block.worker_down) == ("not_ready", True)
    assert sweep() == {}
