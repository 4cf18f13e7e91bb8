"""What a fresh reader found that broke the contract: each kind once, with the scripted agent."""

from __future__ import annotations

import stat
from typing import Any

import psutil
import pytest

from flows.asking import request_handoff_only
from flows.renewal import renew_worker
from flows.sweep import sweep_workers
from lifecycle.answering import answer
from lifecycle.choice import Choice
from lifecycle.renewal import End, Phase
from lifecycle.screen import Screen
from lifecycle.steps import stopping
from lifecycle.steps.standing import advance, amend
from lifecycle.terminal import Terminal
from tests.flows.conftest import Scene, acted


class Died(BaseException):
    """The flow process ends here, as by a kill: nothing behind it runs."""


def _die_at(monkeypatch: pytest.MonkeyPatch, phase: Phase) -> None:
    """End the run right after *phase* was written."""
    original = advance

    def dying(host: object, worker: object, renewal: object, reached: Phase, **proofs: object) -> object:
        moved = original(host, worker, renewal, reached, **proofs)  # type: ignore[arg-type]
        if reached is phase:
            raise Died
        return moved

    def stopping_dies(*_: object) -> object:
        raise Died

    for step in ("requesting", "parsing", "stopping"):
        monkeypatch.setattr(f"lifecycle.steps.{step}.advance", dying)
    if phase is Phase.SAVED:  # written in one transaction with the handoff, so the run ends behind it
        monkeypatch.setattr("flows.renewal.stop_worker", stopping_dies)


def _run_and_die(scene: Scene, monkeypatch: pytest.MonkeyPatch, phase: Phase, **parameters: Any) -> None:
    with monkeypatch.context() as patched:
        _die_at(patched, phase)
        with pytest.raises(Died):
            renew_worker(scene.worker_id, **parameters)
    assert scene.renewal.phase is phase


def test_a_handoff_that_is_only_stored_never_becomes_a_renewal(scene: Scene) -> None:
    scene.stage.behave(held=True)
    scene.configure(automatic=False, deadlines={"handoff_answer": 2})
    pid = scene.stage.pane_pid
    assert request_handoff_only(scene.worker_id, return_state=True).name == "Blocked"
    scene.stage.behave(held=False)
    scene.stage.wait_ready()

    sweep_workers(renewals="here")

    assert scene.stage.pane_pid == pid
    assert (scene.renewal.end, scene.renewal.stopped) == (End.SPARED, None)
    assert scene.stage.paths.shared_latest.exists(), "the late handoff is stored all the same"


def test_a_held_worker_is_not_taken_up(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    _run_and_die(scene, monkeypatch, Phase.SAVED)
    pid = scene.stage.pane_pid
    with scene.host() as host:
        host.ledger.remember(scene.worker_id, held_since=host.now(), held_why="mine")

    sweep_workers(renewals="here")
    assert scene.renew().name == "Spared"

    assert scene.stage.pane_pid == pid
    assert not any(text.startswith("RENEWAL_CANCELLED") for text in scene.user_texts()), "hands off"


def test_a_renewal_of_a_sweep_ends_where_automatic_was_switched_off(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run_and_die(scene, monkeypatch, Phase.SAVED, asked_by="sweep")
    pid = scene.stage.pane_pid
    scene.configure(automatic=False)

    sweep_workers(renewals="here")

    assert scene.stage.pane_pid == pid
    assert scene.renewal.end is End.SPARED
    assert scene.user_texts()[-1].startswith("RENEWAL_CANCELLED")


def test_an_interrupted_renewal_can_be_dismissed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    _run_and_die(scene, monkeypatch, Phase.REQUESTED)
    scene.stage.wait_ready()

    with scene.host() as host:
        answered = answer(host, host.worker(scene.worker_id), Choice.DISMISS, who="a test")

    assert not answered.goes_on
    assert scene.renewal.end is End.DISMISSED
    assert scene.user_texts()[-1].startswith("RENEWAL_CANCELLED")


def test_a_launcher_that_takes_its_time_leads_to_one_agent(scene: Scene) -> None:
    launcher = scene.stage.root / "bin" / "launcher"
    launcher.write_text(f"#!/bin/sh\nsleep 4\nexec {scene.stage.command[0]} chat --cli\n")
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    scene.configure(command=[str(launcher)], deadlines={"ready": 20})
    before = len(scene.stage.starts())

    assert scene.renew(asked_by="sweep").name == "Renewed"

    assert len(scene.stage.starts()) == before + 1
    assert scene.renewal.respawns == 1


def test_a_conversation_that_was_begun_after_the_handoff_is_not_ended(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run_and_die(scene, monkeypatch, Phase.SAVED)
    pid = scene.stage.pane_pid
    scene.stage.answer_to(scene.stage.say("a person goes on with something else"))
    scene.stage.wait_ready()

    state = scene.renew()

    assert (state.name, scene.block.reason) == ("Blocked", "handoff_outdated")
    assert scene.stage.pane_pid == pid


def test_a_run_that_died_before_it_ended_the_worker_looks_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    _run_and_die(scene, monkeypatch, Phase.STOPPING)
    pid = scene.stage.pane_pid
    scene.stage.answer_to(scene.stage.say("work that came after the handoff"))
    scene.stage.wait_ready()

    state = scene.renew()

    assert (state.name, scene.block.reason, scene.block.worker_down) == ("Blocked", "handoff_outdated", False)
    assert scene.stage.pane_pid == pid


def test_an_agent_whose_session_was_renamed_is_never_doubled(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    _run_and_die(scene, monkeypatch, Phase.SAVED)
    pid = scene.stage.pane_pid
    scene.stage.ground.tmux("rename-session", "-t", f"={scene.stage.session}", "elsewhere")

    state = scene.renew()

    assert state.name == "Blocked"
    assert psutil.pid_exists(pid)
    assert scene.stage.starts() == [pid] or len(scene.stage.starts()) == 1


def test_a_window_in_front_keeps_its_place_and_the_agent_its_pane(scene: Scene) -> None:
    tmux = scene.stage.ground.tmux
    pane = scene.stage.format("#{pane_id}")
    tmux("new-window", "-b", "-t", f"={scene.stage.session}:0", "-n", "front", "sleep 600")

    assert scene.renew(asked_by="sweep").name == "Renewed"

    panes = tmux("list-panes", "-s", "-t", f"={scene.stage.session}", "-F", "#{pane_id} #{window_name}").split("\n")
    assert len([line for line in panes if line]) == 2
    assert scene.renewal.running is not None
    assert scene.renewal.running.pane_id == pane


def test_the_agent_keeps_its_pane_where_tmux_hears_late_that_the_old_one_has_ended(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane, capture, late = scene.stage.format("#{pane_id}"), Terminal.capture, list[Screen]()

    def captured(self: Terminal, pane_id: str) -> Screen | None:
        screen = capture(self, pane_id)
        if screen is None or not screen.dead or len(late) > 3:
            return screen
        late.append(screen)
        return screen.model_copy(update={"dead": False, "exit_status": None})

    monkeypatch.setattr(Terminal, "capture", captured)
    assert scene.renew(asked_by="sweep").name == "Renewed"

    assert late
    assert scene.renewal.running is not None
    assert scene.renewal.running.pane_id == pane


def test_a_step_that_only_stores_is_refused_the_stop(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    _run_and_die(scene, monkeypatch, Phase.SAVED)
    with scene.host() as host:
        renewal = amend(host, scene.renewal, purpose="handoff")
        assert renewal.saved is not None
        with pytest.raises(Exception, match="only stores"):
            stopping.stop_worker(host, host.worker(scene.worker_id), renewal.saved)


def test_what_nobody_foresaw_behind_the_stop_calls_a_human_in_the_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> object:
        msg = "nobody foresaw this"
        raise RuntimeError(msg)

    monkeypatch.setattr("flows.renewal.respawn_worker", breaks)

    ends = [acted(sweep_workers(renewals="here", return_state=True)) for _ in range(5)]

    assert [[entry["outcome"] for entry in end] for end in ends] == [["failed"]] * 4 + [["blocked"]]
    assert (scene.block.reason, scene.block.phase, scene.block.worker_down) == ("stuck", Phase.STOPPED, True)
    assert scene.notices().count("swarm1: blocked: stuck") == 1
