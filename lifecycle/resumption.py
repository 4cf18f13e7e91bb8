"""How a new session takes up the work: at once, or only when a person has spoken. Pure."""

from __future__ import annotations

from enum import StrEnum

from lifecycle.proofs import Quality, SavedHandoff


class Resumption(StrEnum):
    """What the last line of the resume prompt asks for."""

    GO_ON = "go_on"
    ANSWER = "answer"  # a person was asked and has not answered (opencode #36682)
    FINISHED = "finished"  # its mission is closed (aidevops #27978)
    REGROUND = "reground"  # nobody wrote the handoff, so nobody stated a next action


def resumption_of(saved: SavedHandoff, *, finished: bool) -> Resumption:
    """The most careful one that applies."""
    if finished:
        return Resumption.FINISHED
    if saved.asks_human:
        return Resumption.ANSWER
    return Resumption.REGROUND if saved.quality is Quality.SYNTHESIZED else Resumption.GO_ON


LAST_WORDS = {
    Resumption.ANSWER: "reply first, then wait: a person was asked and has not answered yet; do not answer for them",
    Resumption.FINISHED: "reply first, then wait for orders: the mission is finished and nothing of it is resumed",
    Resumption.REGROUND: "re-ground yourself from the files named above, reply, then wait for orders",
}
"""The last line where it is not the handoff's own next action; Afresh's own words, so any face takes them."""

STATES = {
    Resumption.GO_ON: "IN_PROGRESS",
    Resumption.ANSWER: "NEEDS_INPUT",
    Resumption.FINISHED: "DONE",
    Resumption.REGROUND: "IN_PROGRESS",
}
"""The state that the prompt's checkpoint names."""
