"""Secrets out of texts that are kept: by known shapes, the name stays, the value goes.

What stays: hex digests, UUIDs, paths, numbers, variables (`$TOKEN`) and placeholders, for a handoff without
them is useless. Every pattern is bounded or anchored, so the time grows with the text and not faster.

Why no library: of the labelled texts in tests/lifecycle/redaction_cases.py (102 secrets, 70 texts to keep)
detect-secrets 1.5.0 finds 30 without its entropy rules, mostly without saying where, and with them takes 68 of the 70
for secrets; scrubadub 2.0.1 finds 10, betterleaks 2.0.0 57 (54 MB), kingfisher 1.5.0 47 (35 MB, 11 s at its first
start). They look for valid keys in code that is committed, and invented ones pass not all of their checks; here are
headers, flags, connection strings and keys cut off in the middle, in what people and tools say.
"""

from __future__ import annotations

import re

from lifecycle.secret_shapes import without_shapes

_PEM_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----")
_PEM_LINES = re.compile(r"(?:\s{0,8}[>|]?\s{0,8}(?:[A-Za-z0-9+/=]{20,}|[A-Za-z-]{4,20}: [^\n]{0,200})(?=\s|\\n|$))*")
_PEM_LONGEST = 16_384

_WEBHOOK = re.compile(r"(https://hooks\.slack\.com/services/|https://discord(?:app)?\.com/api/webhooks/)[\w/-]{8,}")
_URL_PASSWORD = re.compile(
    r"((?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:/@\[\"'`]{0,256}:)([^\s/\"'`]{1,256})(?=@)"
)
_URL_TOKEN = re.compile(
    r"((?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}://)(?=[A-Za-z_-]{0,200}[0-9])([\w-]{20,256})(?=@)"
)
_SIGNATURE = re.compile(
    r"([?&](?:sig|signature|x-amz-signature|x-goog-signature)=)([A-Za-z0-9%+/=_-]{16,})", re.IGNORECASE
)
_AUTHORIZATION = re.compile(
    r"(\b(?:proxy-)?authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:bearer|basic|token)\s{1,4})"
    r"(?![\[$<{])([^\s\"'`,;]{4,})",
    re.IGNORECASE,
)
_BARE_AUTHORIZATION = re.compile(
    r"(\b(?:proxy-)?authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?)(?=[A-Za-z._~+/=-]{0,200}[0-9])([A-Za-z0-9._~+/=-]{16,})",
    re.IGNORECASE,
)
_COOKIES = re.compile(r"\b(?:set-)?cookie[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?([^\r\n\"']{1,4096})", re.IGNORECASE)
_COOKIE = re.compile(
    r"(?<![A-Za-z0-9_.-])((?!(?:path|expires|max-age|domain|samesite)=)[A-Za-z0-9_.-]{1,64}=)([^;,\s\"'\[]{8,})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(\bbearer\s{1,4})(?=[A-Za-z._~+/-]{0,200}[0-9])([A-Za-z0-9._~+/=-]{16,})", re.IGNORECASE)

# `api_key`, `clientSecret`, `DB_PASSWORD`: names that say what they hold.
_TELLING = (
    r"(?:api|secret|access|private|auth|account|shared[_-]?access|encryption|signing)[_-]?key"
    r"|(?:auth|access|refresh|bearer|api|bot|session|id)[_-]?token"
    r"|security[_-]?token|client[_-]?secret|password|passwd|passphrase|secret|token|credentials?|pwd"
)
_ASSIGNMENT = re.compile(
    r"(?<![A-Za-z0-9_])"
    r"(?P<name>_{0,2}(?:[A-Za-z0-9]{1,32}[_.-]){0,6}"
    rf"(?:(?-i:[a-z]{{1,20}}(?=[A-Z])))?(?:(?P<telling>{_TELLING})|(?-i:[A-Z0-9]{{1,32}}_KEY)))"
    r"(?P<sign>\\?[\"'`]?\*{0,2}(?:[ \t](?:is|was))?\s{0,4}(?:=(?!=)|:(?![:/=]))\*{0,2}[ \t]{0,4})"
    r"(?P<quote>\\?[\"'`])?"
    r"(?P<value>(?(quote)[^\"'`\\\n]{1,4096}|[^\s\"'`,;&<>()\[\]{}]{1,4096}))",
    re.IGNORECASE,
)
_FLAG = re.compile(
    r"((?<![\w-])--?(?:[a-z0-9]{1,20}-){0,3}(?:password|passwd|passphrase|token|api-?key|secret)[ \t]{1,4}[\"']?)"
    r"(?=[^\s\"'`]{0,200}[0-9])(?![-$<{\[/~])([^\s\"'`]{6,})",
    re.IGNORECASE,
)
_CELL = re.compile(
    rf"(\|[ \t]{{0,40}}[`*]{{0,2}}(?:[A-Za-z0-9]{{1,32}}[_.-]){{0,6}}(?:{_TELLING})[`*]{{0,2}}"
    r"[ \t]{0,40}\|[ \t]{0,40}`?)(?=[^|\s]{0,200}[0-9])(?![$<{\[/~])([^|\s`]{8,})",
    re.IGNORECASE,
)
_USER = re.compile(
    r"((?<![\w-])(?:-u|--user)[ =]{1,2}[\"']?[A-Za-z0-9_.@+-]{1,64}:)(?![$<{\[]|\d{1,8}(?!\S))([^\s\"'`]{4,})"
)
_MYSQL = re.compile(r"(\bmysql(?:dump|admin)?\b[^\n|;&]{0,200}?[ \t]-p)(?![$<{\[\"'])([^\s\"'`]{4,})")
_NETRC = re.compile(r"(\blogin\s{1,4}\S{1,256}\s{1,4}password\s{1,4})(?![$<{\[])(\S{1,256})")
_HEX = re.compile(r"[0-9a-f]{7,40}", re.IGNORECASE)
_HARMLESS = re.compile(
    r"\[redacted.*|[$%<{(].*|\*+|\.{2,}|…|(?:~|\.{1,2})?/.*|[A-Za-z]:\\.*"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?:true|false|yes|no|on|off|none|null|nil|n/a|unset|set|missing|required|changed|unchanged|ok|expired|invalid)[.!]?"
    r"|redacted|hidden|masked|x{3,}|str|string|int|bool|bytes|any|text|varchar|optional"
    r"|(?:os|process|self|env|config|settings|secrets|vault|args|request)[.\[].*",
    re.IGNORECASE | re.DOTALL,
)
_FIGURE = re.compile(r"[-+]?[0-9][0-9.,_]{0,11}[a-z%]?", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"[a-z_]{1,40}(?:\.[a-z_]{1,40}){1,6}", re.IGNORECASE)
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
_IN_SENTENCES = re.compile(
    r"an?|and|are|as|at|be|can|does|for|has|is|it|may|must|not|or|should|the|this|to|was|will", re.IGNORECASE
)
"""Words that begin a sentence about a password, and no password."""

_PASSWORDS = frozenset({"password", "passwd", "passphrase", "pwd"})


_PLACES = (
    (_URL_TOKEN, "token"),
    (_SIGNATURE, "signature"),
    (_AUTHORIZATION, "authorization"),
    (_BARE_AUTHORIZATION, "authorization"),
    (_BEARER, "bearer"),
    (_USER, "password"),
    (_MYSQL, "password"),
    (_NETRC, "password"),
    (_CELL, "secret"),
    (_FLAG, "secret"),
)
"""Where a secret stands although its own shape says nothing."""


PASSES = 8
"""What hides a secret may be another one: two keys without anything between them. A text without any has one pass."""


def redact(text: str) -> str:
    """Return *text* with every value of a known secret shape replaced by `[redacted:<kind>]`.

    Doing it twice changes nothing. A shape that is not known stays: this lowers the risk, it does not end it.
    """
    for _ in range(PASSES):
        found = _redacted(text)
        if found == text:
            break
        text = found
    return text


def _redacted(text: str) -> str:
    text = _without_private_keys(text)
    text = _WEBHOOK.sub(r"\1[redacted:webhook]", text)
    text = _URL_PASSWORD.sub(r"\1[redacted:password]", text)
    text = without_shapes(text)
    for pattern, kind in _PLACES:
        text = pattern.sub(rf"\1[redacted:{kind}]", text)
    text = _COOKIES.sub(lambda match: _COOKIE.sub(r"\1[redacted:cookie]", match[0]), text)
    return _ASSIGNMENT.sub(_without_value, text)


def _without_value(match: re.Match[str]) -> str:
    value, telling = match["value"], (match["telling"] or "").lower()
    follows = match.string[match.end() : match.end() + 1]
    is_called = follows in {"(", "["} and not match["quote"] and value.isidentifier()
    if _HARMLESS.fullmatch(value) or is_called:
        return match[0]
    if _IN_SENTENCES.fullmatch(value) if telling in _PASSWORDS else _is_prose(match, value, telling):
        return match[0]
    kind = "password" if telling in _PASSWORDS else "secret"
    return f"{match['name']}{match['sign']}{match['quote'] or ''}[redacted:{kind}]"


def _is_prose(match: re.Match[str], value: str, telling: str) -> bool:
    """A count, `request.token` in code, a word in a sentence, or what `SORT_KEY=created_at` holds."""
    if _FIGURE.fullmatch(value) or (not match["quote"] and _ATTRIBUTE.fullmatch(value)):
        return True
    if not telling:
        return len(value) < 8 or not any(ch.isdigit() for ch in value) or bool(_HEX.fullmatch(value))
    follows = match.string[match.end() : match.end() + 2]
    return not match["quote"] and bool(_WORD.fullmatch(value)) and follows[:1] == " " and follows[1:].isalpha()


def _without_private_keys(text: str) -> str:
    """Private key blocks, also those cut off before their end: what looks like key lines goes with them."""
    kept, at = [], 0
    while begin := _PEM_BEGIN.search(text, at):
        kept.append(text[at : begin.start()])
        closing = f"-----END {begin[1]}-----"
        end = text.find(closing, begin.end(), begin.end() + _PEM_LONGEST)
        another = text.find("-----BEGIN ", begin.end(), end if end >= 0 else begin.end())
        if end >= 0 and another < 0:
            at = end + len(closing)
        else:
            lines = _PEM_LINES.match(text, begin.end())
            at = lines.end() if lines else begin.end()
        kept.append("[redacted:private-key]")
    return "".join(kept) + text[at:]
