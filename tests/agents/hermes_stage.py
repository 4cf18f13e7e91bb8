"""A stage with the real Hermes Agent."""

from __future__ import annotations

from pathlib import Path

from deployments.demo.scripted_model import ScriptedModel
from tests.agents.ground import Ground
from tests.agents.stage import Stage


class HermesStage(Stage):
    """A stage with the real Hermes Agent, and the model that it asks."""

    def __init__(
        self,
        hermes: Path,
        model: ScriptedModel,
        face: str,
        *,
        worker_id: str = "swarm1",
        ground: Ground | None = None,
    ) -> None:
        # A long paste into a busy TUI arrives whole only with both thresholds off.
        config = "paste_collapse_threshold: 0\npaste_collapse_char_threshold: 0\n" if face == "tui" else ""
        super().__init__(
            worker_id,
            ground=ground,
            window=model.script.context_length,
            command=(str(hermes), "chat", f"--{face}"),
            base_url=model.base_url,
            config=config,
            face=face,
        )
        self.model = model
