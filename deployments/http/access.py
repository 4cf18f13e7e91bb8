"""Who may ask: one token for programs, and for the page a session that the token opened.

A session is a cookie that carries its own end and a signature made with the token: a new token ends all sessions.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from lifecycle import durable
from lifecycle.errors import ConfigurationError
from lifecycle.settings import Settings

COOKIE = "afresh_session"
SESSION_FOR = timedelta(hours=12)
SHORTEST = 20
"""Characters; our own token has 43."""


def token_path(settings: Settings) -> Path:
    return settings.home / "http.token"


def kept_token(settings: Settings) -> str:
    """The token of this home: made at the first need, kept for its owner alone. The file may be replaced by hand.

    Raises:
        ConfigurationError: it is too short, or others can read it, or it cannot be made.
    """
    path = token_path(settings)
    try:
        durable.make_private(path.parent)
        if not path.exists():
            with suppress(FileExistsError):  # another process was quicker
                durable.create(path, f"{secrets.token_urlsafe(32)}\n".encode())
        if path.stat().st_mode & 0o077:
            msg = f"{path}: others can read the token; delete the file, and a new one is made"
            raise ConfigurationError(msg)
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: no token can be kept there: {error}"
        raise ConfigurationError(msg) from error
    if len(token) < SHORTEST or not token.isascii():
        msg = f"{path}: not a token: {SHORTEST} ASCII characters or more; delete the file, and one is made"
        raise ConfigurationError(msg)
    return token


class Access:
    """Judges tokens, sessions and the page's own proof that a request comes from it. *now* is seconds since the epoch.

    Every comparison takes the same time whatever is compared.
    """

    def __init__(self, token: str, now: Callable[[], float]) -> None:
        self._token, self._now = token.encode(), now

    def is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self._token)

    def is_bearer(self, header: str | None) -> bool:
        """Whether an Authorization header carries the token."""
        scheme, _, credentials = (header or "").partition(" ")
        return scheme.lower() == "bearer" and self.is_token(credentials.strip())

    def new_session(self) -> str:
        until = int(self._now() + SESSION_FOR.total_seconds())
        body = f"{until}.{secrets.token_urlsafe(12)}"
        return f"{body}.{self._signed('session', body)}"

    def is_session(self, cookie: str | None) -> bool:
        body, _, signature = (cookie or "").rpartition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._signed("session", body).encode()):
            return False
        until = body.partition(".")[0]
        return until.isdecimal() and int(until) > self._now()

    def csrf_of(self, session: str) -> str:
        """What the page sends along with an act: no other site's page can read it."""
        return self._signed("csrf", session)

    def is_csrf(self, session: str, given: str | None) -> bool:
        return hmac.compare_digest((given or "").encode("utf-8", "replace"), self.csrf_of(session).encode())

    def _signed(self, use: str, text: str) -> str:
        return hmac.digest(self._token, f"{use}:{text}".encode("utf-8", "replace"), "sha256").hex()
