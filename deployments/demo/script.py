"""What the scripted model is told to do, and what it finds in a request. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from lifecycle.value import Value

HandoffManner = Literal["good", "garbage", "partial", "bold", "wrong_id", "no_file", "never"]
ResumeManner = Literal["good", "garbage", "wrong_id", "no_id", "done", "never"]


class Script(Value):
    """The knobs of the server. *first_handoff* and *first_resume* hold for the first such prompt of a renewal only.

    *say* is a queue: each ordinary turn takes one text as its answer. *delay* and *handoff_delay* are seconds
    before an answer begins, *pace* the tokens of it that are written in a second, all at once without one. *fault* is
    an HTTP status that every call with tools gets, with *fault_words* and, for 429, a Retry-After of *retry_after*
    seconds. *weight* multiplies the tokens of the conversation, not those of the system prompt and the tools, so that
    a context fills soon and a fresh session still starts low. *next_action*, where it is given, is the one that every
    handoff and checkpoint states. *ledger* is the file, below the agent's folder, that mission turns append to.
    """

    handoff: HandoffManner = "good"
    first_handoff: HandoffManner | None = None
    resume: ResumeManner = "good"
    first_resume: ResumeManner | None = None
    say: tuple[str, ...] = ()
    delay: float = Field(0.0, ge=0)
    handoff_delay: float = Field(0.0, ge=0)
    pace: float | None = Field(None, gt=0)
    fault: Literal[401, 429, 500, 503] | None = None
    fault_words: str = ""
    retry_after: float = Field(1.0, gt=0)
    weight: float = Field(1.0, gt=0)
    chars_per_token: float = Field(3.7, gt=0)
    context_length: int = Field(200_000, ge=1)
    model: str = "scripted-model"
    ledger: str = "ledger.txt"
    next_action: str = ""


class Kind(StrEnum):
    """What a request wants."""

    HANDOFF = "handoff"
    RESUME = "resume"
    CONTINUE = "continue"
    CANCELLED = "cancelled"
    CHECKPOINT = "checkpoint"
    MISSION = "mission"
    AUXILIARY = "auxiliary"


class ToolCall(Value):
    name: str
    arguments: dict[str, Any]


class Prompt(Value):
    """One request of the agent, as far as an answer depends on it.

    *text* is the last user text, *tools* the names on offer, *earlier* the user texts before it, *calls* the
    tool calls of the whole conversation, and *done* the number of tool results since *text*.
    """

    kind: Kind
    text: str
    tools: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    done: int = 0
    renewal_id: str = ""
    path: str = ""
    worker: str = ""
    mission: str = ""
    next_action: str = ""
    tokens: int = 0


_MARKERS = {
    "CONTEXT_HANDOFF_REQUIRED": Kind.HANDOFF,
    "RESUME_AFTER_HANDOFF": Kind.RESUME,
    "CONTINUE": Kind.CONTINUE,
    "RENEWAL_CANCELLED": Kind.CANCELLED,
    "CHECKPOINT_REQUESTED": Kind.CHECKPOINT,
}
_ID = re.compile(r"^\W*renewal[ _-]?id\W*[:=]\s*\W?([\w.-]+)", re.IGNORECASE | re.MULTILINE)
_DRAFT = re.compile(r"/[^\s\"'`<>|]*draft-([\w.-]+?)\.md")
_DOCUMENT = re.compile(r"/[^\s\"'`<>|]+\.md")
_LABELLED_PATH = re.compile(r"^\W*(?:handoff|archive)[^:\n]*:\s*\W?(/[^\s\"'`<>|]+\.md)", re.IGNORECASE | re.MULTILINE)
_PROFILE = re.compile(r"/profiles/([\w-]+)/")
_DIRECTIVE = re.compile(r"\[\[(tool|say|slow|fail|never|tokens)\b\s*(.*?)\]\]", re.DOTALL)


def read_prompt(body: dict[str, Any], *, tokens: int = 0) -> Prompt:
    """Understand an OpenAI chat request. A follow-up that names no kind of its own belongs to the one before it."""
    messages = body.get("messages") or []
    asked = [i for i, message in enumerate(messages) if message.get("role") == "user"]
    texts = [text_of(messages[i]) for i in asked]
    text = texts[-1] if texts else ""
    tools = tuple(tool["function"]["name"] for tool in body.get("tools") or [])
    kind = _kind(texts) if tools else Kind.AUXILIARY
    after = messages[asked[-1] + 1 :] if asked else []
    return Prompt(
        kind=kind,
        text=text if tools else "\n".join(text_of(message) for message in messages),
        tools=tools,
        earlier=tuple(texts[:-1]),
        calls=tuple(_calls(messages)),
        done=sum(message.get("role") == "tool" for message in after),
        renewal_id=_renewal_id(text) or ("" if kind is Kind.CHECKPOINT else _last(_renewal_id, texts)),
        path=_last(lambda earlier: _path(earlier, kind), texts),
        worker=_last(_worker, texts),
        mission=_last(_mission, texts),
        next_action=_next_action(text, kind) or _next_action_read(messages if kind is Kind.CONTINUE else after),
        tokens=tokens,
    )


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return str(content or "")


def directives(text: str) -> list[tuple[str, str]]:
    """The `[[name argument]]` orders in a user text, in their order."""
    return [(name, argument.strip()) for name, argument in _DIRECTIVE.findall(text)]


def ordered_calls(text: str) -> list[ToolCall]:
    """The tool calls that `[[tool NAME {json}]]` orders.

    Raises:
        ValueError: the arguments are no JSON object.
    """
    calls = []
    for name, argument in directives(text):
        if name == "tool":
            tool, _, arguments = argument.partition(" ")
            calls.append(ToolCall(name=tool, arguments=json.loads(arguments or "{}")))
    return calls


def _kind(texts: list[str]) -> Kind:
    text = texts[-1] if texts else ""
    own = _marked(text)
    if own is not None:
        return own
    if _DRAFT.search(text):
        return Kind.HANDOFF
    if _ID.search(text):  # a correction or a reminder: it is about the last marked prompt
        return next((kind for kind in map(_marked, reversed(texts[:-1])) if kind is not None), Kind.CHECKPOINT)
    asks_for_block = all(label in text for label in ("STATE", "BLOCKER", "NEXT_ACTION"))
    return Kind.CHECKPOINT if asks_for_block else Kind.MISSION


def _marked(text: str) -> Kind | None:
    words = text.split(maxsplit=1)
    return _MARKERS.get(words[0].strip("*#`:.[]")) if words else None


def _renewal_id(text: str) -> str:
    words = text.split(maxsplit=2)
    if len(words) > 1 and words[0] in ("CONTINUE", "RENEWAL_CANCELLED"):
        return words[1].rstrip(":")
    named = [found for found in _ID.findall(text) if not found.startswith("<")]
    draft = _DRAFT.search(text)
    return named[0] if named else draft.group(1) if draft else ""


def _path(text: str, kind: Kind) -> str:
    """The draft to write, or the handoff to read: the labelled path, else the likeliest one."""
    if kind is Kind.HANDOFF:
        draft = _DRAFT.search(text)
        return draft.group(0) if draft else ""
    if kind is not Kind.RESUME:
        return ""
    labelled = _LABELLED_PATH.search(text)
    paths = _DOCUMENT.findall(text)
    archived = [path for path in paths if "/archive/" in path]
    return labelled.group(1) if labelled else (archived or paths or [""])[0]


def _worker(text: str) -> str:
    """Who is asked, by the line that says so, else by the profile folder in a path."""
    found = re.search(r"^\W*worker\W+([\w-]+)", text, re.IGNORECASE | re.MULTILINE) or _PROFILE.search(text)
    return found.group(1) if found else ""


def _mission(text: str) -> str:
    found = re.search(r"^\W*mission\W*:\W*(\w[^\n]*)", text, re.IGNORECASE | re.MULTILINE)
    return found.group(1).strip(" *`.") if found else ""


def _last(find: Callable[[str], str], texts: list[str]) -> str:
    """What *find* finds in the newest of *texts* that has it."""
    return next(filter(None, map(find, reversed(texts))), "")


def _next_action(text: str, kind: Kind) -> str:
    """The action that the text itself states; empty where it refers to the handoff."""
    if kind is Kind.CONTINUE:
        action = text.partition(":")[2].strip()
        return "" if "of your handoff" in action else action
    lines = re.findall(r"^\W*next[ _](?:exact[ _])?action\W*[: ]\s*([^\s<].*)$", text, re.IGNORECASE | re.MULTILINE)
    stated = [line.strip() for line in lines if "HANDOFF file" not in line]
    return stated[-1] if stated else ""


def _next_action_read(messages: list[dict[str, Any]]) -> str:
    """The next exact action of a handoff that the agent has just read; its tool numbers the lines."""
    results = "\n".join(text_of(message).replace("\\n", "\n") for message in messages if message.get("role") == "tool")
    found = re.search(r"## Next exact action(?:\s|\d+\|)*(\S.*)$", results, re.IGNORECASE | re.MULTILINE)
    return found.group(1).strip() if found else ""


def _calls(messages: list[dict[str, Any]]) -> list[ToolCall]:
    found = []
    for message in messages:
        for call in message.get("tool_calls") or []:
            function = call.get("function") or {}
            try:
                arguments = json.loads(function.get("arguments") or "{}")
            except ValueError:
                continue
            found.append(ToolCall(name=str(function.get("name")), arguments=arguments))
    return found
