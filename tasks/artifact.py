"""Artifacts of the run that calls. They show and decide nothing: what fails is logged and goes no further.

Prefect's own functions that create them leave a connection open each time, so its client is used here.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Literal
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import ArtifactCreate, ArtifactUpdate
from prefect.exceptions import ObjectNotFound
from prefect.utilities.context import get_task_and_flow_run_ids

log = logging.getLogger(__name__)


ANSWERED_WITHIN = timedelta(seconds=20)


def own_client() -> SyncPrefectClient:
    """A client that is not the run's, which other threads must not enter and a step must not wait for so long."""
    return get_client(sync_client=True, httpx_settings={"timeout": ANSWERED_WITHIN.total_seconds()})


@contextmanager
def shown_only() -> Iterator[None]:
    """What Prefect does not take inside is logged."""
    try:
        yield
    except (httpx.HTTPError, ObjectNotFound) as error:
        log.warning("not shown in Prefect: %s", error)


def show(kind: Literal["markdown", "progress"], key: str, data: str | float, description: str = "") -> UUID:
    """Create a version of the artifact *key*.

    Raises:
        httpx.HTTPError: the server does not answer, or refuses.
    """
    return _create(kind, key, data, description)


def show_table(key: str, rows: Sequence[dict[str, str]], description: str) -> UUID:
    """Create a version of the table *key*.

    Raises:
        httpx.HTTPError
    """
    return _create("table", key, json.dumps(rows), description)


def show_progress(artifact: UUID, percent: float, description: str) -> None:
    """Move a progress artifact on.

    Raises:
        httpx.HTTPError
    """
    with own_client() as client:
        client.update_artifact(artifact, ArtifactUpdate(data=percent, description=description))


def _create(kind: str, key: str, data: str | float, description: str) -> UUID:
    task_run, flow_run = get_task_and_flow_run_ids()
    wanted = ArtifactCreate(
        type=kind, key=key, data=data, description=description, task_run_id=task_run, flow_run_id=flow_run
    )
    with own_client() as client:
        return client.create_artifact(wanted).id
