"""Move what is in a database's write-ahead log into its file, as the agent itself does from time to time.

python -m tests.faults.checkpoint_database FILE
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing


def main() -> None:
    with closing(sqlite3.connect(sys.argv[1], isolation_level=None, timeout=5)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


if __name__ == "__main__":
    main()
