"""Measures what crosses a renewal, prints it, and writes `build/fidelity.json`: `make fidelity`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.fidelity.measuring import SIZES, measure
from tests.fidelity.report import as_json, misses, table, targets

WRITTEN = Path(__file__).parents[2] / "build" / "fidelity.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fidelity", description=__doc__)
    parser.add_argument("--size", type=int, action="append", help="tokens of a session; may be given again")
    parser.add_argument("--seeds", type=int, default=5, help="how many lossy writers")
    parser.add_argument("--to", type=Path, default=WRITTEN, help="where the figures are written")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fidelity-") as folder:
        measured = measure(Path(folder), sizes=chosen.size or SIZES, seeds=chosen.seeds)
    chosen.to.parent.mkdir(parents=True, exist_ok=True)
    chosen.to.write_text(json.dumps(as_json(measured), ensure_ascii=False, indent=1) + "\n")
    print(table(measured))
    for line in misses(measured):
        print(f"  {line}")
    return 0 if all(target.holds for target in targets(measured)) else 1


if __name__ == "__main__":
    sys.exit(main())
