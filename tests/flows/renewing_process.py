"""A process of its own that renews one worker: `python -m tests.flows.renewing_process WORKER HERE GO ASKED_BY`.

It makes the file HERE when it is ready, begins when the file GO exists, and prints the name of its state and its run.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flows.renewal import renew_worker
from lifecycle.waiting import SystemClock, wait_until

worker_id, here, go, asked_by = sys.argv[1:]
asked_at = datetime.now(UTC)
Path(here).touch()
wait_until(Path(go).exists, timedelta(seconds=60), SystemClock(), timedelta(seconds=0.01))
state = renew_worker(worker_id, asked_by=asked_by, asked_at=asked_at, return_state=True)
print(state.name, state.state_details.flow_run_id, flush=True)
