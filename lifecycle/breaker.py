"""One breaker per account: what one worker met holds every worker that shares it (U3)."""

from __future__ import annotations

from datetime import datetime

from lifecycle.trouble import Kind, Trouble
from lifecycle.value import Value


class Breaker(Value):
    """The newest trouble of an account.

    *since* is when it was met, *until* when it ends by itself: never, for a lost login. *closed_at* is when a proof
    or a human closed it; trouble from before that moment does not open it again.
    """

    account: str
    kind: Kind
    since: datetime
    until: datetime | None = None
    why: str
    closed_at: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        return self.closed_at is None and (self.until is None or self.until > now)

    @property
    def words(self) -> str:
        """What it means for the workers of the account, with the way out."""
        if self.kind == "login":
            cure = f"log in again with `hermes auth` or `hermes model`; no restart cures it (account {self.account})"
            after = f"it goes on after an answered turn, or `afresh release --account {self.account!r}`"
            return f"parked: the login is lost ({self.why}): {cure}; {after}"
        until = f" until {self.until:%Y-%m-%d %H:%M} UTC" if self.until else ""
        return f"parked{until} with all workers of account {self.account} ({self.why}); it goes on by itself then"

    @property
    def trouble(self) -> Trouble:
        return Trouble(kind=self.kind, words=self.why, resets_at=self.until)
