"""What kept an agent's turn from being answered: an API failure, a limit, an overload, a lost login. Pure."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from typing import Literal

from lifecycle.reset_time import reset_time
from lifecycle.value import Value

Kind = Literal["api_failure", "rate_limit", "quota", "login", "overloaded"]

SHARED: frozenset[Kind] = frozenset({"rate_limit", "quota", "login"})
"""What concerns an account, and so every worker on it."""

LONGEST_WORDS = 300

_LOGIN = re.compile(
    r"please log ?in|log ?in again|not logged in|login (?:required|expired)|/login\b|re-?authenticate"
    r"|authenticat\w+ (?:failed|required|error)|unauthori[sz]ed|authentication_error|\b401\b"
    r"|(?:api[ _-]?key|access token|token|credentials?|oauth[ \w]*|session)[ \"'\w]{0,20}"
    r"(?:invalid|expired|revoked|rejected|not valid)"
    r"|(?:invalid|incorrect|expired|revoked|missing)[ _](?:x-)?(?:api[ _-]?key|token|credentials?)",
)
_QUOTA = re.compile(
    r"quota|billing|payment required|\b402\b|(?:out of|insufficient|not enough|exhausted)[ _](?:credits?|balance|funds)"
    r"|credits?(?: balance)? (?:\w+ ){0,2}(?:exhausted|too low)|(?:usage|daily|weekly|monthly|spend\w*|5-hour|session)"
    r"[ _-]limit|[ _-]per[ _-]day|\b(?:rpd|tpd)\b|hit your limit|(?<!rate )limit reached",
)
_RATE = re.compile(
    r"rate[ _-]?limit|too many requests|\b429\b|throttl|(?:requests|tokens)[ _-]per[ _-]min|\b[rt]pm\b|limit resets"
)
_OVERLOAD = re.compile(r"overload|\b529\b|\b503\b|service unavailable|at capacity|server is busy|high demand")
_LATER = re.compile(r"try again (?:in|at|after|later)|retry[ _-]?(?:after|delay)|retry in")
_FAILED = re.compile(
    r"❌|api (?:call )?(?:failed|error)|\bhttp \d{3}\b|non-retryable|connection|network|timed? ?out|no response"
    r"|max retries|no content|ended without an answer|error",
)
_KINDS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (_QUOTA, "quota"),
    (_RATE, "rate_limit"),
    (_LOGIN, "login"),
    (_OVERLOAD, "overloaded"),
    (_LATER, "rate_limit"),
    (_FAILED, "api_failure"),
)


class Trouble(Value):
    """Why a turn had no answer. *words* are the agent's own, *resets_at* where they say when it is over."""

    kind: Kind
    words: str
    resets_at: datetime | None = None

    @property
    def is_shared(self) -> bool:
        return self.kind in SHARED


def trouble_in(text: str, now: datetime, *, local: tzinfo | None = None) -> Trouble | None:
    """Classify the line in which an agent says that a turn failed; None where it says nothing of the kind.

    *text* must be the agent's own notice, never a transcript's prose: people and workers talk of 401 and of limits
    all day (O1). *now* is when it was said.
    """
    words = " ".join(text.split())
    lower = words.lower()
    kind = next((kind for pattern, kind in _KINDS if pattern.search(lower)), None)
    if kind is None:
        return None
    ends = reset_time(words, now, local=local) if kind not in ("login", "api_failure") else None
    return Trouble(kind=kind, words=words[:LONGEST_WORDS], resets_at=ends)
