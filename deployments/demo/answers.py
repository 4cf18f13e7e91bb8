"""What the scripted model answers: checkpoints, handoffs, tool calls, small talk. Pure."""

from __future__ import annotations

import re
import shlex

from deployments.demo.script import Kind, Prompt, Script, ToolCall, directives, ordered_calls
from lifecycle.value import Value

STALE_ID = "r-00000000"
"""The renewal id that a wrong answer carries."""


class Answer(Value):
    """One completion: a text or tool calls. *fault* is an HTTP status instead; *never* holds the line open."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    delay: float = 0.0
    fault: int | None = None
    never: bool = False


def answer(prompt: Prompt, script: Script, *, first: bool = False) -> Answer:
    """Decide. *first* says that this is the first handoff or resume prompt of its renewal; `say` is the server's."""
    if prompt.kind is Kind.AUXILIARY:
        return Answer(text=_auxiliary(prompt.text))
    if script.fault is not None:
        return Answer(fault=script.fault)
    decided = {
        Kind.HANDOFF: _handoff,
        Kind.RESUME: _resume,
        Kind.CONTINUE: _work,
        Kind.CANCELLED: _work,
        Kind.CHECKPOINT: _checkpoint,
        Kind.MISSION: _mission,
    }[prompt.kind](prompt, script, first)
    return decided.model_copy(update={"delay": decided.delay + script.delay})


def checkpoint(state: str, fields: dict[str, str], renewal_id: str = "") -> str:
    """The six-field block, and the renewal id where there is one."""
    lines = [f"STATE: {state}", *(f"{label}: {value}" for label, value in fields.items())]
    return "\n".join([*lines, *([f"RENEWAL_ID: {renewal_id}"] if renewal_id else [])])


def _handoff(prompt: Prompt, script: Script, first: bool) -> Answer:
    manner = script.first_handoff if first and script.first_handoff else script.handoff
    if manner == "never":
        return Answer(never=True, delay=script.handoff_delay)
    if manner == "garbage":
        return Answer(text="Understood. I will write everything down shortly.", delay=script.handoff_delay)
    if prompt.done == 0 and prompt.path and manner != "no_file":
        call = ToolCall(name="write_file", arguments={"path": prompt.path, "content": document(prompt, script)})
        return Answer(calls=(call,), delay=script.handoff_delay)
    block = checkpoint("HANDOFF", _fields(prompt, script), STALE_ID if manner == "wrong_id" else prompt.renewal_id)
    lines = block.splitlines()
    if manner == "partial":
        lines = [line for line in lines if not line.startswith(("BLOCKER", "NEXT_ACTION"))]
    if manner == "bold":
        lines = [f"**{label}:** {value}" for label, _, value in (line.partition(": ") for line in lines)]
    return Answer(text="\n".join(lines))


def _resume(prompt: Prompt, script: Script, first: bool) -> Answer:
    manner = script.first_resume if first and script.first_resume else script.resume
    if manner == "never":
        return Answer(never=True)
    if manner == "garbage":
        return Answer(text="Welcome back! What would you like to do?")
    if prompt.done == 0 and prompt.path:
        return Answer(calls=(ToolCall(name="read_file", arguments={"path": prompt.path}),))
    renewal_id = {"wrong_id": STALE_ID, "no_id": ""}.get(manner, prompt.renewal_id)
    fields = {
        "FILES_CHANGED": "none since the handoff",
        "COMMANDS_RUN": f"read_file {prompt.path}",
        "RESULT": f"read the handoff of {prompt.renewal_id} and found the place where the work stopped",
        "BLOCKER": "none",
        "NEXT_ACTION": prompt.next_action or _next_step(prompt, script),
    }
    return Answer(text=checkpoint("DONE" if manner == "done" else "IN_PROGRESS", fields, renewal_id))


def _checkpoint(prompt: Prompt, script: Script, _first: bool) -> Answer:
    return Answer(text=checkpoint("IN_PROGRESS", _fields(prompt, script), prompt.renewal_id))


def _work(prompt: Prompt, script: Script, _first: bool) -> Answer:
    """One real step of the mission: a line in the ledger of the agent's folder, then a sentence.

    The entry that an order names is the one that is written, so the numbers go on across a renewal.
    """
    if prompt.done == 0 and "terminal" in prompt.tools:
        named = _numbers([prompt.next_action])
        line = f"entry {named[0] if named else _entries(prompt) + 1}"
        command = f"echo {shlex.quote(line)} >> {shlex.quote(script.ledger)}"
        return Answer(calls=(ToolCall(name="terminal", arguments={"command": command}),))
    return Answer(text=f"Entry {_entries(prompt)} stands in {script.ledger}; on to the next one.")


def _mission(prompt: Prompt, script: Script, first: bool) -> Answer:
    orders = directives(prompt.text)
    if not orders:
        return _work(prompt, script, first)
    delay = sum(float(argument) for name, argument in orders if name == "slow") if prompt.done == 0 else 0.0
    names = dict(orders)
    if "never" in names or "fail" in names:
        return Answer(never="never" in names, fault=int(names.get("fail", 500)) if "fail" in names else None)
    calls = ordered_calls(prompt.text)
    if prompt.done < len(calls):
        return Answer(calls=(calls[prompt.done],), delay=delay)
    words = int(names["say"]) if "say" in names else 0
    return Answer(text=_prose(words) if words else "That is done.", delay=delay)


def _auxiliary(text: str) -> str:
    """Titles, compression summaries and the approval judge come without tools."""
    lowered = text.lower()
    if "approve, deny" in lowered:
        return "APPROVE"
    if "title" in lowered and "summar" not in lowered[:2000]:
        return "Seed ledger"
    return (
        "## Goal\nKeep the seed ledger complete, one line for each entry.\n## Progress\nThe entries so far are in "
        "ledger.txt.\n## Next steps\nAppend the next entry and check the count."
    )


def document(prompt: Prompt, script: Script) -> str:
    """A handoff with the nine headings, filled from the conversation itself."""
    commands, files = _commands(prompt), _files(prompt)
    first = next((text for text in prompt.earlier if text.strip()), "no order was given before the handoff")
    sections = {
        "Current state": f"Entry {_entries(prompt)} is the last one that is safely in the ledger. Nothing runs in "
        f"the background, no file is half written, and the folder is as the commands below left it.",
        "Objective": f"{prompt.mission or 'Keep the ledger of this folder'}. The first order of this "
        f"session, word for word: {first[:600]}",
        "Completed": f"{len(prompt.calls)} tool calls in this session, each with its result seen; the ledger was "
        f"appended {_entries(prompt)} times, in order, with no entry written twice.",
        "In progress": "The next entry only. It has been chosen but not yet written, so writing it again is safe "
        "and nothing has to be undone before it.",
        "Files touched": _bullets(files) or "- no file in this session",
        "Commands run": _bullets(commands) or "- no command in this session",
        "Blockers": "None. No permission, credential or decision of a person is waited for.",
        "Next exact action": _next_step(prompt, script),
        "Resume prompt": "Read this document, compare the last line of the ledger with "
        f"'Current state', do not write that entry again, and then: {_next_step(prompt, script)}",
    }
    title = " — ".join(["# Handoff", *(name for name in (prompt.worker, prompt.mission) if name)])
    return f"{title}\n" + "".join(f"\n## {title}\n{body}\n" for title, body in sections.items())


def _fields(prompt: Prompt, script: Script) -> dict[str, str]:
    return {
        "FILES_CHANGED": ", ".join(_files(prompt)) or "none",
        "COMMANDS_RUN": "; ".join(_commands(prompt)[-3:]) or "none",
        "RESULT": f"{_entries(prompt)} entries in the ledger, all of them checked",
        "BLOCKER": "none",
        "NEXT_ACTION": _next_step(prompt, script),
    }


def _next_step(prompt: Prompt, script: Script) -> str:
    if script.next_action:
        return script.next_action
    return f"append entry {_entries(prompt) + 1} to the ledger and check that the line count grew by one"


def _entries(prompt: Prompt) -> int:
    """The last entry that this session knows of: written by it, or before the one that its handoff orders next."""
    written = _numbers([command for command in _commands(prompt) if ">>" in command])
    ordered = _numbers([text for text in prompt.earlier if _follows_renewal(text)])
    return max([0, *written, *(number - 1 for number in ordered)])


def _follows_renewal(text: str) -> bool:
    return text.startswith(("RESUME_AFTER_HANDOFF", "CONTINUE"))


def _numbers(texts: list[str]) -> list[int]:
    return [int(number) for text in texts for number in re.findall(r"\bentry (\d+)", text)]


def _commands(prompt: Prompt) -> list[str]:
    return [str(call.arguments.get("command")) for call in prompt.calls if call.name == "terminal"]


def _files(prompt: Prompt) -> list[str]:
    written = [str(call.arguments.get("path")) for call in prompt.calls if call.name in ("write_file", "patch")]
    appended = [command.split(">>")[-1].strip() for command in _commands(prompt) if ">>" in command]
    return list(dict.fromkeys(written + appended))


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines[-20:])


def _prose(words: int) -> str:
    stock = ("carrot", "leek", "sorrel", "spinach", "chard", "parsley", "fennel", "radish")
    return " ".join(stock[i % len(stock)] for i in range(words))
