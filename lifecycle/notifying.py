"""Telling people: log, event, and the command and addresses of the configuration. Once per occurrence."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from lifecycle.foreign_text import cleaned
from lifecycle.host import Host
from lifecycle.redaction import redact
from lifecycle.sinks import send
from lifecycle.worker import Worker

log = logging.getLogger(__name__)

WORTH_TELLING = timedelta(days=1)
"""A notice that could not be sent for so long is dropped: what it tells of stands in the status."""

HOST = "-"
"""Stands where a worker's id stands, and is none."""


def notify(
    host: Host, worker: Worker, key: str, subject: str, body: str, *, remedy: str = "", level: int = logging.WARNING
) -> bool:
    """Send one notification, unless *key* was already sent for this worker. Says whether it was sent.

    A sink that fails is logged and recorded as an event; it never takes a renewal with it. What no sink took is sent
    again by `tell_again`.
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
    if not _reaches_anybody(host, about, document):
        host.ledger.keep_untold(document, at=at)


def tell_again(host: Host) -> None:
    """Send what reached nobody when it was due, oldest first, until a sink refuses again."""
    for number, at, document in host.ledger.untold():
        if host.now() - at <= WORTH_TELLING and not _reaches_anybody(host, document["worker_id"], document):
            return
        host.ledger.forget_untold(number)


def _reaches_anybody(host: Host, about: str, document: Mapping[str, str]) -> bool:
    """Whether a sink took the notice, or there is none to take one."""
    failures = send(host.settings.notify, document)
    for sink, failure in failures:
        log.error("notification by %s failed: %s", sink, failure)
        host.ledger.add_event("notice.failed", about, at=host.now(), sink=sink, failure=failure)
    return not failures or len(failures) < host.settings.notify.sinks
