"""One Prefect server for the cases of a run, which are played several at once and asked for one by one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.faults.case import Case
from tests.faults.perform import Result, perform, prefect_server

AT_ONCE = 3
"""A case waits most of its time: for an agent, for a deadline."""


@pytest.fixture(scope="module")
def result_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Case], Result]]:
    """What a case that was selected for this run came to."""
    hermes = Path(os.environ.get("AFRESH_TEST_HERMES") or Path(__file__).parents[2] / ".agent" / "bin" / "hermes")
    chosen: list[Any] = [
        item.callspec.params["case"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and hasattr(item, "callspec")
    ]
    with prefect_server(tmp_path_factory.mktemp("server")), ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        played: dict[str, Future[Result]] = {
            case.id: pool.submit(perform, case, hermes) for case in chosen if not case.cannot()
        }

        def result(case: Case) -> Result:
            first = played.pop(case.id, None)
            # A test that is run once more is a case that is played once more.
            return first.result() if first is not None else perform(case, hermes)

        try:
            yield result
        finally:
            for future in played.values():
                future.cancel()
