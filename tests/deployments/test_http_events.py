"""The fleet, live: what the stream of server-sent events carries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from deployments.http import reads
from tests.deployments.api import PATH, Api, serving, with_ports
from tests.deployments.conftest import Operator


@pytest.fixture
def api(afresh: Operator) -> Iterator[Api]:
    with_ports(afresh)
    with serving() as api:
        yield api


def events(answer: httpx.Response) -> Iterator[tuple[str, Any]]:
    """Name and data of each event as it comes."""
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        if line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_the_stream_begins_with_all_workers_and_goes_on_with_those_that_change(api: Api) -> None:
    with api.client.stream("GET", f"{PATH}/events") as answer:
        stream = events(answer)
        name, first = next(stream)
        assert (name, [row["workerId"] for row in first["workers"]]) == ("fleet", ["swarm1"])
        assert first["workers"][0] == {**api.row(), "readAt": first["workers"][0]["readAt"]}

        api.post("hold", "swarm1")

        name, change = next(stream)
        assert (name, change["gone"]) == ("change", [])
        assert [row["lifecycleState"] for row in change["workers"]] == ["held"]


def test_a_worker_that_is_declared_no_more_is_named_as_gone(api: Api, afresh: Operator) -> None:
    text = afresh.toml.read_text()
    afresh.write(f"{text}\n[workers.swarm2]\n")
    with api.client.stream("GET", f"{PATH}/events") as answer:
        stream = events(answer)
        _, first = next(stream)
        assert [row["workerId"] for row in first["workers"]] == ["swarm1", "swarm2"]
        afresh.write(text)
        _, change = next(stream)
        assert (change["workers"], change["gone"]) == ([], ["swarm2"])


def test_trouble_is_told_once_and_its_end_brings_all_workers_again(api: Api, afresh: Operator) -> None:
    text = afresh.toml.read_text()
    with api.client.stream("GET", f"{PATH}/events") as answer:
        stream = events(answer)
        assert next(stream)[0] == "fleet"
        afresh.write("colour = 3\n")
        assert next(stream) == ("trouble", {"error": f"{afresh.toml}: unknown key 'colour'"})
        afresh.write(text)
        name, again = next(stream)
        assert (name, len(again["workers"])) == ("fleet", 1)


def test_live_pages_are_limited_and_a_place_is_free_again_when_one_goes(
    api: Api, monkeypatch: pytest.MonkeyPatch, afresh: Operator
) -> None:
    monkeypatch.setattr(reads, "STREAMS", 1)

    def live() -> int | None:
        with httpx.stream("GET", f"{api.url}{PATH}/events", headers=dict(api.client.headers), timeout=10) as answer:
            return answer.status_code

    with api.client.stream("GET", f"{PATH}/events") as answer:
        stream = events(answer)  # kept: httpx closes an answer that nobody iterates any more
        assert next(stream)[0] == "fleet"
        assert live() == 503
    afresh.stage.wait(lambda: live() == 200, 60, "a free place")


def test_the_service_ends_although_a_page_is_live(afresh: Operator) -> None:
    with_ports(afresh)
    with serving() as api:
        client = httpx.Client(headers=dict(api.client.headers), timeout=30)
        stream = client.stream("GET", f"{api.url}{PATH}/events")
        answer = stream.__enter__()
        left = events(answer)
        assert next(left)[0] == "fleet"
    assert list(left) == [], "the stream was ended, not cut"
    stream.__exit__(None, None, None)
    client.close()
