"""A scripted model whose handoffs say, byte for byte, what a test dictates."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deployments.demo.answers import Answer
from deployments.demo.script import Kind, Prompt, ToolCall
from deployments.demo.scripted_model import ScriptedModel


class DictatedModel(ScriptedModel):
    """Until something is dictated, it answers as any scripted model.

    *draft* is a file that the agent copies to where the draft is wanted: no JSON and no tool then changes a byte
    of it. *block* is the answer behind it. *when_asked* is called as the request for the handoff comes in,
    before it is answered.
    """

    draft: Path | None = None
    block: str = ""
    when_asked: Callable[[], None] | None = None

    def complete(self, body: dict[str, Any]) -> tuple[Prompt, Answer]:
        prompt, given = super().complete(body)
        if prompt.kind is not Kind.HANDOFF:
            return prompt, given
        if prompt.done == 0 and self.when_asked is not None:
            self.when_asked()
        if self.draft is None:
            return prompt, given
        if prompt.done == 0:
            copy = f"cp {shlex.quote(str(self.draft))} {shlex.quote(prompt.path)}"
            return prompt, Answer(calls=(ToolCall(name="terminal", arguments={"command": copy}),))
        return prompt, Answer(text=f"{self.block}\nRENEWAL_ID: {prompt.renewal_id}")
