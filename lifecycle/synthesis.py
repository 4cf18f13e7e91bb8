"""A handoff that nobody wrote: collected from the agent's own rows, and marked so. Nothing is invented."""

from __future__ import annotations

import json
from typing import Any

from lifecycle.checkpoint import Checkpoint, State
from lifecycle.foreign_text import bounded, cleaned
from lifecycle.host import Host
from lifecycle.prompts import is_ours, one_line
from lifecycle.renewal import ParsedHandoff, Quality, Renewal
from lifecycle.transcript import Digest, ToolCall
from lifecycle.worker import Worker

LAST_REQUESTS = 5
LAST_CALLS = 25
LAST_FILES = 50
SHORT = 300
QUOTED_HEAD, QUOTED_TAIL = 1_200, 500
"""Characters kept of the two ends of a longer request: five of them and the last words fit into a section."""

NEXT_ACTION = "Re-ground yourself from this document and the files it names, then wait for orders."
NOT_STATED = "not stated by the worker"


def synthesize(host: Host, worker: Worker, renewal: Renewal) -> ParsedHandoff:
    """Collect a handoff from the transcript.

    Raises:
        ContextUnreadable: the agent's database cannot be read, so there is nothing to collect from.
    """
    process = host.process(worker)
    found = host.agent(worker).digest(worker, since=process.started_at if process else None)
    files = ", ".join(_files(found)) or "none seen in the transcript"
    commands = "; ".join(one_line(command, SHORT) for command in _commands(found)[-LAST_CALLS:]) or "none seen"
    checkpoint = Checkpoint(
        state=State.HANDOFF,
        files_changed=files,
        commands_run=commands,
        result=NOT_STATED,
        blocker=NOT_STATED,
        next_action=NEXT_ACTION,
        renewal_id=renewal.renewal_id,
    )
    session = found.session_id or (renewal.reading.session_id if renewal.reading else None) or ""
    return ParsedHandoff(
        renewal_id=renewal.renewal_id,
        checkpoint=checkpoint,
        reply_row=0,
        session_id=session,
        draft_text=_document(worker, renewal, found),
        quality=Quality.SYNTHESIZED,
        notes=("Synthesized from the transcript; the worker did not write it.",),
    )


def _document(worker: Worker, renewal: Renewal, found: Digest) -> str:
    asked = [text for text in found.requests if not is_ours(text)]
    open_calls = [call for call in found.calls if call.outcome is None][-LAST_CALLS:]
    sections = {
        "Current state": "Collected by Afresh from the transcript; the worker did not write this.",
        "Objective": _quoted(asked[:1]) or NOT_STATED,
        "Completed": NOT_STATED,
        "In progress": _bullets(
            [f"{_told(call)} — no result was written: its effect is unknown, verify first" for call in open_calls]
        )
        or NOT_STATED,
        "Files touched": _bullets(_files(found)) or "none seen in the transcript",
        "Commands run": _bullets([_told(call) for call in found.calls[-LAST_CALLS:]]) or "none seen in the transcript",
        "Blockers": NOT_STATED,
        "Next exact action": NEXT_ACTION,
        "Resume prompt": f"The last requests, newest last:\n{_quoted(asked[-LAST_REQUESTS:]) or NOT_STATED}\n\n"
        f"The worker's last words:\n{_quoted([found.last_words]) or NOT_STATED}",
    }
    title = f"# Handoff — {worker.worker_id} — {renewal.mission_id or 'none'}\n"
    return title + "".join(f"\n## {name}\n{text}\n" for name, text in sections.items())


def _commands(found: Digest) -> list[str]:
    return [command for call in found.calls if (command := str(_arguments(call).get("command") or ""))]


def _files(found: Digest) -> list[str]:
    """The files that were written last, oldest first."""
    named = [one_line(path, SHORT) for call in reversed(found.calls) for path in reversed(call.files)]
    return [*dict.fromkeys(named)][:LAST_FILES][::-1]


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        found = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _told(call: ToolCall) -> str:
    arguments = _arguments(call)
    what = arguments.get("command") or arguments.get("path") or call.arguments
    return one_line(f"{call.name}: {what}", SHORT)


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _quoted(texts: list[str]) -> str:
    """The words of others, each bounded; quoted, so that none of their lines is a heading of the document."""
    kept = [bounded(cleaned(text).strip(), QUOTED_HEAD, QUOTED_TAIL) for text in texts]
    return "\n\n".join("\n".join(f"> {line}" for line in text.splitlines()) for text in kept if text)
