"""Telling people: log, event, and the command and addresses of the configuration. Once per occurrence."""

from __future__ import annotations

import logging

from lifecycle.foreign_text import cleaned
from lifecycle.host import Host
from lifecycle.redaction import redact
from lifecycle.sinks import send
from lifecycle.worker import Worker

log = logging.getLogger(__name__)

HOST = "-"
"""Stands where a worker's id stands, and is none."""


def notify(
    host: Host, worker: Worker, key: str, subject: str, body: str, *, remedy: str = "", level: int = logging.WARNING
) -> bool:
    """Send one notification, unless *key* was already sent for this worker. Says whether it was sent.

    A sink that fails is logged and recorded as an event; it never takes a renewal with it.
    """
    if not host.ledger.is_first_notice(worker.worker_id, key, at=host.now()):
        return False
    _tell(host, worker.worker_id, key, subject, f"{body}\n{remedy}", level)
    return True


def notify_host(host: Host, key: str, subject: str, body: str, *, remedy: str = "") -> bool:
    """Send one notification that is about the host, unless *key* was already sent. Says whether it was sent."""
    if not host.ledger.is_first_notice(HOST, key, at=host.now()):
        return False
    _tell(host, HOST, key, subject, f"{body}\n{remedy}", logging.WARNING)
    return True


def _tell(host: Host, about: str, key: str, subject: str, body: str, level: int) -> None:
    told, at = redact(cleaned(body).strip()), host.now()
    log.log(level, "%s: %s: %s", about, subject, told)
    host.ledger.add_event("notice", about, at=at, key=key, subject=subject, body=told)
    headed = subject if about == HOST else f"{about}: {subject}"
    document = {"worker_id": about, "key": key, "subject": headed, "body": told, "at": at.isoformat()}
    if host.link:
        document["link"] = host.link
    host.announce(document)
    for sink, failure in send(host.settings.notify, document):
        log.error("notification by %s failed: %s", sink, failure)
        host.ledger.add_event("notice.failed", about, at=host.now(), sink=sink, failure=failure)
