"""Hermes's own command for compacting its context, and the only form of it that Afresh types.

`/compress` takes words to keep in view; some words mean something else to it (`here 3`, `--preview`), so ours begin
with words of their own. No character that either face would run, complete or attach can stand in them.
"""

from __future__ import annotations

import re

from lifecycle.screen import Face

OPENING = "/compress keep what is needed for the objective"
"""How every such command of Afresh begins."""

LONGEST = 400
"""Characters of a command: a longer one could be collapsed to a placeholder, or would be no focus."""

_PLAIN = re.compile(rf"{re.escape(OPENING)}(?:[:,] [A-Za-z0-9 ,;:._()-]*[A-Za-z0-9.)])?")
_IN_CLI = re.compile(rf"{re.escape(OPENING)}(?:[:,] [\w ,;:.()-]*[\w.)])?")
_UNFIT = {Face.CLI: re.compile(r"[^\w ,;:.()-]+"), Face.TUI: re.compile(r"[^A-Za-z0-9_ ,;:.()-]+")}


def compact_command(own_words: str, quoted: str, face: Face) -> str:
    """The command with the focus *own_words*, and behind them *quoted*, what others wrote, where *face* takes that.

    What does not fit into a command is left out of it; nothing of it can act.
    """
    focus = f"{own_words}; in their words: {quoted}" if quoted.strip() and face is Face.CLI else own_words
    fitting = " ".join(_UNFIT[face].sub(" ", focus).split())
    return f"{OPENING}: {fitting}"[:LONGEST].rstrip(" ,;:-(_")


def is_compact_command(text: str, face: Face) -> bool:
    """Whether *text* is a command that `compact_command` made for this *face*: only that begins with a slash."""
    if len(text) > LONGEST or "\n" in text:
        return False
    return (_IN_CLI if face is Face.CLI else _PLAIN).fullmatch(text) is not None
