"""A run that reached a host for which it is not meant."""

from __future__ import annotations

from flows.answering import answer_worker
from flows.asking import request_handoff_only
from flows.recovery import recover_renewals
from flows.renewal import renew_worker
from flows.sweep import sweep_workers
from lifecycle.choice import Choice
from tests.flows.conftest import Scene


def test_a_run_that_is_meant_for_another_host_looks_at_nothing_and_says_so(scene: Scene) -> None:
    before = scene.user_texts()
    worker = scene.worker_id
    for state in (
        sweep_workers(renewals="here", host="elsewhere", return_state=True),
        renew_worker(worker, host="elsewhere", return_state=True),
        request_handoff_only(worker, host="elsewhere", return_state=True),
        answer_worker(worker, Choice.RETRY, host="elsewhere", return_state=True),
        recover_renewals(renewals="here", host="elsewhere", return_state=True),
    ):
        assert state.name == "Refused"
        assert "for host elsewhere" in (state.message or "")
    assert scene.user_texts() == before
    assert scene.events() == []
    with scene.host() as host:
        assert renew_worker(worker, host=host.settings.host_name, return_state=True).name == "Renewed"
