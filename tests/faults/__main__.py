"""The matrix as a program. A module of its own: processes that are forked for a case do not load it again."""

from __future__ import annotations

import sys

from tests.faults.matrix import main

if __name__ == "__main__":
    sys.exit(main())
