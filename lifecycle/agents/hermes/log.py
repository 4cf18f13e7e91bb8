"""What the tail of a profile's agent.log says of a session."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from lifecycle.value import Value

BLOCK = 256 * 1024
BEYOND = 512 * 1024
"""How far behind the last call the start of its process is looked for."""

_STAMP = rb"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) [A-Z]+ "
_CALL = re.compile(
    _STAMP + rb"\[([^\]]+)\] agent\.conversation_loop: API call #(\d+): .* in=(\d+) out=\d+ "
    rb"total=\d+ latency=\S+(?: cache=(\d+)/)?"
)
_SAID = b" agent.conversation_loop: API call #"
_COMPACTED = re.compile(
    _STAMP + rb"(?:\[[^\]]+\] )?agent\.conversation_compression: "
    rb"(?:context compression|codex app-server compaction) done: session=(\S+)"
)
_PROCESS_START = b" hermes_cli.plugins: Plugin discovery complete"
_SPEAKER = re.compile(_STAMP + rb"(?:\[([^\]]+)\] )?agent\.")
_THRESHOLDS = (
    re.compile(rb"Context compressor initialized: .* context_length=(?P<window>\d+) threshold=(?P<at>\d+) "),
    re.compile(
        rb"(?:Preflight|Pre-API) compression: .* >= (?P<at>[\d,]+) threshold "
        rb"\((?:model .*, ctx |context=)(?P<window>[\d,]+)"
    ),
    re.compile(rb"Model context limit: (?P<window>\d+) tokens \(\d+% = (?P<at>\d+)\)"),
    re.compile(rb"Context compression triggered \(\d+ tokens >= (?P<at>\d+) threshold\)"),
    re.compile(rb"Skipping preflight compression: rough estimate ~[\d,]+ >= (?P<at>[\d,]+),"),
    re.compile(rb"auto-lowered session threshold to (?P<at>\d+) "),
)
_WORTH_A_LOOK = (b"ompress", b"Model context limit", _PROCESS_START)
"""Beside the session's own calls: what tells a compaction or a threshold, and starts."""


class LoggedCall(Value):
    """One `API call #N` line. *prompt* is the whole prompt of that call; *at* takes the agent's zone for ours."""

    number: int
    prompt: int
    at: float


class LogTail(Value):
    """*call* is the session's last call, None where there is none, or a compaction is later.

    *threshold* and *window* are the point of compaction and the window that Hermes said it works with.
    """

    call: LoggedCall | None = None
    threshold: int | None = None
    window: int | None = None


def read_log_tail(profile: Path, session_id: str, *, begun: float) -> LogTail:
    """Read agent.log, and agent.log.1… behind it, from the end as far as needed.

    Files last written before *begun*, the session's start, are left alone. A missing or unreadable log says nothing.
    """
    wanted = session_id.encode()
    said = b"[" + wanted + b"]" + _SAID
    kept: list[bytes] = []
    behind = None
    for block in _blocks_backwards(profile / "logs", begun):
        lines = _lines_with(block, (said, *_WORTH_A_LOOK))
        kept[:0] = lines
        if behind is not None:
            behind += len(block)
        elif any(said in line and _CALL.match(line) for line in reversed(lines)):
            behind = 0
        if behind is not None and (behind >= BEYOND or any(_PROCESS_START in line for line in kept)):
            break
    return _sift(kept, wanted)


def _lines_with(block: bytes, marks: tuple[bytes, ...]) -> list[bytes]:
    """Most lines are other modules': a search for each mark is ten times faster than splitting, or than one regex."""
    starts: dict[int, int] = {}
    for mark in marks:
        at = block.find(mark)
        while at >= 0:
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            starts[block.rfind(b"\n", 0, at) + 1] = end
            at = block.find(mark, end)
    return [block[start:end].rstrip(b"\r") for start, end in sorted(starts.items())]


def _sift(lines: list[bytes], wanted: bytes) -> LogTail:
    """Numbers grow within one process; a lower one in it is a background fork's, which works under the same id."""
    said = b"[" + wanted + b"]" + _SAID
    calls: list[tuple[int, int]] = []
    before: list[tuple[int, int]] = []
    compacted_at = -1
    threshold = window = None
    for place, line in enumerate(lines):
        if (at := line.find(said)) >= 0:
            calls.append((_number_at(line, at + len(said)), place))
        elif _PROCESS_START in line:
            before, calls = calls or before, []
            threshold = window = None
        elif _SAID in line:
            continue
        elif compacted := _COMPACTED.match(line):
            compacted_at = place if compacted[3] == wanted else compacted_at
        elif found := _threshold(line, wanted):
            threshold = found[0]
            window = found[1] or window
    last = _last(calls, lines) or _last(before, lines)
    is_valid = last is not None and last[0] > compacted_at
    return LogTail(call=_logged(last[1]) if last and is_valid else None, threshold=threshold, window=window)


def _last(calls: list[tuple[int, int]], lines: list[bytes]) -> tuple[int, re.Match[bytes]] | None:
    """The well-formed call of one process with the highest number, and its place. Few lines are read to the end."""
    for _, place in sorted(calls, key=lambda call: (-call[0], call[1])):
        if call := _CALL.match(lines[place]):
            return place, call
    return None


def _number_at(line: bytes, at: int) -> int:
    """The number that begins there; -1 where none does."""
    digits = line[at : line.find(b":", at)]
    return int(digits) if digits.isdigit() else -1


def _logged(call: re.Match[bytes]) -> LoggedCall:
    prompt, cached = int(call[5]), int(call[6] or 0)
    return LoggedCall(
        number=int(call[4]),
        # Some providers leave what was cached out of their prompt (P3, P4): the cache cannot exceed it.
        prompt=prompt if cached <= prompt else prompt + cached,
        at=datetime.strptime(call[1].decode(), "%Y-%m-%d %H:%M:%S").timestamp() + int(call[2]) / 1000,  # noqa: DTZ007
    )


def _threshold(line: bytes, wanted: bytes) -> tuple[int, int | None] | None:
    speaker = _SPEAKER.match(line)
    # A delegate speaks of its own model.
    if not speaker or speaker[3] not in (None, wanted):
        return None
    for pattern in _THRESHOLDS:
        if match := pattern.search(line):
            named = match.groupdict()
            window = named.get("window")
            return _number(named["at"]), _number(window) if window else None
    return None


def _number(digits: bytes) -> int:
    return int(digits.replace(b",", b""))


def _blocks_backwards(folder: Path, begun: float) -> Iterator[bytes]:
    """Blocks of whole lines, the newest first."""
    for name in ("agent.log", *(f"agent.log.{number}" for number in range(1, 10))):
        path = folder / name
        try:
            if path.stat().st_mtime < begun:
                return
            with path.open("rb") as file:
                end = file.seek(0, 2)
                torn = b""
                while end > 0:
                    start = max(0, end - BLOCK)
                    file.seek(start)
                    block = file.read(end - start) + torn
                    first, newline, whole = block.partition(b"\n") if start else (b"", b"", block)
                    torn, end = first + newline, start
                    yield whole
        except OSError:
            return
