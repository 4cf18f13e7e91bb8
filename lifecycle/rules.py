"""Standing rules in the words of those who gave them: found by their form, kept verbatim. Pure.

A rule that a summary retells is a rule that a summary can lose or invent (hermes-agent #84718, codegraff #738).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lifecycle.foreign_text import cleaned, unfenced
from lifecycle.value import Value

LONGEST = 600
MOST = 60
"""So many rules are kept of one source."""

_MARK = re.compile(r"^[ \t>]{0,12}(?:[-*+•◦▪]|\(?\d{1,2}[.):、]|\[[ xX]\]|[①-⑳])[ \t]*")
_NAMES = (
    r"(?:rules?|constraints?|guard ?rails?|never do|do nots?|don'?ts|prohibitions?|restrictions?|policy|policies"
    r"|invariants?|守则|规则|约束|规定|红线|原则|要求|注意事项|禁止事项)"
)
_TITLED = re.compile(
    rf"^[ \t>#*_-]{{0,12}}(?:[\w'-]{{1,20}}[ \t]){{0,3}}{_NAMES}"
    r"(?:[ \t][\w' -]{0,30})?[*_]{0,2}[ \t]*(?P<colon>[:：])?[*_]{0,2}[ \t]*(?P<rest>.*)$",
    re.IGNORECASE,
)
_ANNOUNCED = re.compile(
    rf"(?:\b|(?<=[\u3000-\u9fff])){_NAMES}(?:[ \t][\w' -]{{0,30}}|如下)?[*_]{{0,2}}[ \t]*[:：]$", re.IGNORECASE
)
_FIRST_WORDS = (
    r"^(?:please[ \t]+)?"
    r"(?:never|always|do[ \t]+not|don['’]?t|must|no|only|under no circumstances|without\b.{1,40}\bdo)\b"
)
_MODALS = (
    r"\b(?:must(?:[ \t]+not|n['’]t)?|shall(?:[ \t]+not)?|may[ \t]+not|never|off[ -]limits|at all times|not permitted"
    r"|(?:is|are?)[ \t]+(?:forbidden|prohibited|mandatory|not[ \t]+allowed))\b"
)
_CHINESE = r"绝不|决不|不得|禁止|必须|不要|不许|不可|不能|严禁|切勿|不准|务必|一律|始终|只能|只准|只允许"
_FROM_NOW_ON = r"\b(?:from now on|from here on|going forward|henceforth)\b|从现在起|从今以后|今后|以后都"
_TAKEN_BACK = (
    r"\b(?:is|are)[ \t]+(?:lifted|withdrawn|revoked|waived|suspended)\b"
    r"|\bno longer[ \t]+(?:appl(?:y|ies)|holds?|forbidden|required|mandatory|needed)\b"
    r"|(?:解除|作废|撤销|不再(?:适用|要求|禁止|需要))"
)
"""A rule that was taken back crosses with the words that took it back, which stand behind it."""

_ORDERS = re.compile(f"{_FIRST_WORDS}|{_MODALS}|{_CHINESE}|{_FROM_NOW_ON}|{_TAKEN_BACK}", re.IGNORECASE)
_TALK = re.compile(
    r"^(?:do(?:n['’]t| not) (?:know|worry|think|forget to tell|mind)\b|no(?:[,.!]|$| problem| worries)|never ?mind\b)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]")
_SENTENCE = re.compile(r"(?<=[.!?;])[ \t]+(?=\S)|(?<=[。！？；])[ \t]*(?=\S)")
"""A full stop inside a file's name or a version ends nothing."""


class Rule(Value):
    """One rule, verbatim. *source* says who gave it, or which file."""

    text: str
    source: str

    @property
    def key(self) -> str:
        """The same for a rule that is said again in other punctuation or case."""
        return "".join(ch for ch in self.text.lower() if ch.isalnum())


def rules_in(text: str, source: str) -> tuple[Rule, ...]:
    """The rules of *text*: all items below a title that says so, and elsewhere every sentence that orders or forbids.

    A fenced block gives none.
    """
    lines, found, titled = cleaned(text).split("\n"), [], False
    for number, outside in unfenced(lines):
        line = lines[number].strip()
        if not outside:
            continue
        if not line:
            # A list may have air between its items, a paragraph ends.
            titled = titled and _next_is_item(lines, number)
            continue
        title = _TITLED.match(line) if len(line) <= LONGEST else None
        if title and (title["colon"] or _HEADING.match(line) or not title["rest"]):
            titled, rest = True, title["rest"]
            found += _items(rest) if rest else []
            continue
        if _ANNOUNCED.search(line):
            titled = True
            found += _ordering(line)
            continue
        if _HEADING.match(line):
            titled = False
            continue
        found += [_MARK.sub("", line)] if titled else _ordering(line)
    texts = [one.strip()[:LONGEST] for one in found if one.strip() and not _TALK.match(one.strip())]
    return tuple(Rule(text=one, source=source) for one in dict.fromkeys(texts))[:MOST]


def merged(rules: Iterable[Rule], *more: Iterable[Rule]) -> tuple[Rule, ...]:
    """All of them once, the first source of each."""
    found: dict[str, Rule] = {}
    for group in (rules, *more):
        for rule in group:
            found.setdefault(rule.key, rule)
    return tuple(found.values())


def not_among(rules: Iterable[Rule], known: Iterable[Rule]) -> tuple[Rule, ...]:
    """Those of *rules* that nobody but their source knows: neither as a rule nor as a part of one."""
    keys = [rule.key for rule in known]
    return tuple(rule for rule in rules if not any(rule.key in key or key in rule.key for key in keys if key))


def _next_is_item(lines: list[str], number: int) -> bool:
    following = next((line for line in lines[number + 1 :] if line.strip()), "")
    return _MARK.match(following) is not None


def _items(rest: str) -> list[str]:
    """`Rules: 1) one; 2) two` on one line."""
    parts = re.split(r"(?:^|[;；,，。.][ \t]*|[ \t]+)(?:\(?\d{1,2}[.)、:]|[①-⑳])[ \t]*(?=\D)", rest)
    return [part for part in parts if part.strip(" ;；,，")] if len(parts) > 2 else [rest]


def _ordering(line: str) -> list[str]:
    """The sentences of a line that order or forbid, each with its mark taken away."""
    return [part for part in _SENTENCE.split(_MARK.sub("", line)) if _ORDERS.search(part)]
