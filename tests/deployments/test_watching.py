"""The watch beside `afresh serve`."""

from __future__ import annotations

import os

import pytest

from deployments.server import Running
from deployments.watching import watched
from lifecycle.host import Host
from lifecycle.outage import heed_server
from lifecycle.processes import identity_of
from lifecycle.settings import load_settings


@pytest.mark.usefixtures("afresh")
def test_a_server_that_is_started_again_and_dies_before_the_first_look_is_told_of_again() -> None:
    settings, server = load_settings(), Running(url="http://127.0.0.1:9", process=identity_of(os.getpid()))

    def is_told() -> bool:
        with Host.opened(settings) as host:
            return heed_server(host, server.url, answers=False, remedy="start it")

    assert [is_told(), is_told()] == [True, False]
    with watched(settings, server):
        assert is_told()
