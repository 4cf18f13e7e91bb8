"""What was collected as lines of the handoff, within a budget, and back again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from lifecycle.collected import Collected, Command, TouchedFile, going_first

HEADING = "## Collected by Afresh"
"""Opens the part of a handoff that this module writes and reads."""

_OPENING = "By the machine at {at}: from git, the transcript and the process table. No word of it is the worker's."
_STAMP = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"
_LEFT_OUT = re.compile(r"- \((\d+) (?:older ones? )?left out[^)\n]*\)")
_KEPT = re.compile(r"- \[\[OFFLOAD: handle=([0-9a-f]+), tool=(\S+), chars=(\d+)\]\] ?(.*)")
_WHERE = re.compile(r"- ([a-zA-Z ]+): (.*)")

_TITLES = {
    "interrupted": "Interrupted calls: effect unknown, verify first",
    "todos": "Open to-dos",
    "changes": "Uncommitted changes",
    "not_stored": "Not in the snapshot",
    "background": "Processes in the background, ended with the session",
    "files": "Files that its tools touched",
    "commands": "Its commands with their exit codes",
    "results": "Large results, kept: `{show} HANDLE [--lines FROM:TO] [--grep PATTERN]`",
    "troubles": "Could not be collected",
}
"""In the order of the document: what can hurt stands first."""

_WEIGHT = {"interrupted": 6, "todos": 4, "troubles": 4, "not_stored": 2, "background": 2}
"""How much longer than a list of weight 1 a list may be before a line of it is left out."""


def render(
    collected: Collected, *, budget: int, count: Callable[[str], int], show: str = "afresh artifact show"
) -> str:
    """*collected* as Markdown without its heading, in at most *budget* tokens, reckoned line by line.

    The oldest lines of the longest list are left out first, of files and commands those that only looked before all
    others, and their number stands in their place. Where the worker stood is never left out. *show* is the command that
    prints a kept result, as the worker's own shell can call it.
    """
    return _rendered(collected, budget, count, show, {})


def shortened(text: str, budget: int, count: Callable[[str], int]) -> str:
    """The text of a rendered part in at most *budget* tokens; where it has more, what only looked goes first and whole.

    A text that is none comes back empty.
    """
    document = f"\n{HEADING}\n\n{text}\n"
    collected = read_collected(document)
    if collected is None:
        return ""
    kept = collected.model_copy(
        update={
            "files": tuple(file for file in collected.files if not file.is_lesser),
            "commands": tuple(command for command in collected.commands if not command.is_lesser),
        }
    )
    gone = _left_out(text)
    for name in ("files", "commands"):
        less = len(getattr(collected, name)) - len(getattr(kept, name))
        gone[name] = gone.get(name, 0) + less
    return _rendered(kept, budget, count, "afresh artifact show", gone)


def _rendered(
    collected: Collected, budget: int, count: Callable[[str], int], show: str, gone: Mapping[str, int]
) -> str:
    """*gone* are how many lines of each list were left out before."""
    lists = _lists(collected)
    head = [_OPENING.format(at=_stamp(collected.at)), "", "### Where it stood", *_where(collected)]
    titles = {name: _TITLES[name].format(show=show) for name in lists}
    places = {name: list(range(len(lines))) for name, lines in lists.items()}
    places |= {name: going_first(listed) for name, listed in _graded(collected).items() if listed}
    dropped: dict[str, set[int]] = {name: set() for name in lists}
    sizes = {name: [count(line) + 1 for line in lines] for name, lines in lists.items()}
    notes = sum(8 for name in lists if gone.get(name))  # the lines that say so
    spent = count("\n".join(head)) + sum(map(sum, sizes.values())) + sum(count(title) + 4 for title in titles.values())
    left = {name: sum(each) for name, each in sizes.items()}
    spent += notes
    while spent > budget and any(left.values()):
        longest = max(left, key=lambda name: left[name] / _WEIGHT.get(name, 1))
        place = places[longest].pop(0)
        spent += 0 if dropped[longest] or gone.get(longest) else 8
        spent -= sizes[longest][place]
        left[longest] -= sizes[longest][place]
        dropped[longest].add(place)
    parts = ["\n".join(head)]
    for name, lines in lists.items():
        kept = [line for place, line in enumerate(lines) if place not in dropped[name]]
        parts.append("\n".join([f"### {titles[name]}", *_note(collected, name, dropped[name], gone), *kept]))
    return "\n\n".join(parts)


def _graded(collected: Collected) -> dict[str, tuple[TouchedFile, ...] | tuple[Command, ...]]:
    return {"files": collected.files, "commands": collected.commands}


def _note(collected: Collected, name: str, dropped: set[int], gone: Mapping[str, int]) -> list[str]:
    number = len(dropped) + gone.get(name, 0)
    if not number:
        return []
    graded = _graded(collected).get(name, ())
    if gone.get(name) or any(graded[place].is_lesser for place in dropped if graded):
        return [f"- ({number} left out, first those that only looked)"]
    return [f"- ({number} older one{'' if number == 1 else 's'} left out)"]


def _left_out(text: str) -> dict[str, int]:
    """How many lines each list of a rendered part says that it lacks."""
    by_title = {title.partition(":")[0]: name for name, title in _TITLES.items()}
    found: dict[str, int] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("### "):
            name = by_title.get(line[4:].partition(":")[0], "")
        elif match := _LEFT_OUT.fullmatch(line):
            found[name] = int(match[1])
    return found


def read_collected(document: str) -> Collected | None:
    """What a handoff says was collected, None where it has no such part. Lines that were left out stay so.

    Never raises: a line that cannot be read is passed over, and a part that says what cannot be is none.
    """
    _, found, text = document.partition(f"\n{HEADING}\n")
    opening = re.search(r"By the machine at " + _STAMP, text)
    if not found or opening is None:
        return None
    text = re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)[0]
    by_title = {title.partition(":")[0]: name for name, title in _TITLES.items()}
    lines: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("### "):
            name = by_title.get(line[4:].partition(":")[0], "where")
        elif line.startswith("- "):
            lines.setdefault(name, []).append(line)
    where = {match[1]: match[2] for line in lines.get("where", []) if (match := _WHERE.fullmatch(line))}
    found_all = {
        "at": opening[1],
        "cwd": where.get("folder"),
        "git": _work_tree(where, lines),
        "sessions": [session for session in where.get("sessions", "").split(", ") if session],
        "troubles": [line.removeprefix("- ") for line in lines.get("troubles", [])],
        **{key: _entries(key, lines.get(key, [])) for key in _READERS},
    }
    try:
        return Collected.model_validate(found_all)
    except ValidationError:
        return None


def _lists(collected: Collected) -> dict[str, list[str]]:
    tree = collected.git
    changes = [*tree.dirty, *(f"?? {path}" for path in tree.untracked)] if tree else []
    lists = {
        "interrupted": [f"- {_stamp(call.at)} {call.tool}: {call.told}" for call in collected.interrupted],
        "todos": [f"- [{todo.status}] {todo.text}" for todo in collected.todos],
        "changes": [f"- {change}" for change in changes],
        "not_stored": [f"- {path}" for path in tree.not_stored] if tree else [],
        "background": [f"- pid {process.pid}: {process.command}" for process in collected.background],
        "files": [
            f"- {_stamp(file.last)} {'+'.join(file.acts)} ×{file.times}: {file.path}" for file in collected.files
        ],
        "commands": [
            f"- {_stamp(command.at)} exit {'unknown' if command.exit_code is None else command.exit_code}"
            f"{f' in {json.dumps(command.cwd)}' if command.cwd else ''}: {command.command}"
            for command in collected.commands
        ],
        "results": [
            f"- [[OFFLOAD: handle={kept.handle}, tool={kept.tool}, chars={kept.characters}]] {kept.summary}"
            for kept in collected.results
        ],
        "troubles": [f"- {trouble}" for trouble in collected.troubles],
    }
    return {name: lines for name, lines in lists.items() if lines}


def _where(collected: Collected) -> list[str]:
    tree = collected.git
    lines = [f"- folder: {collected.cwd}"] if collected.cwd else []
    if tree:
        changed = f"{len(tree.dirty)} changed, {len(tree.untracked)} untracked, {tree.left_out} more"
        lines += [
            f"- git work tree: {tree.root}",
            f"- git branch: {tree.branch or '(detached HEAD)'}",
            f"- git HEAD: {tree.head or '(no commit yet)'}",
            f"- git files: {changed}",
        ]
        lines += [f"- git snapshot: {tree.snapshot} {tree.commit}"] if tree.snapshot else []
    return [*lines, *([f"- sessions: {', '.join(collected.sessions)}"] if collected.sessions else [])]


def _work_tree(where: dict[str, str], lines: dict[str, list[str]]) -> dict[str, Any] | None:
    if "git work tree" not in where:
        return None
    branch, head = where.get("git branch", "("), where.get("git HEAD", "(")
    snapshot, _, commit = where.get("git snapshot", "").partition(" ")
    counted = re.search(r"(\d+) more", where.get("git files", ""))
    changes = [line.removeprefix("- ") for line in lines.get("changes", []) if not _LEFT_OUT.fullmatch(line)]
    return {
        "root": where["git work tree"],
        "branch": None if branch.startswith("(") else branch,
        "head": None if head.startswith("(") else head,
        "dirty": [change for change in changes if not change.startswith("?? ")],
        "untracked": [change[3:] for change in changes if change.startswith("?? ")],
        "left_out": int(counted[1]) if counted else 0,
        "snapshot": snapshot or None,
        "commit": commit or None,
        "not_stored": [line.removeprefix("- ") for line in lines.get("not_stored", []) if not _LEFT_OUT.match(line)],
    }


_READERS: dict[str, tuple[re.Pattern[str], Callable[..., dict[str, Any]]]] = {
    "interrupted": (
        re.compile(rf"- {_STAMP} (\S+): (.*)"),
        lambda at, tool, told: {"at": at, "tool": tool, "told": told},
    ),
    "todos": (
        re.compile(r"- \[(pending|in_progress)\] (.*)"),
        lambda status, text: {"status": status, "text": text},
    ),
    "background": (
        re.compile(r"- pid (\d+): (.*)"),
        lambda pid, command: {"pid": int(pid), "command": command},
    ),
    "files": (
        re.compile(rf"- {_STAMP} ((?:read|written|patched)(?:\+(?:read|written|patched))*) ×(\d+): (.*)"),
        lambda last, acts, times, path: {"last": last, "acts": acts.split("+"), "times": int(times), "path": path},
    ),
    "commands": (
        re.compile(rf'- {_STAMP} exit (unknown|-?\d+)(?: in ("(?:[^"\\]|\\.)*"))?: (.*)'),
        lambda at, code, cwd, command: {
            "at": at,
            "exit_code": None if code == "unknown" else int(code),
            "cwd": _unquoted(cwd) if cwd else None,
            "command": command,
        },
    ),
    "results": (
        _KEPT,
        lambda handle, tool, characters, summary: {
            "handle": handle,
            "tool": tool,
            "characters": int(characters),
            "summary": summary,
        },
    ),
}


def _entries(name: str, lines: list[str]) -> list[dict[str, Any]]:
    pattern, made = _READERS[name]
    return [made(*match.groups()) for line in lines if (match := pattern.fullmatch(line))]


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return text


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
