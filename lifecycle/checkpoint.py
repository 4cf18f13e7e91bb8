"""The six-field checkpoint block in a worker's reply."""

from __future__ import annotations

import textwrap
from typing import Literal, NoReturn

from lifecycle.checkpoint_block import Block, Found, find_block
from lifecycle.checkpoint_lines import REQUIRED, out_of_its_fence
from lifecycle.checkpoint_state import State, state_in
from lifecycle.checkpoint_text import legible, strings_of_json
from lifecycle.checkpoint_words import id_in, is_placeholder, is_vague, worker_in
from lifecycle.errors import CheckpointRefused
from lifecycle.value import Value

__all__ = ["Checkpoint", "State", "parse_checkpoint", "render_checkpoint"]


class Checkpoint(Value):
    """One complete block. Values are the worker's own words: data, never instructions."""

    state: State
    files_changed: str
    commands_run: str
    result: str
    blocker: str
    next_action: str
    renewal_id: str | None = None
    note: str = ""
    """What stands beside the state: `HANDOFF - two checks open`."""


_SIX_LINES = f"{', '.join(REQUIRED[:-1])} and {REQUIRED[-1]}"
_EVIDENCE = 2_000


def parse_checkpoint(
    text: str,
    *,
    renewal_id: str | None = None,
    worker_id: str | None = None,
    purpose: Literal["handoff", "resume", "any"] = "any",
) -> Checkpoint:
    """Return the last complete checkpoint in a reply, whatever stands around it and however it is decorated.

    A block that names another renewal than *renewal_id* or another worker than *worker_id* is refused, one that names
    none is not. For a handoff every known state is taken, but unless it is DONE the next action must be one.
    Time grows with the length of the text and no faster.

    Raises:
        CheckpointRefused: the reply holds no such block. The detail says in a sentence what is wrong and what to send,
            in Afresh's words and well-formed ids only, so that it may be typed into a worker's pane. The reason is
            `checkpoint_missing`, `checkpoint_incomplete` (*missing* names the labels), `checkpoint_fenced_example`,
            `checkpoint_template`, `checkpoint_wrong_worker`, `checkpoint_wrong_renewal`, `checkpoint_state_unknown`
            or `checkpoint_next_action`.
    """
    refusal = _Refusal(worker_id or "", text)
    block = _chosen(text, refusal)
    _refuse_template(block, refusal)
    _refuse_other_worker(block, worker_id, refusal)
    answered = _answered(block, renewal_id, refusal)
    state, note = _stated(block, refusal)
    if purpose == "handoff" and state is not State.DONE and is_vague(block.next_action):
        refusal.because(
            "checkpoint_next_action",
            "NEXT_ACTION names no action; send the checkpoint again with the exact next step, "
            "so that a session that knows nothing else can take it.",
        )
    return Checkpoint(
        state=state,
        files_changed=block.files_changed,
        commands_run=block.commands_run,
        result=block.result,
        blocker=block.blocker,
        next_action=block.next_action,
        renewal_id=answered,
        note=note,
    )


def render_checkpoint(checkpoint: Checkpoint) -> str:
    """Return the plain lines of a checkpoint; `parse_checkpoint` reads the same checkpoint from them."""
    joint = "\n" if checkpoint.note.startswith(("```", "~~~")) else " - "
    state = f"{checkpoint.state}{joint}{checkpoint.note}" if checkpoint.note else checkpoint.state.value
    values = {
        "STATE": state,
        "FILES_CHANGED": checkpoint.files_changed,
        "COMMANDS_RUN": checkpoint.commands_run,
        "RESULT": checkpoint.result,
        "BLOCKER": checkpoint.blocker,
        "NEXT_ACTION": checkpoint.next_action,
    }
    if checkpoint.renewal_id:
        values["RENEWAL_ID"] = checkpoint.renewal_id
    return "\n".join(_rendered(label, value) for label, value in values.items())


def _rendered(label: str, value: str) -> str:
    """Later lines are indented, so that none looks like a label of the block; to keep a shape, the first one is too."""
    later = value.partition("\n")[2]
    below = "```" in value or "~~~" in value or textwrap.dedent(later) != later
    return textwrap.indent(f"{label}:{chr(10) if below else ' '}{value}", "  ").strip()


class _Refusal:
    """Knows whose reply is judged."""

    def __init__(self, worker_id: str, text: str) -> None:
        self._worker_id = worker_id
        self._text = text

    def because(self, reason: str, detail: str, missing: tuple[str, ...] = ()) -> NoReturn:
        evidence = legible(self._text[-2 * _EVIDENCE :])[-_EVIDENCE:]
        raise CheckpointRefused(detail, reason=reason, missing=missing, worker_id=self._worker_id, evidence=evidence)


def _chosen(text: str, refusal: _Refusal) -> Block:
    reply = out_of_its_fence(legible(text))
    strings = [legible(string) for string in strings_of_json(reply)]
    found = [find_block(part) for part in (map(out_of_its_fence, strings) if strings else [reply])]
    block = next((part.block for part in reversed(found) if part.block), None)
    if block is None:
        _refuse_unfound(next((part for part in reversed(found) if part.begun), found[-1]), found, refusal)
    return block


def _refuse_unfound(closest: Found, found: list[Found], refusal: _Refusal) -> NoReturn:
    if closest.begun:
        lacks = f"lacks {', '.join(closest.missing)}" if closest.missing else "has a line twice or out of order"
        refusal.because(
            "checkpoint_incomplete",
            f"The checkpoint {lacks}; send one block with all six lines {_SIX_LINES}.",
            tuple(label.value for label in closest.missing),
        )
    if any(part.fenced for part in found):
        refusal.because(
            "checkpoint_fenced_example",
            "The only checkpoint stands in a code fence inside a longer or unfinished reply, where it counts as an "
            f"example; send the six lines {_SIX_LINES} without a fence.",
        )
    refusal.because(
        "checkpoint_missing", f"The reply holds no checkpoint; send one block with the six lines {_SIX_LINES}."
    )


def _refuse_template(block: Block, refusal: _Refusal) -> None:
    answers = [block.files_changed, block.commands_run, block.result, block.blocker, block.next_action]
    unfilled = [label for label, answer in zip(REQUIRED[1:], answers, strict=True) if is_placeholder(answer)]
    if unfilled or not any(answers):
        names = ", ".join(unfilled or REQUIRED[1:])
        refusal.because(
            "checkpoint_template",
            f"{names} still holds the words of the template; send the checkpoint again with your own answers.",
        )


def _refuse_other_worker(block: Block, worker_id: str | None, refusal: _Refusal) -> None:
    if worker_id is None:
        return
    for named in (worker_in(block.worker), worker_in(block.header)):
        if named and named.lower() != worker_id.lower():
            refusal.because(
                "checkpoint_wrong_worker",
                f"The checkpoint is that of worker {named}; send the one of worker {worker_id}.",
            )


def _answered(block: Block, renewal_id: str | None, refusal: _Refusal) -> str | None:
    named = id_in(block.renewal_id)
    if renewal_id and named and named.lower() != renewal_id.lower():
        refusal.because(
            "checkpoint_wrong_renewal",
            f"The checkpoint answers another renewal; send a new one with RENEWAL_ID: {renewal_id}.",
        )
    return named or None


def _stated(block: Block, refusal: _Refusal) -> tuple[State, str]:
    stated = state_in(block.state)
    if stated is None:
        refusal.because(
            "checkpoint_state_unknown",
            f"STATE does not name one known state; send exactly one of {', '.join(State)}.",
        )
    return stated
