"""What a session's calls were billed, counter by counter, as the agent adds it up."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lifecycle.value import Value

Tokens = Annotated[int, Field(ge=-(10**15), le=10**15)]
"""More was never billed, and sums of what is less can be kept in any database."""


class Billed(Value):
    """Tokens since the session began. They only grow: a bill, not the size of a context.

    *messages* is the sum of the rows' own counts, which agents leave empty more often than not.
    """

    input: Tokens = 0
    output: Tokens = 0
    cache_read: Tokens = 0
    cache_write: Tokens = 0
    reasoning: Tokens = 0
    messages: Tokens = 0

    @property
    def counters(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write + self.reasoning

    @property
    def total(self) -> int:
        """The reference system's figure for a session."""
        return max(self.counters, self.messages)
