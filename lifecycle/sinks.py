"""Where notifications go besides log and event: the command, webhook and Apprise addresses of the configuration."""

from __future__ import annotations

import http.client
import json
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from lifecycle.redaction import redact
from lifecycle.settings import NotifySettings

if TYPE_CHECKING:
    from apprise import Apprise

SINK_TIMEOUT = timedelta(seconds=10)
"""How long one sink may take. The renewal waits for it."""

_LONGEST_COMPLAINT = 500

_WEB = ("http://", "https://")
_NOT_WEB = "its address begins with neither http:// nor https://"
_NO_SERVICE = "Apprise knows no service of this address"


class Failure(NamedTuple):
    """Which sink failed and why, in words that hold neither the command's arguments nor an address."""

    sink: str
    why: str


def send(sinks: NotifySettings, document: Mapping[str, str]) -> list[Failure]:
    """Give *document* as JSON to every sink, and say which of them failed. Never raises for what a sink does."""
    payload = json.dumps(document).encode()
    failures = []
    if sinks.command and (why := _run(sinks.command, payload)):
        failures.append(Failure("command", why))
    if sinks.webhook and (why := _post(sinks.webhook, payload)):
        failures.append(Failure("webhook", why))
    for number, address in enumerate(sinks.apprise, 1):
        if why := _tell_service(address, document):
            failures.append(Failure(f"apprise {number}", why))
    return failures


def unusable(sinks: NotifySettings) -> list[Failure]:
    """The sinks that can be seen to fail before anything is sent."""
    failures = []
    if sinks.command and shutil.which(sinks.command[0]) is None:
        failures.append(Failure("command", "is not there, or cannot be run"))
    if sinks.webhook and not sinks.webhook.startswith(_WEB):
        failures.append(Failure("webhook", _NOT_WEB))
    for number, address in enumerate(sinks.apprise, 1):
        if _service_of(address) is None:
            failures.append(Failure(f"apprise {number}", _NO_SERVICE))
    return failures


def _service_of(address: str) -> Apprise | None:
    import apprise  # noqa: PLC0415 - a third of a second, and most commands notify nobody

    # Its own lines name addresses, which hold the service's key.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    service = apprise.Apprise()
    return service if service.add(address) else None


def _tell_service(address: str, document: Mapping[str, str]) -> str:
    service = _service_of(address)
    if service is None:
        return _NO_SERVICE
    body = "\n".join(filter(None, (document["body"], document.get("link"))))
    told = service.notify(body=body, title=document["subject"], timeout=SINK_TIMEOUT.total_seconds())
    return "" if told else "was not delivered"


def _run(command: Sequence[str], payload: bytes) -> str:
    """Run *command* with *payload* on its standard input. When time is up, what it started ends with it."""
    with tempfile.TemporaryFile() as said:  # a pipe would be waited for as long as a child of the command holds it
        try:
            child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
            )
        except OSError as error:
            return f"cannot be run: {error.strerror}"
        with child:
            try:
                child.communicate(payload, timeout=SINK_TIMEOUT.total_seconds())
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                return f"was not done after {SINK_TIMEOUT.total_seconds():g} s and was ended"
        if child.returncode == 0:
            return ""
        said.seek(0)
        complaint = said.read().decode(errors="replace").strip()[-_LONGEST_COMPLAINT:]
        return redact(f"ended with status {child.returncode}: {complaint}".removesuffix(": "))


def _post(address: str, payload: bytes) -> str:
    if not address.startswith(_WEB):
        return _NOT_WEB
    # Some services turn Python's own user agent away.
    headers = {"content-type": "application/json", "user-agent": "afresh"}
    try:
        request = urllib.request.Request(address, data=payload, headers=headers)  # noqa: S310 - checked above
        with urllib.request.urlopen(request, timeout=SINK_TIMEOUT.total_seconds()):  # noqa: S310
            return ""
    except urllib.error.HTTPError as error:
        with error:
            return f"answered {error.code} {error.reason}"
    except urllib.error.URLError as error:
        return f"cannot be reached: {error.reason}"
    except (OSError, http.client.HTTPException) as error:
        return f"broke off: {type(error).__name__}"
    except ValueError:
        return "its address cannot be used"
