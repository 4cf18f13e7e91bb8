"""OpenAI's two wire formats of one completion: a whole reply, and server-sent events. Pure."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

from deployments.demo.answers import Answer
from deployments.demo.script import Prompt

_CHUNK = 400
"""Characters of text an event carries: several events for a handoff, one for a sentence."""


def completion(model: str, prompt: Prompt, answer: Answer) -> dict[str, Any]:
    """The reply to a request that does not stream."""
    calls = [
        {
            "id": f"call_{secrets.token_hex(6)}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in answer.calls
    ]
    message = {"role": "assistant", "content": answer.text or None, **({"tool_calls": calls} if calls else {})}
    spoken = max(1, len(json.dumps(message)) // 4)
    return {
        "id": f"chatcmpl-{secrets.token_hex(6)}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {
            "prompt_tokens": prompt.tokens,
            "completion_tokens": spoken,
            "total_tokens": prompt.tokens + spoken,
        },
    }


def events(reply: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same reply in pieces; the usage comes last, in an event without choices."""
    choice = reply["choices"][0]
    text = choice["message"]["content"] or ""
    calls = [{"index": i, **call} for i, call in enumerate(choice["message"].get("tool_calls", []))]
    frame = {**reply, "object": "chat.completion.chunk", "usage": None}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[start : start + _CHUNK]} for start in range(0, len(text), _CHUNK)]
    deltas += [{"tool_calls": [call]} for call in calls]
    for delta in deltas:
        yield {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield {**frame, "choices": [], "usage": reply["usage"]}
