"""Whether a face may have drawn something new, told without a look: who draws has written bytes."""

from __future__ import annotations

from lifecycle.processes import tree_of, written_by
from lifecycle.screen import PaneLook


class Drawing:
    """A pane's programs between two looks at it. Its stamp costs microseconds; a log line changes it, too."""

    def __init__(self) -> None:
        self._pids: tuple[int, ...] = ()

    def follow(self, look: PaneLook) -> None:
        """Watch the programs that run in the pane of *look*."""
        self._pids = tuple(one.pid for one in tree_of(look.screen.pane_pid)) if look.screen is not None else ()

    def stamp(self) -> object:
        """Another value as soon as one of them has written; always the same where nobody can tell."""
        return tuple(map(written_by, self._pids))
