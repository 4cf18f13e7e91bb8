"""What a Hermes profile's configuration means for a worker that Afresh renews (Hermes 0.19's keys and defaults)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lifecycle.agents.hermes.config_file import ConfigBroken, read_config
from lifecycle.agents.hermes.configuration import ModelSetup, read_setup
from lifecycle.agents.hermes.display import QUEUE, input_settings
from lifecycle.policy import CAPS, Policy
from lifecycle.remark import Remark, advice, trouble
from lifecycle.worker import Worker


def remarks(worker: Worker) -> list[Remark]:
    """What should be set otherwise in the worker's config.yaml, worst first; empty where nothing is."""
    path = worker.profile / "config.yaml"
    try:
        config = read_config(worker.profile)
    except ConfigBroken:
        return []  # the preflight says it
    found = [
        *_window(worker, path),
        *_limits(worker, path),
        *_compression(worker, path, _table(config.get("compression"))),
        *_input(worker, path),
        *_others(worker, path, config),
    ]
    return sorted(found, key=lambda remark: remark.verdict != "trouble")


def _window(worker: Worker, path: Path) -> list[Remark]:
    if read_setup(worker.profile).window is not None:
        return []
    fix = f"set `model: {{context_length: N}}` in {path}"
    return [advice(worker.worker_id, "nobody says how large its model's window is, so its limits are not capped", fix)]


def _limits(worker: Worker, path: Path) -> list[Remark]:
    """Limits that were asked for and cannot hold, for the agent compacts before."""
    policy, setup = worker.policy, read_setup(worker.profile)
    point = setup.compaction_point(setup.usable(window=None, max_tokens=None), window=None, logged=None)
    if point is None or policy.signal == "session_total":
        return []
    if policy.uncapped:
        if point > policy.handoff:
            return []
        says = f"it compacts at {point:,} tokens, before the uncapped handoff limit of {policy.handoff:,} is reached"
        return [trouble(worker.worker_id, says, _raise_threshold(setup, path))]
    if not _chosen(policy) or point * CAPS[1] >= policy.handoff:
        return []
    says = (
        f"it compacts at {point:,} tokens, so its limits are capped at {int(point * CAPS[0]):,} / "
        f"{int(point * CAPS[1]):,} / {int(point * CAPS[2]):,}; {policy.handoff:,} was asked for"
    )
    return [advice(worker.worker_id, says, _raise_threshold(setup, path))]


def _chosen(policy: Policy) -> bool:
    """Whether an operator set the limits; the defaults are meant to be capped."""
    usual = Policy()
    return (policy.soft, policy.handoff, policy.hard) != (usual.soft, usual.handoff, usual.hard)


def _raise_threshold(setup: ModelSetup, path: Path) -> str:
    return f"lower the worker's limits, or raise `compression: {{threshold: …}}` (now {setup.share:g}) in {path}"


def _compression(worker: Worker, path: Path, compression: dict[str, Any]) -> list[Remark]:
    found = []
    if not _is_on(compression.get("abort_on_summary_failure"), default=False):
        says = "when its summary fails, a compaction replaces the conversation by a fallback text"
        found.append(advice(worker.worker_id, says, f"set `compression: {{abort_on_summary_failure: true}}` in {path}"))
    if not _is_on(compression.get("in_place"), default=True):
        says = "a compaction moves it to a new session id; Afresh follows, but other tools lose it"
        found.append(advice(worker.worker_id, says, f"set `compression: {{in_place: true}}` in {path}"))
    if not _is_on(compression.get("enabled"), default=True):
        says = "it never compacts: a worker that cannot be renewed in time runs into its window"
        found.append(advice(worker.worker_id, says, f"set `compression: {{enabled: true}}` in {path}"))
    return found


def _input(worker: Worker, path: Path) -> list[Remark]:
    found, settings = [], input_settings(worker.profile)
    if settings.busy_input_mode != QUEUE:
        mode = settings.busy_input_mode or "the default, interrupt in the classic face"
        says = f"text sent while it works is not queued (busy mode: {mode}), so a busy worker can only be waited for"
        found.append(advice(worker.worker_id, says, f"set `display: {{busy_input_mode: queue}}` in {path}"))
    if settings.collapses_long_pastes:
        says = "its TUI collapses long pastes, and one that waits for the end of a turn loses its text"
        fix = f"set `paste_collapse_threshold: 0` and `paste_collapse_char_threshold: 0` in {path}"
        found.append(advice(worker.worker_id, says, fix))
    return found


def _others(worker: Worker, path: Path, config: dict[str, object]) -> list[Remark]:
    found = []
    approvals = _table(config.get("approvals"))
    if str(approvals.get("mode", "smart")).lower() == "manual":
        says = "it asks a human before commands it thinks dangerous, and a handoff waits as long as the dialog is open"
        found.append(advice(worker.worker_id, says, f"set `approvals: {{mode: smart}}` in {path} if the night is long"))
    if config.get("max_concurrent_sessions") != 1:
        says = "nothing keeps a second agent off this profile"
        found.append(advice(worker.worker_id, says, f"set `max_concurrent_sessions: 1` in {path}"))
    return found


def _is_on(value: object, *, default: bool) -> bool:
    """Hermes's own test of a switch."""
    return default if value is None else str(value).lower() in {"true", "1", "yes"}


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
