"""Hold a SQLite database for so many seconds, as a stuck writer does.

python -m tests.faults.lock_database FILE SECONDS READY
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from lifecycle.waiting import SystemClock


def main() -> None:
    file, seconds, ready = sys.argv[1:4]
    with closing(sqlite3.connect(file, isolation_level=None, timeout=10)) as database:
        database.execute("BEGIN EXCLUSIVE")
        Path(ready).touch()
        SystemClock().sleep(timedelta(seconds=float(seconds)))
        database.execute("ROLLBACK")


if __name__ == "__main__":
    main()
