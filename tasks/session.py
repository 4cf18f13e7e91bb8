"""Steps 5 to 8: the old session ends and a new one answers."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from lifecycle.host import Host
from lifecycle.renewal import Renewed, ResumePrompt, RunningSession, SavedHandoff, StoppedSession
from lifecycle.steps import proving, respawning, resuming, stopping
from lifecycle.worker import Worker
from tasks.retrying import RETRIES, RETRY_DELAYS, is_passing


@task(
    task_run_name="stop {worker.worker_id}",
    retries=RETRIES,
    retry_delay_seconds=RETRY_DELAYS,
    retry_condition_fn=is_passing,
    cache_policy=NO_CACHE,
)
def stop_worker(host: Host, worker: Worker, saved: SavedHandoff) -> StoppedSession:
    return stopping.stop_worker(host, worker, saved)


@task(
    task_run_name="respawn {worker.worker_id}",
    retries=RETRIES,
    retry_delay_seconds=RETRY_DELAYS,
    retry_condition_fn=is_passing,
    cache_policy=NO_CACHE,
)
def respawn_worker(host: Host, worker: Worker, stopped: StoppedSession) -> RunningSession:
    return respawning.respawn_worker(host, worker, stopped)


@task(
    task_run_name="send resume prompt to {worker.worker_id}",
    retries=RETRIES,
    retry_delay_seconds=RETRY_DELAYS,
    retry_condition_fn=is_passing,
    cache_policy=NO_CACHE,
)
def send_resume_prompt(host: Host, worker: Worker, running: RunningSession, saved: SavedHandoff) -> ResumePrompt:
    return resuming.send_resume_prompt(host, worker, running, saved)


@task(
    task_run_name="mark {worker.worker_id} healthy",
    retries=RETRIES,
    retry_delay_seconds=RETRY_DELAYS,
    retry_condition_fn=is_passing,
    cache_policy=NO_CACHE,
)
def mark_healthy(host: Host, worker: Worker, prompt: ResumePrompt) -> Renewed:
    return proving.mark_healthy(host, worker, prompt)
