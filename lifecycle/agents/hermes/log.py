"""What the tail of a profile's agent.log says of a session."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from lifecycle.value import Value

BLOCK = 256 * 1024
BEYOND = 512 * 1024
"""How far behind the last call the start of its process is looked for."""
MOST = 32 * 1024 * 1024
"""More is not read where there is no call; Hermes itself keeps three logs of 5 MB."""
LONGEST = 4096

_STAMP = rb"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) [A-Z]+ "
_CALL = re.compile(
    _STAMP + rb"\[([^\]]+)\] agent\.conversation_loop: API call #(\d{1,8}): .* in=(\d{1,12}) out=\d+ "
    rb"total=\d+ latency=\S+(?: cache=(\d{1,12})/)?"
)
_SAID = b" agent.conversation_loop: API call #"
_COMPACTED = re.compile(
    _STAMP + rb"(?:\[[^\]]+\] )?agent\.conversation_compression: "
    rb"(?:context compression|codex app-server compaction) done: session=(\S+)"
)
_STARTED = b" hermes_cli.plugins: Plugin discovery complete"
_PROCESS_START = re.compile(_STAMP[:-1] + _STARTED)
_SPEAKER = re.compile(_STAMP + rb"(?:\[([^\]]+)\] )?agent\.")
_THRESHOLDS = (
    re.compile(rb"Context compressor initialized: .* context_length=(?P<window>\d{1,12}) threshold=(?P<at>\d{1,12}) "),
    re.compile(
        rb"(?:Preflight|Pre-API) compression: .* >= (?P<at>[\d,]{1,15}) threshold "
        rb"\((?:model .*, ctx |context=)(?P<window>[\d,]{1,15})\b"
    ),
    re.compile(rb"Model context limit: (?P<window>\d{1,12}) tokens \(\d+% = (?P<at>\d{1,12})\)"),
    re.compile(rb"Context compression triggered \(\d+ tokens >= (?P<at>\d{1,12}) threshold\)"),
    re.compile(rb"Skipping preflight compression: rough estimate ~[\d,]+ >= (?P<at>[\d,]{1,15}),"),
    re.compile(rb"auto-lowered session threshold to (?P<at>\d{1,12}) "),
)
_OF_THRESHOLDS = (b"ompress", b"Model context limit")
"""One of these is in each line that tells a threshold."""


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
    blocks: list[bytes] = []
    behind = None
    has_start, size = False, 0
    for block in _blocks_backwards(profile / "logs", begun):
        blocks.append(block if block.endswith(b"\n") else block + b"\n")
        has_start = has_start or any(_PROCESS_START.match(line) for _, line in _backwards(block, _STARTED))
        if behind is not None:
            behind += len(block)
        elif any(_CALL.match(line) for _, line in _backwards(block, said)):
            behind = 0
        size += len(block)
        if size > MOST or (behind is not None and (behind >= BEYOND or has_start)):
            break
    text = b"".join(reversed(blocks))
    last = _last_call(text, said)
    is_valid = last is not None and not _is_compacted(text[last[0] :], wanted)
    threshold, window = _last_threshold(text, wanted)
    return LogTail(call=_logged(last[1]) if last and is_valid else None, threshold=threshold, window=window)


def _backwards(text: bytes, mark: bytes, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """The lines that hold the *mark*, last first, each with its place in the *text*.

    Most lines are other modules' and hold none: to search for it is ten times faster than to split them all.
    """
    end = len(text) if end is None else end
    while (at := text.rfind(mark, 0, end)) >= 0:
        end = text.rfind(b"\n", 0, at) + 1
        yield end, _line(text, end)


def _line(text: bytes, start: int) -> bytes:
    """No line that says anything is longer than `LONGEST`."""
    end = text.find(b"\n", start)
    return text[start : min(end if end >= 0 else len(text), start + LONGEST)].rstrip(b"\r")


def _processes(text: bytes) -> Iterator[tuple[int, int]]:
    """Where the lines of one process after the other begin and end, the newest first."""
    end = len(text)
    for start, line in _backwards(text, _STARTED):
        if _PROCESS_START.match(line):
            yield start, end
            end = start
    yield 0, end


def _last_call(text: bytes, said: bytes) -> tuple[int, re.Match[bytes]] | None:
    """The call with the highest number of the newest process that made one, behind its place.

    Numbers grow within one process; a lower one in it is a background fork's, which works under the same id.
    """
    for start, end in _processes(text):
        numbers = {piece[: max(0, piece.find(b":", 0, 9))] for piece in text[start:end].split(said)[1:]}
        highest = max((number for number in numbers if number.isdigit()), key=int, default=None)
        if highest is None:
            continue
        begun = text.rfind(b"\n", 0, text.find(said + highest + b":", start, end)) + 1
        call = _CALL.match(_line(text, begun))
        if call is not None and call[4] == highest:
            return begun, call
        if found := _highest(text, said, start, end):
            return found
    return None


def _highest(text: bytes, said: bytes, start: int, end: int) -> tuple[int, re.Match[bytes]] | None:
    """The same by each of the lines, where the first with the highest number is malformed, or was typed by somebody."""
    best = None
    for begun, line in _backwards(text, said, end):
        if begun < start:
            break
        call = _CALL.match(line)
        if call is not None and (best is None or int(call[4]) >= int(best[1][4])):
            best = begun, call
    return best


def _is_compacted(text: bytes, wanted: bytes) -> bool:
    """Whether a compaction of the session was logged there: what a call before it carried says nothing any more."""
    lines = (line for _, line in _backwards(text, b" done: session=" + wanted))
    return any(compacted[3] == wanted for line in lines if (compacted := _COMPACTED.match(line)))


def _last_threshold(text: bytes, wanted: bytes) -> tuple[int | None, int | None]:
    """The point of compaction and the window that the newest process told last."""
    begun, _ = next(_processes(text))
    told = (_backwards(text[begun:], mark) for mark in _OF_THRESHOLDS)
    threshold = window = None
    for _, line in heapq.merge(*told, reverse=True):
        found = None if _SAID in line or _COMPACTED.match(line) else _threshold(line, wanted)
        if found is not None:
            threshold, window = threshold or found[0], window or found[1]
        if threshold and window:
            break
    return threshold, window


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
                    # Of a line without an end the beginning is enough to know that it says nothing.
                    torn, end = (first + newline if len(first) <= BLOCK else newline), start
                    yield whole
        except OSError:
            return
