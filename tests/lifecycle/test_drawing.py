"""What a pane's programs write is seen without a look."""

from __future__ import annotations

import os

from lifecycle.drawing import Drawing
from lifecycle.processes import written_by
from lifecycle.screen import PaneLook, PaneState
from tests.agents.stage import Stage
from tests.lifecycle.hosts import host_of


def test_a_face_that_draws_is_noticed_and_one_that_rests_is_not(stage: Stage) -> None:
    stage.wait_ready()
    drawing = Drawing()
    with host_of(stage) as host:
        drawing.follow(host.look(stage.worker()))
        at_rest = stage.wait(lambda: (seen := drawing.stamp()) == drawing.stamp() and seen)
        stage.paste("half a thou")
        stage.wait(lambda: drawing.stamp() != at_rest)


def test_without_a_pane_nothing_is_new() -> None:
    drawing = Drawing()
    drawing.follow(PaneLook(state=PaneState.ABSENT))
    assert drawing.stamp() == ()


def test_what_a_process_wrote_counts() -> None:
    before = written_by(os.getpid())
    descriptor = os.open(os.devnull, os.O_WRONLY)
    try:
        os.write(descriptor, b"ten bytes.")
    finally:
        os.close(descriptor)
    after = written_by(os.getpid())
    assert before is not None
    assert after is not None
    assert after - before >= 10
