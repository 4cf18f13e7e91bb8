"""The `[collect]` table: what the machine collects for a handoff, and how much of it is kept."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from lifecycle.value import Value

MIB = 2**20


class CollectSettings(Value):
    """Sizes are bytes, except *tokens*, which the collected part of a handoff may have, and *offload_over*, characters.

    *deadline* is for git alone: what it cannot say by then is left out, and said to be. Of a work tree every tracked
    file is in the snapshot and of the untracked ones those up to *largest_file*, up to *largest_snapshot* together.
    The *offload_most* largest tool results of more than *offload_over* characters are kept, none of a tool in
    *offload_protect*: what `read_file` printed is still on the disk. They stay for *artifacts_kept_for* and within
    *artifacts_quota*; what a latest handoff names stays anyway.
    """

    deadline: timedelta = Field(timedelta(seconds=5), gt=timedelta())
    tokens: int = Field(3_000, ge=500)
    snapshot: bool = True
    snapshots_kept: int = Field(20, ge=1)
    largest_file: int = Field(5 * MIB, ge=0)
    largest_snapshot: int = Field(100 * MIB, ge=0)
    offload_over: int = Field(4_000, ge=500)
    offload_most: int = Field(20, ge=0)
    offload_protect: tuple[str, ...] = ("read_file", "todo", "memory", "skill_view", "session_search")
    artifacts_quota: int = Field(1_024 * MIB, ge=0)
    artifacts_kept_for: timedelta = Field(timedelta(days=30), gt=timedelta())
