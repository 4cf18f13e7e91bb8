"""Telling people: log, event, and the command or webhook of the configuration. Once per occurrence."""

from __future__ import annotations

import json
import logging
import subprocess
import urllib.error
import urllib.request
from datetime import timedelta

from lifecycle.host import Host
from lifecycle.redaction import redact
from lifecycle.worker import Worker

log = logging.getLogger(__name__)

SINK_TIMEOUT = timedelta(seconds=10)


def notify(
    host: Host, worker: Worker, key: str, subject: str, body: str, *, remedy: str = "", level: int = logging.WARNING
) -> bool:
    """Send one notification, unless *key* was already sent for this worker. Says whether it was sent.

    A sink that fails is logged and recorded as an event; it never takes a renewal with it.
    """
    if not host.ledger.is_first_notice(worker.worker_id, key, at=host.now()):
        return False
    told = redact(f"{body}\n{remedy}".strip())
    log.log(level, "%s: %s: %s", worker.worker_id, subject, told)
    host.event("notice", worker, key=key, subject=subject, body=told)
    document = {
        "worker_id": worker.worker_id,
        "key": key,
        "subject": f"{worker.worker_id}: {subject}",
        "body": told,
        "at": host.now().isoformat(),
    }
    for sink, failure in _send(host, document):
        log.error("notification by %s failed: %s", sink, failure)
        host.event("notice.failed", worker, sink=sink, failure=failure)
    return True


def _send(host: Host, document: dict[str, str]) -> list[tuple[str, str]]:
    sinks, failures = host.settings.notify, []
    payload = json.dumps(document, ensure_ascii=False).encode()
    if sinks.command:
        try:
            subprocess.run(
                sinks.command,
                input=payload,
                timeout=SINK_TIMEOUT.total_seconds(),
                check=True,
                capture_output=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            failures.append(("command", str(error)))
    if sinks.webhook:
        request = urllib.request.Request(  # noqa: S310 - the operator's own address
            sinks.webhook, data=payload, headers={"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=SINK_TIMEOUT.total_seconds()):  # noqa: S310
                pass
        except (OSError, ValueError, urllib.error.URLError) as error:
            failures.append(("webhook", str(error)))
    return failures
