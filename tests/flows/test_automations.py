"""The automations that several hosts keep on one Prefect server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prefect import get_client
from prefect.blocks.notifications import CustomWebhookNotificationBlock

from deployments.automations import apply
from lifecycle.settings import Settings, load_settings


@pytest.fixture
def block() -> Iterator[str]:
    """A notification block of the server, by the name that a configuration gives it."""
    CustomWebhookNotificationBlock(name="here", url="http://127.0.0.1:9/", json_data={"body": "{{body}}"}).save("here")
    yield "custom-webhook/here"
    with get_client(sync_client=True) as client:
        for automation in client.read_automations():
            client.delete_automation(automation.id)


def test_a_host_that_names_no_block_leaves_what_tells_of_another(tmp_path: Path, block: str) -> None:
    ours, theirs = _settings(tmp_path, "host-a", block), _settings(tmp_path, "host-b")
    kept = apply(ours, [])
    apply(theirs, [])
    assert set(_names()) == set(kept)
    assert "Afresh: tell blocked on host-a" in kept

    apply(_settings(tmp_path, "host-a"), [])
    assert not [name for name in _names() if name.startswith("Afresh: tell ")], "its own go with its blocks"


def _names() -> list[str]:
    with get_client(sync_client=True) as client:
        return [automation.name for automation in client.read_automations()]


def _settings(folder: Path, host_name: str, *blocks: str) -> Settings:
    home = folder / host_name
    home.mkdir(exist_ok=True)
    (home / "afresh.toml").write_text(f'host_name = "{host_name}"\n[notify]\nblocks = {list(blocks)}\n')
    return load_settings(environ={"AFRESH_HOME": str(home), "HOME": str(folder)})
