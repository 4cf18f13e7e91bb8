"""Put a document where the open renewal of swarm1 expects its draft.

python -m tests.faults.plant_draft HOME PROFILE DOCUMENT
"""

from __future__ import annotations

import sys
from pathlib import Path

from lifecycle.ledger import Ledger


def main() -> None:
    home, profile, document = (Path(argument) for argument in sys.argv[1:4])
    with Ledger(home / "ledger.db") as ledger:
        renewal = ledger.open_renewals()[0]
    draft = profile / "memory" / "handoffs" / f"draft-{renewal.renewal_id}.md"
    draft.parent.mkdir(parents=True, exist_ok=True)
    content = document.read_bytes().replace(b"@RENEWAL@", renewal.renewal_id.encode())
    draft.write_bytes(content)


if __name__ == "__main__":
    main()
