"""What a session's calls were billed, counter by counter, as the agent adds it up."""

from __future__ import annotations

from lifecycle.value import Value


class Billed(Value):
    """Tokens since the session began. They only grow: a bill, not the size of a context.

    *messages* is the sum of the rows' own counts, which agents leave empty more often than not.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    messages: int = 0

    @property
    def counters(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write + self.reasoning

    @property
    def total(self) -> int:
        """The reference system's figure for a session."""
        return max(self.counters, self.messages)
