"""The demonstration's stage: a scratch folder with a real worker on a private tmux socket, and its end."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deployments.demo.scripted_model import ScriptedModel
from lifecycle.errors import Misuse
from lifecycle.value import Value

WORKER = "gardener"
LONGEST_TMPDIR = 75

MISSION_ID = "mission-seed-ledger"

MISSION = """\
Mission: keep the seed ledger of this folder, ledger.txt. Rules that always hold:
1. One line an entry, in order, no number twice.
2. Never delete or rewrite a line of the ledger.
3. Never leave this folder.
4. Check the line count after each entry.
Begin with entry 1 and go on one entry a turn."""

# The agent's own first prompt is about 17,000 tokens long (tools and system prompt), so these limits are crossed
# by a few real turns and not by a new session.
_CONFIGURATION = """\
hermes_root = "{folder}/hermes"
memory_root = "{folder}/memory"
socket = "{folder}/tmux.sock"

[policy]
soft = {soft}
handoff = {handoff}
hard = {hard}

[workers.{worker}]
automatic = true
cwd = "{folder}/garden"
command = ["{hermes}", "chat", "--cli"]
environment = {{ HOME = "{folder}/home" }}
"""

_PROFILE = """\
model: {{default: scripted-model, provider: custom, base_url: "{base_url}", api_key: none, context_length: 200000}}
security: {{allow_lazy_installs: false, tirith_enabled: false}}
model_catalog: {{enabled: false}}
display: {{busy_input_mode: queue}}
memory: {{nudge_interval: 0}}
skills: {{creation_nudge_interval: 0}}
max_concurrent_sessions: 1
"""


class Stage(Value):
    """Where the demonstration plays."""

    folder: Path
    hermes: Path
    soft: int
    handoff: int
    hard: int

    @property
    def garden(self) -> Path:
        return self.folder / "garden"

    @property
    def ledger_file(self) -> Path:
        """The file that the worker's mission is about."""
        return self.garden / "ledger.txt"

    @property
    def profile(self) -> Path:
        return self.folder / "hermes" / "profiles" / WORKER


def find_hermes() -> Path:
    """The Hermes Agent: AFRESH_DEMO_HERMES, the checkout's own environment, or PATH.

    Raises:
        Misuse: there is none.
    """
    named = os.environ.get("AFRESH_DEMO_HERMES")
    beside = Path(__file__).resolve().parents[2] / ".agent" / "bin" / "hermes"
    for candidate in (named, str(beside), shutil.which("hermes")):
        if candidate and os.access(candidate, os.X_OK):
            return Path(candidate)
    msg = f"no Hermes Agent: neither AFRESH_DEMO_HERMES nor {beside} nor PATH has one; `make demo` installs it"
    raise Misuse(msg)


@contextmanager
def set_up(model: ScriptedModel, *, keep: bool) -> Iterator[Stage]:
    """Make the folder and point this process at it; both are taken back at the end, unless the folder is kept."""
    hermes = find_hermes()
    # A Unix socket's path must fit into 108 bytes.
    roomy = len(tempfile.gettempdir()) < LONGEST_TMPDIR
    folder = Path(tempfile.mkdtemp(prefix="afresh-demo-", dir=None if roomy else "/tmp"))  # noqa: S108 - a private folder
    stage = Stage(folder=folder, hermes=hermes, soft=24_000, handoff=28_000, hard=60_000)
    for path in (stage.garden, folder / "home", folder / "memory", folder / "afresh", stage.profile):
        path.mkdir(parents=True, mode=0o700)
    values = {**stage.model_dump(), "worker": WORKER, "base_url": model.base_url}
    configuration = folder / "afresh" / "afresh.toml"
    configuration.write_text(_CONFIGURATION.format(**values))
    configuration.chmod(0o600)
    (stage.profile / "config.yaml").write_text(_PROFILE.format(**values))
    (stage.profile / "runtime.json").write_text(json.dumps({"workerId": WORKER, "currentMissionId": MISSION_ID}))
    before = dict(os.environ)
    os.environ.update(AFRESH_HOME=str(folder / "afresh"))
    for name in ("AFRESH_CONFIG", "PREFECT_API_URL", "HERMES_HOME", "CLAUDE_HOME", "HERMES_SWARM_MEMORY_ROOT"):
        os.environ.pop(name, None)
    try:
        yield stage
    finally:
        os.environ.clear()
        os.environ.update(before)
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
