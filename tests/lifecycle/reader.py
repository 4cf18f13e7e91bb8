"""A program for a pane that takes text as an agent does: raw, with bracketed paste. Run as a script.

It draws its input line, appends each message (what stood in the line at Enter) to the file named first as one
JSON string, and ends at the message `quit`.
"""

from __future__ import annotations

import json
import os
import sys
import termios
import tty
from pathlib import Path


def main(record: Path) -> None:
    before = termios.tcgetattr(0)
    tty.setraw(0)
    os.write(1, b"\x1b[?2004h\x1b[2J\x1b[H> ")
    held, line, pasted = b"", b"", False
    try:
        while line != b"quit":
            held += os.read(0, 65536)
            while held:
                mark = b"\x1b[201~" if pasted else b"\x1b[200~"
                if held.startswith(mark):
                    held, pasted = held[len(mark) :], not pasted
                elif mark.startswith(held):
                    break  # the rest of the mark comes with the next read
                elif held[:1] in b"\r\n" and not pasted:
                    held = held[1:]
                    with record.open("a") as file:
                        file.write(json.dumps(line.replace(b"\r", b"\n").decode()) + "\n")
                    if line == b"quit":
                        return
                    line = b""
                else:
                    line, held = line + held[:1], held[1:]
            os.write(1, b"\x1b[2J\x1b[H> " + line[:60].replace(b"\r", b" "))
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
