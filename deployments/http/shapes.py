"""What is answered, in the reference system's field names (`/api/swarm-lifecycle`); ours stand beside them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from deployments.http.fleet import Snapshot
from lifecycle.decision import Action
from lifecycle.detail import WorkerDetail
from lifecycle.status import WorkerStatus

SWEPT = {
    Action.RENEW.value: "renew",
    Action.START.value: "renew",
    Action.HANDOFF.value: "request-handoff",
}
"""The reference system's words for what a sweep does; for all else it has `none`."""


def camel(value: Any) -> Any:
    """The same JSON with `snake_case` keys as `camelCase`."""
    if isinstance(value, dict):
        return {re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), key): camel(one) for key, one in value.items()}
    return [camel(one) for one in value] if isinstance(value, list) else value


def milliseconds(at: datetime | None) -> int | None:
    """As the reference system writes moments."""
    return round(at.timestamp() * 1000) if at is not None else None


def row_of(snapshot: Snapshot, status: WorkerStatus) -> dict[str, Any]:
    """The reference system's SwarmLifecycleStatus, with the fields of `afresh status --json` beside it.

    `totalTokens` is its figure, a lifetime bill; `tokens` is what the next call carries, and decides.
    """
    billed, limits = status.billed, status.policy
    row: dict[str, Any] = camel(
        status.model_dump(mode="json", exclude={"billed", "policy", "last_handoff_at", "profile"})
    )
    placed = next((one for one in snapshot.waiting if one.worker_id == status.worker_id), None)
    if placed is not None and row["block"] is not None:
        row["block"] |= {"evidence": placed.block.evidence, "remedy": placed.remedy}
    return row | {
        "profilePath": str(status.profile),
        "inputTokens": billed.input,
        "outputTokens": billed.output,
        "cacheReadTokens": billed.cache_read,
        "cacheWriteTokens": billed.cache_write,
        "reasoningTokens": billed.reasoning,
        "messageTokens": billed.messages,
        "totalTokens": billed.total,
        "policy": {"softTokens": limits.soft, "handoffTokens": limits.handoff, "hardTokens": limits.hard},
        "lastHandoffAt": milliseconds(status.last_handoff_at),
    }


def fleet_of(snapshot: Snapshot, rows: list[WorkerStatus]) -> dict[str, Any]:
    return {
        "ok": True,
        "checkedAt": milliseconds(snapshot.at),
        "workers": [row_of(snapshot, status) for status in rows],
    }


def sweep_of(snapshot: Snapshot, worker_id: str | None) -> list[dict[str, Any]]:
    """What the sweep that was started will do by what is known now, a managed worker an entry."""
    entries = []
    for status in snapshot.rows:
        if not status.managed or worker_id not in (None, status.worker_id):
            continue
        goes_on = status.lifecycle_state == "renewing"
        action = "renew" if goes_on else SWEPT.get(status.planned, "none")
        entry = {"workerId": status.worker_id, "action": action, "status": row_of(snapshot, status)}
        entries.append(entry if action == "none" else {**entry, "result": {"ok": True, "pending": True}})
    return entries


def acknowledged(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The short form of a sweep that schedulers ask for."""
    actions: dict[str, int] = {}
    for entry in entries:
        actions[entry["action"]] = actions.get(entry["action"], 0) + 1
    return {"processed": len(entries), "actions": actions, "failed": 0}


def detail_row(detail: WorkerDetail) -> dict[str, Any]:
    found: dict[str, Any] = camel(detail.model_dump(mode="json"))
    return {"ok": True, **found}
