"""Which tools and commands only look: they change nothing, so a handoff can do without them. Pure."""

from __future__ import annotations

import re

LOOKING_TOOLS = frozenset(
    {
        "browser_snapshot",
        "clarify",
        "list_directory",
        "list_files",
        "memory",
        "read_file",
        "search_files",
        "session_search",
        "skill_view",
        "skills_list",
        "todo",
        "vision_analyze",
        "web_extract",
        "web_search",
    }
)
"""Tools that change nothing which a handoff tells of."""

_LOOKS = re.compile(
    r"\s*(?:cat|cut|date|df|du|file|find|git (?:status|diff|log|show|rev-parse|branch(?= *$| +(?:-[arv]|--list)))|grep"
    r"|head|jq|ls|nl|ps|pwd|rg|sed -n|sha256sum|sort|stat|tail|test|tree|wc|which)\b[^;&<>`$]*"
)
_ACTS = re.compile(r"\s-(?:delete|exec\w*|ok\w*|fprint\w*|fls|i|o)\b|\s--(?:in-place|output|replace)\b")
_QUIET = re.compile(r"\s+2>\s?(?:&1|/dev/null)(?=\s|$)")


def only_looks(command: str) -> bool:
    """Whether *command* is a look, or looks joined by pipes; what writes or runs something else is none."""
    parts = _QUIET.sub("", command).split("|")
    return all(_LOOKS.fullmatch(part) and not _ACTS.search(part) for part in parts)
