"""Steps 5 to 8: the old session ends and a new one answers."""

from __future__ import annotations

from lifecycle.host import Host
from lifecycle.renewal import Renewed, ResumePrompt, RunningSession, SavedHandoff, StoppedSession
from lifecycle.steps import proving, respawning, resuming, stopping
from lifecycle.worker import Worker
from tasks.retrying import step


@step("stop {worker.worker_id}", waits_for="idle_before_stop")
def stop_worker(host: Host, worker: Worker, saved: SavedHandoff) -> StoppedSession:
    return stopping.stop_worker(host, worker, saved)


@step("respawn {worker.worker_id}", waits_for="ready")
def respawn_worker(host: Host, worker: Worker, stopped: StoppedSession) -> RunningSession:
    return respawning.respawn_worker(host, worker, stopped)


@step("send resume prompt to {worker.worker_id}")
def send_resume_prompt(host: Host, worker: Worker, running: RunningSession, saved: SavedHandoff) -> ResumePrompt:
    return resuming.send_resume_prompt(host, worker, running, saved)


@step("mark {worker.worker_id} healthy", waits_for="resume_answer")
def mark_healthy(host: Host, worker: Worker, prompt: ResumePrompt) -> Renewed:
    return proving.mark_healthy(host, worker, prompt)
