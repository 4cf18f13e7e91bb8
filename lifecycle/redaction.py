"""Secrets out of texts that are kept: by known shapes, the name stays, the value goes.

What stays: hex digests, UUIDs, paths, numbers, variables (`$TOKEN`) and placeholders, for a handoff without
them is useless. Every pattern is bounded or anchored, so the time grows with the text and not faster.
"""

from __future__ import annotations

import re

_PEM_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----")
_PEM_LINES = re.compile(r"(?:\s{0,8}[>|]?\s{0,8}(?:[A-Za-z0-9+/=]{20,}|[A-Za-z-]{4,20}: [^\n]{0,200})(?=\s|\\n|$))*")
_PEM_LONGEST = 16_384

_SHAPES = tuple(
    (kind, re.compile(rf"(?<![A-Za-z0-9_-])(?:{shape})"))
    for kind, shape in (
        ("jwt", r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
        ("api-key", r"sk-(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{16,}"),
        ("api-key", r"[rsp]k_(?:live|test)_[A-Za-z0-9]{10,}"),
        ("github-token", r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"),
        ("gitlab-token", r"glpat-[A-Za-z0-9_-]{16,}"),
        ("aws-key", r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("slack-token", r"xox[abeoprs]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{10,}"),
        ("google-key", r"AIza[A-Za-z0-9_-]{30,}"),
        ("huggingface-token", r"hf_[A-Za-z0-9]{20,}"),
        ("npm-token", r"npm_[A-Za-z0-9]{30,}"),
        ("pypi-token", r"pypi-[A-Za-z0-9_-]{40,}"),
        ("telegram-token", r"[0-9]{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    )
)

_WEBHOOK = re.compile(r"(https://hooks\.slack\.com/services/|https://discord(?:app)?\.com/api/webhooks/)[\w/-]{8,}")
_URL_PASSWORD = re.compile(
    r"((?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:/@\[\"'`]{0,256}:)([^\s/@\"'`]{1,256})(?=@)"
)
_AUTHORIZATION = re.compile(
    r"(\b(?:proxy-)?authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:bearer|basic|token)\s{1,4})"
    r"(?![\[$<{])([^\s\"'`,;]{4,})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(\bbearer\s{1,4})(?=[A-Za-z._~+/-]{0,200}[0-9])([A-Za-z0-9._~+/=-]{16,})", re.IGNORECASE)

# `api_key`, `clientSecret`, `DB_PASSWORD`: names that say what they hold.
_TELLING = (
    r"(?:api|secret|access|private|auth|account|shared[_-]?access|encryption|signing)[_-]?key"
    r"|(?:auth|access|refresh|bearer|api|bot|session|id)[_-]?token"
    r"|client[_-]?secret|password|passwd|passphrase|secret|token|credentials?|pwd"
)
_ASSIGNMENT = re.compile(
    r"(?<![A-Za-z0-9_])"
    r"(?P<name>(?:[A-Za-z0-9]{1,32}[_.-]){0,6}"
    rf"(?:(?-i:[a-z]{{1,20}}(?=[A-Z])))?(?:(?P<telling>{_TELLING})|(?-i:[A-Z0-9]{{1,32}}_KEY)))"
    r"(?P<sign>\\?[\"'`]?\*{0,2}\s{0,4}(?:=(?!=)|:(?![:/=]))\*{0,2}[ \t]{0,4})"
    r"(?P<quote>\\?[\"'`])?"
    r"(?P<value>(?(quote)[^\"'`\\\n]{1,4096}|[^\s\"'`,;&<>()\[\]{}]{1,4096}))",
    re.IGNORECASE,
)
_FLAG = re.compile(
    r"((?<![\w-])--?(?:[a-z0-9]{1,20}-){0,3}(?:password|passwd|passphrase|token|api-?key|secret)[ \t]{1,4}[\"']?)"
    r"(?=[^\s\"'`]{0,200}[0-9])(?![-$<{\[/~])([^\s\"'`]{6,})",
    re.IGNORECASE,
)
_HEX = re.compile(r"[0-9a-f]{7,40}", re.IGNORECASE)
_HARMLESS = re.compile(
    r"\[redacted.*|[$%<{(].*|\*+|\.{2,}|…|(?:~|\.{1,2})?/.*|[A-Za-z]:\\.*"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?:true|false|yes|no|on|off|none|null|nil|n/a|unset|set|missing|required|changed|unchanged|ok|expired|invalid)[.!]?"
    r"|(?:os|process|self|env|config|settings|secrets|vault|args|request)[.\[].*",
    re.IGNORECASE | re.DOTALL,
)
_FIGURE = re.compile(r"[-+]?[0-9][0-9.,_]{0,11}[a-z%]?", re.IGNORECASE)
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
_PASSWORDS = frozenset({"password", "passwd", "passphrase", "pwd"})


def redact(text: str) -> str:
    """Return *text* with every value of a known secret shape replaced by `[redacted:<kind>]`.

    Doing it twice changes nothing. A shape that is not known stays: this lowers the risk, it does not end it.
    """
    text = _without_private_keys(text)
    text = _WEBHOOK.sub(r"\1[redacted:webhook]", text)
    text = _URL_PASSWORD.sub(r"\1[redacted:password]", text)
    for kind, shape in _SHAPES:
        text = shape.sub(f"[redacted:{kind}]", text)
    text = _AUTHORIZATION.sub(r"\1[redacted:authorization]", text)
    text = _BEARER.sub(r"\1[redacted:bearer]", text)
    text = _FLAG.sub(r"\1[redacted:secret]", text)
    return _ASSIGNMENT.sub(_without_value, text)


def _without_value(match: re.Match[str]) -> str:
    value, telling = match["value"], (match["telling"] or "").lower()
    if _HARMLESS.fullmatch(value) or (telling not in _PASSWORDS and _is_prose(match, value, telling)):
        return match[0]
    kind = "password" if telling in _PASSWORDS else "secret"
    return f"{match['name']}{match['sign']}{match['quote'] or ''}[redacted:{kind}]"


def _is_prose(match: re.Match[str], value: str, telling: str) -> bool:
    """A count, a word in a sentence, or what `SORT_KEY=created_at` holds."""
    if _FIGURE.fullmatch(value):
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
