"""The handoff of a worker that went down with its host: its last one, under a banner of what nobody knows."""

from __future__ import annotations

import json

from lifecycle.checkpoint import Checkpoint, State
from lifecycle.errors import ContextUnreadable
from lifecycle.handoff import read_handoff
from lifecycle.host import Host
from lifecycle.ledger import StoredHandoff
from lifecycle.prompts import is_ours, one_line
from lifecycle.renewal import ParsedHandoff, Renewal
from lifecycle.synthesis import synthesize
from lifecycle.transcript import Digest, ToolCall
from lifecycle.value import Value
from lifecycle.worker import Worker

LAST_REQUESTS = 5
LAST_CALLS = 10
SHORT = 300

VERIFY_FIRST = "Verify what the section 'Interrupted by a reboot' lists, then go on: "


class LastHandoff(Value):
    """The newest stored handoff that is still as it was stored."""

    stored: StoredHandoff
    text: str
    checkpoint: Checkpoint
    session_id: str
    asks_human: bool


def after_reboot(host: Host, worker: Worker, renewal: Renewal) -> ParsedHandoff:
    """The last good handoff with its banner; without any, one collected from the transcript.

    Raises:
        ContextUnreadable: there is neither a handoff nor a transcript that can be read.
    """
    last = last_handoff(host, worker)
    found, trouble = _digest(host, worker)
    if last is None:
        collected = synthesize(host, worker, renewal)
        return collected.model_copy(update={"banner": banner(renewal, None, found, trouble)})
    action = last.checkpoint.next_action.removeprefix(VERIFY_FIRST)
    changes = {"state": State.HANDOFF, "next_action": f"{VERIFY_FIRST}{action}", "renewal_id": renewal.renewal_id}
    return ParsedHandoff(
        renewal_id=renewal.renewal_id,
        checkpoint=last.checkpoint.model_copy(update=changes),
        reply_row=0,
        session_id=found.session_id or last.session_id,
        draft_text=read_handoff(last.text).body,
        quality=last.stored.quality,
        notes=(f"The sections are those of the handoff of renewal {last.stored.renewal_id}; the banner is Afresh's.",),
        asks_human=last.asks_human,
        banner=banner(renewal, last, found, trouble),
    )


def last_handoff(host: Host, worker: Worker) -> LastHandoff | None:
    """A file that was changed or is gone is passed over."""
    for stored in host.ledger.handoffs_of(worker.worker_id):
        text, is_intact = host.stored_text(stored)
        renewal = host.ledger.renewal(stored.renewal_id) if is_intact else None
        if renewal is not None and renewal.parsed is not None:
            return LastHandoff(
                stored=stored,
                text=text,
                checkpoint=renewal.parsed.checkpoint,
                session_id=renewal.parsed.session_id,
                asks_human=renewal.parsed.asks_human,
            )
    return None


def banner(renewal: Renewal, last: LastHandoff | None, found: Digest, trouble: str) -> str:
    """What is unknown, for the new session. Pure."""
    if last is None:
        source = "It had stored no handoff: the sections below were collected from its transcript."
    else:
        whose = f"of {last.stored.created_at:%Y-%m-%d %H:%M} UTC, renewal {last.stored.renewal_id}"
        source = f"The sections below are those of its last handoff, {whose}; what came after it stands here only."
    since = _since_handoff(found)
    where = renewal.launch.cwd if renewal.launch else "a folder that nobody recorded"
    parts = [
        f"The host went down under this worker and has booted again; nobody could ask it for a handoff. {source}",
        f"It is started again in {where}. Its shell, its timers and every process that it had started are gone.",
        trouble,
        _listed(
            "Tool calls that were running: their effect is unknown, verify it before you repeat one",
            [_told(call) for call in found.calls if call.outcome is None],
        ),
        _listed("Started in the background and gone", [_told(call) for call in found.calls if _is_background(call)]),
        _listed("Asked of it last", since[-LAST_REQUESTS:]),
        _listed("Its last tool calls", [_told(call) for call in found.calls[-LAST_CALLS:]]),
        _listed("Its last words", [found.last_words] if found.last_words.strip() else []),
    ]
    return "\n\n".join(part for part in parts if part)


def _digest(host: Host, worker: Worker) -> tuple[Digest, str]:
    try:
        return host.agent(worker).digest(worker, since=None), ""
    except ContextUnreadable as error:
        return Digest(), f"Its transcript cannot be read ({error.detail}), so work after the handoff is unknown."


def _since_handoff(found: Digest) -> list[str]:
    """What people asked behind our last request for a handoff; everything where there was none."""
    ours = [at for at, text in enumerate(found.requests) if is_ours(text)]
    later = found.requests[ours[-1] + 1 :] if ours else found.requests
    return [text for text in later or found.requests if not is_ours(text)]


def _is_background(call: ToolCall) -> bool:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return False
    return isinstance(arguments, dict) and arguments.get("background") is True


def _told(call: ToolCall) -> str:
    return f"{call.name}: {call.arguments}"


def _listed(title: str, texts: list[str]) -> str:
    if not texts:
        return ""
    return f"{title}:\n" + "\n".join(f"- {one_line(text, SHORT)}" for text in texts)
